"""Primal-dual steps: ElasticGNN's, minimisers against a dense reference, and the fixed point of any rule."""

import pytest
import torch

import unspool as us
from unspool import testing
from unspool.testing import small_graph

pytestmark = pytest.mark.long

GRAPH = small_graph()
X = torch.randn(12, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(3))


def test_it_keeps_the_laws():
    testing.check_algorithm(us.PrimalDual())
    testing.check_algorithm(us.PrimalDual(balance=0.5))


@pytest.mark.parametrize("rows", [True, False])
def test_it_is_the_predictor_corrector_of_elastic_networks(rows):
    """Language of signals: Y = γX + (1−γ)AH; H̄ = Y − γBᵀZ; Z ← Π(Z + βBH̄); H ← Y − γBᵀZ."""
    l1, l2, depth = 0.4, 0.7, 6
    b, a = GRAPH.incidence().to_dense(), GRAPH.to_dense()
    gamma = 1 / (1 + l2)
    beta, h, z = 1 / (2 * gamma), X, torch.zeros(b.shape[0], 3, dtype=torch.float64)
    for _ in range(depth):
        y = gamma * X + (1 - gamma) * a @ h
        z = z + beta * b @ (y - gamma * b.T @ z)
        z = z * (l1 / z.norm(dim=1, keepdim=True)).clamp(max=1) if rows else z.clamp(-l1, l1)
        h = y - gamma * b.T @ z
    objective = us.Fidelity(0.5) + us.Smoothness(l2 / 2) + us.EdgeSparse(l1, rows=rows)
    net = us.unroll(objective, us.PrimalDual(step=gamma), depth=depth)
    assert torch.allclose(net(X, GRAPH), h, atol=1e-12)


def reference(value, x):
    """The minimiser of a smoothed objective by L-BFGS, smoothing going to nothing."""
    h = x.clone().requires_grad_()
    for eps in (1e-2, 1e-4, 1e-6, 1e-8):
        optimiser = torch.optim.LBFGS(
            [h], max_iter=2000, tolerance_grad=1e-12, tolerance_change=1e-16, line_search_fn="strong_wolfe"
        )

        def closure(eps=eps, optimiser=optimiser):
            optimiser.zero_grad()
            loss = value(h, eps)
            loss.backward()
            return loss

        optimiser.step(closure)
    return h.detach()


def test_minimisers_agree_with_a_smoothed_reference():
    b = GRAPH.incidence().to_dense()
    objective = us.Fidelity(0.5) + us.Smoothness(0.2) + us.EdgeSparse(0.3)

    def smooth(h, eps):
        jumps = (b @ h).square().sum(1).add(eps**2).sqrt().sum()
        return 0.5 * (h - X).square().sum() + 0.2 * (b @ h).square().sum() + 0.3 * jumps

    found = us.minimise(objective, X, GRAPH)
    best = reference(smooth, X)
    value = float(objective.value(found, X, GRAPH))
    assert value <= float(objective.value(best, X, GRAPH)) + 1e-8
    assert value == pytest.approx(float(smooth(best, 0.0)), abs=1e-5)


def test_constraints_and_two_composite_terms_together():
    groups = torch.arange(12) % 2
    objective = us.Fidelity(1.0) + us.EdgeSparse(0.2) + us.GroupGap(groups, 5.0) + us.NonNegative()
    h = us.minimise(objective, X + 1, GRAPH)
    assert float(h.min()) >= 0
    gap = h[groups == 1].mean(0) - h[groups == 0].mean(0)
    assert float(gap.abs().max()) < 1e-6
    longer = us.unroll(objective, us.PrimalDual(), depth=3000)(X + 1, GRAPH)
    assert torch.allclose(longer, h, atol=1e-6)


def test_derivatives_through_the_minimiser_are_right():
    weight = us.Learnable(0.3, within=(0, None), name="λ")
    objective = us.Fidelity(0.5) + us.Smoothness(0.2) + us.EdgeSparse(weight)
    exact = us.unroll(objective, us.Exact()).double()
    steps = us.unroll(objective, us.PrimalDual(), depth=1500).double()
    probe = torch.cos(torch.arange(X.numel(), dtype=X.dtype)).view(X.shape)
    found = []
    for net in (exact, steps):
        x = X.clone().requires_grad_()
        out = net(x, GRAPH)
        found.append([out.detach(), *torch.autograd.grad((out * probe).sum(), [x, *net.parameters()])])
    for one, other in zip(*found, strict=True):
        assert torch.allclose(one, other, atol=1e-6)


