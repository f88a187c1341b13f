"""New kinds of terms keep the laws, print as maths, and are refused where they do not fit."""

import copy

import pytest
import torch

import unspool as us
from unspool import testing
from unspool.objective import labels
from unspool.testing import LawBroken, small_graph

GRAPH = small_graph()
GROUPS = torch.tensor([0, 1, 1, -1, 0, 0, 1, 1, 0, 1, 0, 1])
WEIGHTS = torch.linspace(0.1, 2.0, 12)

COMPOSITE = {
    "jumps": us.EdgeSparse(0.4),
    "jumps, entries": us.EdgeSparse(0.4, rows=False),
    "bends": us.EdgeSparse(0.3, order=2),
    "bends, learnt": us.EdgeSparse(us.Learnable(0.3, name="λ"), order=3),
    "nodes that bend": us.LaplacianSparse(0.4),
    "nodes that bend, entries": us.LaplacianSparse(us.Learnable(0.4, name="λ"), rows=False, power=2),
    "groups": us.GroupGap(GROUPS, 0.7),
}
SMOOTH = {
    "second order": us.HigherSmoothness(0.4),
    "third order": us.HigherSmoothness(0.4, power=3),
    "fifth order, metric": us.HigherSmoothness(0.1, metric=us.Symmetric(3), power=5),
    "high-pass fidelity": us.FilteredFidelity(0.5, filter=(1.0, 0.6)),
    "low-pass fidelity": us.FilteredFidelity(0.5, filter=(1.0, -0.4)),
    "three coefficients, learnt": us.FilteredFidelity(0.5, filter=(us.Learnable(1.0, name="c"), 0.2, 0.3)),
    "one coefficient": us.FilteredFidelity(0.5, filter=(2.0,)),
    "nodes": us.NodeFidelity(WEIGHTS, 0.3),
    "nodes, learnt": us.NodeFidelity(us.Learnable(WEIGHTS, within=(0, None), name="c"), 0.3),
    "entries": us.NodeFidelity(torch.rand(12, 3, generator=torch.Generator().manual_seed(0)) < 0.5),
    "target": us.NodeFidelity(WEIGHTS, 0.3, target=torch.ones(12, 3)),
    "labels": labels(torch.arange(12) % 3, torch.tensor([0, 4, 7]), 3, 0.5),
    "spread": us.Spread(0.4),
    "repulsion": us.Spread(-0.4),
    "power 1": us.EdgePenalty(us.Power(1.0, 0.3)),
    "power 1.5": us.EdgePenalty(us.Power(1.5, 0.2), 0.5),
    "power 2": us.EdgePenalty(us.Power(2.0, 0.0), 0.5),
    "log": us.EdgePenalty(us.Log(0.7), us.Learnable(0.4, name="β")),
    "capped": us.EdgePenalty(us.Capped(3.0), 0.5),
}
OPERATORS = [us.Incidence(), us.Incidence(2), us.LaplacianPower(), us.LaplacianPower(3), us.GroupDifference(GROUPS)]


@pytest.mark.parametrize("term", [*COMPOSITE.values(), *SMOOTH.values()], ids=[*COMPOSITE, *SMOOTH])
def test_terms_keep_their_laws(term):
    testing.check_term(term)


@pytest.mark.parametrize("operator", OPERATORS, ids=str)
def test_operators_keep_their_laws(operator):
    testing.check_operator(operator)
    testing.check_operator(operator, graph=us.graph.grid(3, 4, normalise=us.Normalisation.NONE).to(torch.float64))


class NotAdjoint(us.Incidence):
    def adjoint(self, z, graph):
        return 1.1 * super().adjoint(z, graph)


class TooSmall(us.Incidence):
    def squared_norm(self, graph):
        return 0.5


class Bent(us.Incidence):
    def __call__(self, h, graph):
        return super().__call__(h, graph).abs()


@pytest.mark.parametrize(("kind", "law"), [(NotAdjoint, "adjoint"), (TooSmall, "squared_norm"), (Bent, "linear")])
def test_the_law_of_operators_can_fail(kind, law):
    with pytest.raises(LawBroken, match=law):
        testing.check_operator(kind())