@pytest.mark.parametrize("rule", [us.GradientDescent(), us.ProximalGradient(), us.PrimalDual(), us.Jacobi(step=0.9)])
def test_the_fixed_point_of_a_rule_is_the_minimiser_with_its_derivatives(rule):
    alpha = us.Learnable(0.4, within=(0, 1), name="α")
    objective = us.Fidelity(alpha) + us.Smoothness(1 - alpha)
    probe = torch.cos(torch.arange(X.numel(), dtype=X.dtype)).view(X.shape)
    found = []
    for made in (us.unroll(objective, rule, 1, adjoint=us.FixedPoint()), us.unroll(objective, us.Exact())):
        net, x = made.double(), X.clone().requires_grad_()
        out = net(x, GRAPH)
        first = torch.autograd.grad((out * probe).sum(), [x, *net.parameters()], create_graph=True)
        second = torch.autograd.grad(first[1].sum(), [x, *net.parameters()])
        found.append([out, *first, *second])
    for one, other in zip(*found, strict=True):
        assert torch.allclose(one, other, atol=1e-6)


def test_a_rule_that_does_not_rest_is_refused():
    objective = us.Fidelity(0.5) + us.Smoothness(0.5)
    net = us.unroll(objective, us.GradientDescent(step=1.2), 1, adjoint=us.FixedPoint(limit=200))
    with pytest.raises(us.IncompatibleError, match="did not come to rest"):
        net(X.float(), GRAPH.to(torch.float32))
    own = us.Learnable(0.4, per_layer=True, name="α")
    with pytest.raises(us.IncompatibleError, match="differs from layer to layer"):
        us.unroll(us.Fidelity(own) + us.Smoothness(1.0), us.GradientDescent(), 2, adjoint=us.FixedPoint())


def test_reweighted_steps_are_those_of_twirls():
    """H ← (1−a)H + a D̃⁻¹(λ(Γ∘A)H + X), D̃ = λD_Γ + I, on a graph that is not normalised."""
    graph = us.graph.grid(3, 4, normalise=us.Normalisation.NONE, loops=0).to(torch.float64)
    lam, a, tau, h = 0.8, 0.7, 0.5, X
    adjacency = graph.to_dense()
    for _ in range(4):
        s = (h[:, None] - h[None]).square().sum(-1)
        gamma = adjacency / (1 + s / tau)
        h = (1 - a) * h + a * (lam * gamma @ h + X) / (lam * gamma.sum(1) + 1)[:, None]
    net = us.unroll(us.Fidelity(1.0) + us.EdgePenalty(us.Log(tau), lam), us.Jacobi(step=a), depth=4)
    assert torch.allclose(net(X, graph), h, atol=1e-12)


def test_p_laplacian_layers_are_jacobi_steps():
    """Mᵢⱼ = wᵢⱼ‖(BH)ᵢⱼ‖^(p−2); αᵢ = (Σⱼ Mᵢⱼ/dᵢ + 2μ/p)⁻¹; hᵢ ← αᵢ Σⱼ Mᵢⱼ hⱼ/√(dᵢdⱼ) + (2μ/p) αᵢ xᵢ."""
    p, mu, eps, h = 1.5, 0.6, 0.1, X
    graph = us.graph.grid(3, 4, loops=0).to(torch.float64)
    w = (graph.to_dense() != 0).double()
    d = w.sum(1)
    for _ in range(3):
        scaled = h / d.sqrt()[:, None]
        s = (scaled[:, None] - scaled[None]).square().sum(-1)
        m = w * (s + eps**2) ** (p / 2 - 1)
        alpha = 1 / (m.sum(1) / d + 2 * mu / p)
        h = alpha[:, None] * (m / (d[:, None] * d[None]).sqrt()) @ h + (2 * mu / p) * alpha[:, None] * X
    net = us.unroll(us.Fidelity(mu) + us.EdgePenalty(us.Power(p, eps)), us.Jacobi(), depth=3)
    assert torch.allclose(net(X, graph), h, atol=1e-12)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("size", [1e-6, 1.0, 1e6])
def test_minimisers_without_a_quadratic_term_are_found(dtype, size):
    """Total variation under outliers: nothing but norms; the dual steps by themselves come to the same value."""
    x, graph = size * X.to(dtype), GRAPH.to(dtype)
    objective = us.RowSparseFidelity(0.4) + us.EdgeSparse(0.1)
    found = float(objective.value(us.minimise(objective, x, graph), x, graph))
    stepped = us.unroll(objective, us.PrimalDual(step=size), depth=2000)(x, graph)
    assert found == pytest.approx(float(objective.value(stepped, x, graph)), rel=1e-5)
    assert torch.allclose(us.minimise(us.RowSparseFidelity(0.4), x, graph), x, rtol=1e-6)


def test_a_direction_that_no_term_holds_is_named():
    graph = us.graph.path(12, normalise=us.Normalisation.NONE).to(torch.float64)
    with pytest.raises(us.IncompatibleError, match="the minimiser is not unique"):
        us.minimise(us.NodeFidelity(torch.zeros(12)) + us.EdgeSparse(0.1), X, graph)