class WrongDual(us.EdgeSparse):
    def dual_prox(self, z, step, given):
        return 0.9 * super().dual_prox(z, step, given)


class WrongProx(us.EdgeSparse):
    def outer_prox(self, z, step, given):
        return super().outer_prox(z, 2 * step, given)


class WrongStep(us.EdgeSparse):
    def dual_step(self, z, step, ahead, given):
        moved, pull = super().dual_step(z, step, ahead, given)
        return moved, 0.9 * pull


@pytest.mark.parametrize("kind", [WrongDual, WrongProx, WrongStep])
def test_the_law_of_composite_terms_can_fail(kind):
    with pytest.raises(LawBroken):
        testing.check_term(kind(0.4))


def test_a_composite_term_without_an_operator_is_refused():
    class Lost(us.EdgeSparse):
        operator = None

    with pytest.raises(us.IncompatibleError, match=r"Lost\.operator"):
        us.Fidelity(1.0) + Lost(0.3)


@pytest.mark.parametrize("rule", [us.GradientDescent(), us.ProximalGradient(), us.Accelerated()])
def test_rules_without_duals_refuse_composite_terms(rule):
    with pytest.raises(us.IncompatibleError, match="PrimalDual"):
        us.unroll(us.Fidelity(1.0) + us.EdgeSparse(0.3), rule, depth=3)


@pytest.mark.long
@pytest.mark.parametrize("rows", [True, False])
@pytest.mark.parametrize("power", [1, 2])
def test_penalties_on_powers_of_the_laplacian_have_exact_minimisers(power, rows):
    """H = Q⁻¹(X − KᵀU), with U the minimiser of ⟨X − KᵀU, Q⁻¹(X − KᵀU)⟩ in a ball: dense steps on the dual problem."""
    weight, x = 0.8, torch.randn(12, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(5))
    objective = us.Fidelity(0.5) + us.Smoothness(0.1) + us.LaplacianSparse(weight, rows=rows, power=power)
    letters = f"‖L{'²' if power == 2 else ''} H‖{'₂,₁' if rows else '₁'}"
    assert str(objective) == f"0.5 ‖H − X‖²  +  0.1 ‖B H‖²  +  0.8 {letters}"
    with us.solve_reports() as reports:
        h = us.minimise(objective, x, GRAPH, tolerance=1e-11, limit=100_000)
    assert reports.converged
    laplacian = GRAPH.laplacian().to_dense()
    k = torch.linalg.matrix_power(laplacian, power)
    inverse = torch.linalg.inv(torch.eye(12, dtype=x.dtype) + 0.2 * laplacian)
    step, u = 1 / torch.linalg.matrix_norm(k @ inverse @ k, 2), torch.zeros_like(x)
    for _ in range(20_000):
        u = u + step * k @ (inverse @ (x - k @ u))
        u = u / (u.norm(dim=1, keepdim=True) / weight).clamp(min=1) if rows else u.clamp(-weight, weight)
    assert torch.allclose(inverse @ (x - k @ u), h, atol=1e-7)
    assert rows or bool(((k @ h).abs() < 1e-7).any())  # some entries are the mean of their neighbours
    steps = us.unroll(objective, us.PrimalDual(), depth=1, adjoint=us.FixedPoint())(x, GRAPH)
    assert torch.allclose(steps, h, atol=1e-6)


def test_the_adjoint_of_a_laplacian_that_is_not_symmetric_is_refused():
    directed = us.Graph.from_edges(torch.tensor([[0, 1, 2], [1, 2, 0]]), 3, directed=True).with_general_laplacian()
    net = us.unroll(us.Fidelity(0.5) + us.LaplacianSparse(0.1), us.PrimalDual(step=0.3), depth=2)
    with pytest.raises(us.IncompatibleError, match="directed"):
        net(torch.eye(3), directed)


# -- powers of L -------------------------------------------------------------------------------------------------------


def dense(graph):
    n = graph.nodes
    return graph.scale * (torch.eye(n, dtype=torch.float64) - graph.smoother.to_dense())