def test_weights_that_begin_below_zero_have_no_proximal_operator():
    """Steps with them ran, and led to what minimises nothing; numbers below zero are refused where the term is made."""
    weight = us.Learnable(-0.1)
    groups = torch.tensor([0, 1] * 6)
    for term in (
        us.EdgeSparse(weight),
        us.EdgeSparse(weight, rows=False),
        us.LaplacianSparse(weight),
        us.GroupGap(groups, weight),
    ):
        for rule in (us.PrimalDual(), us.ADMM()):
            with pytest.raises(
                us.IncompatibleError, match=r"has no proximal operator; its weight is −0\.1: keep it non-negative"
            ):
                us.unroll(us.Fidelity(0.5) + term, rule, depth=3)
    for given in (-0.1, weight):
        with pytest.raises(us.IncompatibleError, match=r"its weight is −0\.1: keep it non-negative"):
            us.unroll(us.Fidelity(0.5) + us.Sparse(given), us.ProximalGradient(), depth=3)


FREE = us.Learnable(0.1, name="λ")


@pytest.mark.parametrize(
    ("term", "rule", "way"),
    [
        (us.EdgeSparse(FREE), us.PrimalDual(), r"declare it with within=\(0, None\)"),
        (us.EdgeSparse(FREE, rows=False), us.ADMM(), r"declare it with within=\(0, None\)"),
        (us.LaplacianSparse(1 - FREE), us.PrimalDual(), r"give λ a range that rules it out, by within=\(low, high\)"),
        (us.GroupGap(torch.tensor([0, 1] * 6), 2 * FREE), us.PrimalDual(), "give λ a range"),
        (us.Sparse(FREE), us.ProximalGradient(), "declare it"),
        (us.RowSparseFidelity(FREE), us.Accelerated(), "declare it"),
        (us.Activation(torch.nn.ELU(), FREE), us.ProximalGradient(), "declare it"),
        (us.EdgeSparse(0.3), us.PrimalDual(step=FREE), r"^step=λ of PrimalDual may train below 0"),
        (us.Sparse(0.3), us.Reweighted(us.ProximalGradient(step=FREE)), "^step=λ of ProximalGradient"),
        (us.EdgeSparse(0.3), us.ADMM(rho=FREE), "^rho=λ of ADMM"),
        (
            us.EdgeSparse(us.Schedule(lambda k: 0.25 - 0.1 * k, name="θ")),
            us.PrimalDual(),
            r"falls to −0\.15.*keep it at 0",
        ),
    ],
    ids=str,
)
def test_numbers_that_could_train_below_zero_are_refused_where_norms_need_them(term, rule, way):
    """Below 0 a dual ball has no points, and a threshold no meaning: steps ran and were those of nothing."""
    with pytest.raises(us.IncompatibleError, match=way):
        us.unroll(us.Fidelity(0.5) + term, rule, depth=4)


@pytest.mark.parametrize("push", [-30.0, 0.0, 3.0])
def test_declared_weights_keep_the_problem_one_that_has_a_minimiser(push):
    alpha = us.Learnable(0.3, within=(0, 1), name="α")
    terms = (us.EdgeSparse(us.Learnable(0.2, within=(0, None), name="λ")), us.Sparse(1 - alpha))
    net = us.unroll(us.Fidelity(1.0) + terms[0] + terms[1], us.PrimalDual(), depth=1500).double()
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.add_(push)
        wanted = us.minimise(net.objective, X, GRAPH, net.values(1))
        assert torch.allclose(net(X, GRAPH), wanted, atol=1e-6)


def test_weights_that_no_proximal_operator_reads_stay_free():
    us.unroll(us.Fidelity(FREE) + us.NonNegative(), us.ProximalGradient(step=us.Learnable(0.4, name="η")), depth=2)
    us.unroll(us.Smoothness(1.0) + us.Activation(torch.nn.ELU()), us.ProximalGradient(step=us.Learnable(0.4)), depth=2)
    us.minimise(us.Fidelity(0.5) + us.EdgeSparse(FREE), X, GRAPH)


@pytest.mark.parametrize("scale", [0.0, 1e-3, 1.0, 1e4])
def test_norms_alone_have_a_minimiser_though_an_operator_has_no_sparse_matrix(scale):
    generator = torch.Generator().manual_seed(0)
    x, graph = scale * torch.randn(12, 2, dtype=torch.float64, generator=generator), testing.small_graph()
    objective = us.RowSparseFidelity(1.0) + us.GroupGap(torch.arange(12) % 2, 3.0)
    with us.ops.convergence.solve_reports() as reports:
        h = us.minimise(objective, x, graph)
    assert all(report.converged for report in reports)
    steps = us.unroll(objective, us.PrimalDual(step=0.3 * scale + 1e-9), 3000)(x, graph)
    gap = float(objective.value(h, x, graph) - objective.value(steps, x, graph))
    assert gap <= 1e-9 * (1 + scale)