@pytest.mark.parametrize("how", [us.Normalisation.SYMMETRIC, us.Normalisation.NONE])
def test_powers_lower_and_have_their_dense_minimiser(how):
    graph = us.graph.grid(3, 4, normalise=how).to(torch.float64)
    x, lap = torch.randn(12, 2, dtype=torch.float64), dense(graph)
    eye = torch.eye(12, dtype=torch.float64)
    objective = (
        us.FilteredFidelity(0.7, filter=(1.0, 0.5, 0.1)) + us.Smoothness(0.2) + us.HigherSmoothness(0.3, power=3)
    )
    filtered = 0.7 * (eye + 0.5 * lap + 0.1 * lap @ lap)
    expected = torch.linalg.solve(filtered + 0.2 * lap + 0.3 * lap @ lap @ lap, filtered @ x)
    assert torch.allclose(us.minimise(objective, x, graph), expected, atol=1e-9)
    net = us.unroll(objective, us.GradientDescent(), depth=4)
    assert isinstance(net.adjoint, us.Polynomial)
    testing.check_unrolled(net.double(), graph=graph)
    h = x
    for _ in range(4):
        gradient = 2 * (filtered @ (h - x) + 0.2 * lap @ h + 0.3 * lap @ lap @ lap @ h)
        h = h - gradient / float(net.problem(x, graph, 1).lipschitz())
    assert torch.allclose(net(x, graph), h, atol=1e-10)


def test_the_response_of_an_exact_minimiser_has_powers():
    found = us.spectral.response(us.unroll(us.Fidelity(0.5) + us.HigherSmoothness(0.5), us.Exact()))
    assert torch.allclose(found([0.0, 1.0, 2.0]), torch.tensor([1.0, 0.5, 0.2], dtype=torch.float64))


def test_bounds_of_polynomials_hold_and_are_close():
    from unspool.objective import channel

    maps = (0.3, -1.0, 0.2, 0.4)
    at = torch.linspace(0, 2, 1001, dtype=torch.float64)
    value = sum(c * at**p for p, c in enumerate(maps))
    low, high = channel.eigenvalue_bounds(maps, 2.0)
    assert low <= value.min() <= low + 0.15
    assert high - 0.15 <= value.max() <= high
    assert value.abs().max() <= channel.largest_norm(maps, 2.0)


# -- missing values, labels, the mean ----------------------------------------------------------------------------------


def test_missing_values_are_filled_by_the_dense_solution():
    graph, lap = GRAPH, dense(GRAPH)
    seen = torch.rand(12, generator=torch.Generator().manual_seed(1)) < 0.5
    x = torch.randn(12, 2, dtype=torch.float64)
    expected = torch.linalg.solve(torch.diag(seen.double()) + 0.3 * lap, seen.double()[:, None] * x)
    assert torch.allclose(us.minimise(us.NodeFidelity(seen) + us.Smoothness(0.3), x, graph), expected, atol=1e-8)
    other = torch.where(seen[:, None], x, 1e3 * torch.ones_like(x))
    assert torch.allclose(us.minimise(us.NodeFidelity(seen) + us.Smoothness(0.3), other, graph), expected, atol=1e-8)


def test_repulsion_is_the_complement_graph():
    """Σ over pairs that are not neighbours, at O(n d)."""
    graph = us.graph.ring(6, normalise=us.Normalisation.NONE, loops=0).to(torch.float64)
    h = torch.randn(6, 2, dtype=torch.float64)
    given, adjacency = us.Given(h, graph), graph.to_dense()
    away = sum(float((h[i] - h[j]).square().sum()) for i in range(6) for j in range(i) if adjacency[i, j] == 0)
    joint = us.Spread(-0.5) + us.Smoothness(0.5 / 6)
    assert float(joint.value_at(h, given)) == pytest.approx(-0.5 / 6 * away)


@pytest.mark.parametrize(
    ("make", "field"),
    [
        (lambda: us.EdgeSparse(0.1, order=0), "order"),
        (lambda: us.LaplacianSparse(0.1, power=0), "power"),
        (lambda: us.HigherSmoothness(0.1, power=1), "power"),
        (lambda: us.FilteredFidelity(0.1, filter=0.3), "filter"),
        (lambda: us.GroupGap(torch.tensor([0, 0, 0])), "groups"),
        (lambda: us.GroupGap(torch.tensor([0, 2])), "groups"),
        (lambda: us.EdgePenalty("log"), "penalty"),
        (lambda: us.Power(0.5), "p"),
        (lambda: us.Power(1.0, 0.0), "smoothing"),
        (lambda: us.Log(0.0), "scale"),
        (lambda: us.Incidence(-1), "power"),
        (lambda: us.PrimalDual(balance=2.0), "balance"),
        (lambda: labels(torch.tensor([0, 7]), torch.tensor([1]), 3), "labels"),
    ],
)
def test_bad_arguments_are_named(make, field):
    with pytest.raises(us.InputError) as caught:
        make()
    assert caught.value.argument == field


# -- robust edges ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("penalty", [us.Power(1.0, 0.3), us.Power(1.5, 0.1), us.Log(0.4), us.Capped(1.5)])
def test_the_frozen_quadratic_lies_above_and_touches(penalty):
    term = us.EdgePenalty(penalty, 0.7)
    generator = torch.Generator().manual_seed(0)
    at = torch.randn(12, 3, dtype=torch.float64, generator=generator)
    given = us.Given(at, GRAPH)
    frozen = us.EdgeSmoothness(term.edge_weights(at, given), 0.7)
    gap = float(term.value(at, given) - frozen.value(at, given))
    assert torch.allclose(frozen.gradient(at, given), term.gradient(at, given))
    for size in (0.1, 1.0, 5.0):
        h = at + size * torch.randn(12, 3, dtype=torch.float64, generator=generator)
        assert float(term.value(h, given)) <= float(frozen.value(h, given)) + gap + 1e-9


def test_diagonals_are_those_of_the_hessian():
    x = torch.randn(12, 3, dtype=torch.float64)
    given = us.Given(x, GRAPH)
    weights = torch.rand(GRAPH.incidence().shape[0], dtype=torch.float64)
    for objective in (us.Fidelity(0.3) + us.Smoothness(0.7), us.NodeFidelity(WEIGHTS) + us.Ridge(0.1)):
        assert torch.allclose(
            torch.as_tensor(objective.diagonal_at(x, given)).expand(12, 3),
            hessian_diagonal(objective, x, given),
            atol=1e-9,
        )
    b = GRAPH.incidence().to_dense()
    found = GRAPH.squared_incidence.T @ weights[:, None]
    assert torch.allclose(found[:, 0], (b.T @ torch.diag(weights) @ b).diagonal())


def hessian_diagonal(objective, x, given):
    out = torch.zeros_like(x)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            unit = torch.zeros_like(x)
            unit[i, j] = 1.0
            out[i, j] = objective.hessian_times(x, unit, given)[i, j]
    return out


def test_hessian_products_agree_with_differences():
    objective = us.Fidelity(0.3) + us.EdgePenalty(us.Log(0.4), 0.8) + us.Spread(0.2) + us.HigherSmoothness(0.1)
    x, v = torch.randn(2, 12, 3, dtype=torch.float64)
    given = us.Given(x, GRAPH)
    ahead, behind = (objective.gradient_at(x + s * v, given) for s in (1e-6, -1e-6))
    assert torch.allclose(objective.hessian_times(x, v, given), (ahead - behind) / 2e-6, atol=1e-6)


# -- computed coefficients -----------------------------------------------------------------------------------------------


def signed():
    torch.manual_seed(0)
    weights = us.Computed(us.nn.EdgeScore(3, hidden=4), name="w(X)")
    return us.unroll(
        us.Fidelity(0.5) + us.EdgeSmoothness(weights, 0.25), us.GradientDescent(step=0.5), depth=3
    ).double()


def test_computed_coefficients_are_owned_and_train():
    net = signed()
    testing.check_unrolled(net)
    names = [n for n, _ in net.named_parameters()]
    assert names
    assert all(n.startswith("computed.w(X).") for n in names)
    x = torch.randn(12, 3, dtype=torch.float64)
    net(x, GRAPH).square().sum().backward()
    assert all(p.grad is not None and bool(p.grad.abs().sum() > 0) for p in net.parameters())


def test_computed_coefficients_equal_the_same_weights_given():
    net = signed()
    x = torch.randn(12, 3, dtype=torch.float64)
    weights = net.computed["w(X)"](x, GRAPH).detach()
    plain = us.unroll(us.Fidelity(0.5) + us.EdgeSmoothness(weights, 0.25), us.GradientDescent(step=0.5), depth=3)
    assert torch.allclose(net(x, GRAPH), plain(x, GRAPH))


def test_a_copy_has_modules_of_its_own():
    net = signed()
    twin = copy.deepcopy(net)
    x = torch.randn(12, 3, dtype=torch.float64)
    before = net(x, GRAPH)
    with torch.no_grad():
        for p in twin.parameters():
            p.add_(1.0)
    assert torch.equal(net(x, GRAPH), before)
    assert not torch.allclose(twin(x, GRAPH), before)


def test_computed_weights_of_nodes():
    class Gate(torch.nn.Linear):
        def forward(self, x, graph):
            return torch.sigmoid(super().forward(x))

    gate = us.Computed(Gate(3, 1), name="c(X)")
    net = us.unroll(us.NodeFidelity(gate) + us.Smoothness(1.0), us.GradientDescent(step=0.3), depth=2)
    assert isinstance(net.adjoint, us.Stored)
    testing.check_unrolled(net)
    exact = us.unroll(us.NodeFidelity(gate) + us.Smoothness(1.0), us.Exact()).double()
    x = torch.randn(12, 3, dtype=torch.float64)
    exact(x, GRAPH).square().sum().backward()
    assert all(bool(p.grad.abs().sum() > 0) for p in exact.parameters())


def test_a_computed_weight_is_not_a_number():
    with pytest.raises(TypeError, match="not a single number"):
        us.Fidelity(us.Computed(torch.nn.Identity()))


class Alike(torch.nn.Module):
    """exp(−‖xᵢ − xⱼ‖²) for every edge: computed, and nothing to learn."""

    def forward(self, x, graph):
        i, j = us.graph.edge_list(graph)
        return torch.exp(-(x[..., i, :] - x[..., j, :]).square().sum(-1))


def test_computed_coefficients_are_computed_without_a_network_too():
    x, alike = torch.randn(12, 2, generator=torch.Generator().manual_seed(2)), us.Computed(Alike(), name="a(X)")
    graph = GRAPH.to(torch.float32)
    computed, given = (us.Fidelity(0.5) + us.EdgeSmoothness(w) for w in (alike, Alike()(x, graph)))
    assert torch.equal(us.minimise(computed, x, graph), us.minimise(given, x, graph))
    assert torch.allclose(us.minimise(computed, x, graph), us.unroll(computed, us.Exact())(x, graph), atol=1e-5)
    assert torch.equal(computed.value(x + 1, x, graph), given.value(x + 1, x, graph))
    assert torch.equal(computed.gradient(2 * x, x, graph), given.gradient(2 * x, x, graph))
    testing.check_term(us.EdgeSmoothness(us.Computed(us.nn.EdgeScore(3))))  # of float32, tried in float64
    unknown = us.FeatureComputed(us.nn.EdgeTrust(us.Capped(2.0)), name="w(features)")
    with pytest.raises(us.IncompatibleError, match=r"w\(features\) is computed from features that are not known here"):
        us.minimise(us.Fidelity(0.5) + us.EdgeSmoothness(unknown), x, graph)


def test_computed_edges_print_under_their_name():
    signs, alike = (us.Computed(us.nn.EdgeScore(3), name=name) for name in ("s(X)", "a(X)"))
    objective = us.EdgeSmoothness(signs, 0.2) + us.EdgeSmoothness(alike) + us.EdgeSmoothness(torch.ones(3))
    assert str(objective) == "0.2 Σₑ s(X)ₑ ‖(B H)ₑ‖²  +  Σₑ a(X)ₑ ‖(B H)ₑ‖²  +  Σₑ wₑ ‖(B H)ₑ‖²"
    assert "<mi>s</mi><msub><mrow><mo>(</mo><mi>X</mi>" in objective._repr_html_()
