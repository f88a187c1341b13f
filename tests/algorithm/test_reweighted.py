"""Reweighted: majorise-minimise around another rule."""

import itertools

import pytest
import torch

import unspool as us
from unspool import testing
from unspool.testing import small_graph

pytestmark = pytest.mark.long

GRAPH = small_graph()
X = 2 * torch.randn(12, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(5))
B = GRAPH.incidence().to_dense()
PENALTIES = [us.Log(0.4), us.Capped(1.5), us.Power(1.0, 0.2), us.Power(1.5, 0.1), us.Power(2.0)]


@pytest.mark.parametrize("penalty", PENALTIES, ids=str)
@pytest.mark.parametrize(
    "rule",
    [us.Reweighted(us.GradientDescent()), us.Reweighted(us.GradientDescent(), steps=4), us.Reweighted(us.ConjugateGradient(), steps=3)],
    ids=["one", "four", "conjugate"],
)  # fmt: skip
def test_the_objective_never_rises(rule, penalty):
    objective = us.Fidelity(0.3) + us.Smoothness(0.1) + us.EdgePenalty(penalty, 0.8)
    path = us.unroll(objective, rule, depth=30).trace(X, GRAPH).iterates
    values = [float(objective.value(h, X, GRAPH)) for h in path]
    assert all(after <= before + 1e-12 * abs(before) for before, after in itertools.pairwise(values))
    assert values[-1] < values[0]


def test_its_layers_are_reweighted_least_squares():
    """Γₑ = 1/(1 + ‖(BH)ₑ‖²/τ), then the solution of (α + β Bᵀ Γ B) H = α X."""
    alpha, beta, tau, h = 0.3, 0.8, 0.4, X
    for _ in range(4):
        gamma = 1 / (1 + (B @ h).square().sum(1) / tau)
        h = torch.linalg.solve(alpha * torch.eye(12, dtype=X.dtype) + beta * B.T @ torch.diag(gamma) @ B, alpha * X)
    objective = us.Fidelity(alpha) + us.EdgePenalty(us.Log(tau), beta)
    net = us.unroll(objective, us.Reweighted(us.ConjugateGradient(), steps=14), depth=4)
    assert torch.allclose(net(X, GRAPH), h, atol=1e-9)


def test_several_steps_use_the_same_weights():
    alpha, beta, tau, h = 0.3, 0.8, 0.4, X
    step = 1 / (2 * alpha + 4 * beta)
    for _ in range(3):
        gamma = torch.diag(1 / (1 + (B @ h).square().sum(1) / tau))
        for _ in range(5):
            h = h - step * (2 * alpha * (h - X) + 2 * beta * B.T @ gamma @ B @ h)
    objective = us.Fidelity(alpha) + us.EdgePenalty(us.Log(tau), beta)
    net = us.unroll(objective, us.Reweighted(us.GradientDescent(), steps=5), depth=3)
    assert torch.allclose(net(X, GRAPH), h, atol=1e-12)


@pytest.mark.parametrize("inner", [us.GradientDescent(), us.Jacobi(step=0.9)], ids=lambda a: a.name)
def test_one_step_is_that_of_the_rule_itself(inner):
    objective = us.Fidelity(0.3) + us.EdgePenalty(us.Log(0.4), 0.8)
    one, other = (us.unroll(objective, rule, depth=5)(X, GRAPH) for rule in (us.Reweighted(inner), inner))
    assert torch.allclose(one, other, atol=1e-12)


@pytest.mark.parametrize(
    "rule",
    [
        us.Reweighted(us.GradientDescent()),
        us.Reweighted(us.ConjugateGradient(), steps=3),
        us.Reweighted(us.Accelerated(), steps=5),
        us.Reweighted(us.PrimalDual()),
        us.Reweighted(us.ADMM(), steps=2),
    ],
    ids=lambda r: r.inner.name,
)
def test_it_keeps_the_laws(rule):
    testing.check_algorithm(rule)
    robust = us.Fidelity(0.5) + us.EdgePenalty(us.Power(1.5, 0.1), 0.4)
    testing.check_algorithm(rule, robust)
    if us.Kind.COMPOSITE in rule.handles:
        testing.check_algorithm(rule, robust + us.EdgeSparse(0.2))


def test_gradients_flow_through_the_weights_and_stacks_agree():
    step = us.Learnable(0.1, within=(0, None), name="η")
    beta = us.Learnable(0.8, per_layer=True, name="β")
    objective = us.Fidelity(0.3) + us.EdgePenalty(us.Log(0.4), beta)
    net = us.unroll(objective, us.Reweighted(us.GradientDescent(step=step), steps=2), depth=3).double()
    assert set(net.coefficients) == {"η", "β"}
    testing.check_unrolled(net)
    testing.check_unrolled(us.unroll(objective, us.Reweighted(us.ConjugateGradient(), steps=2), depth=3))
    assert torch.autograd.gradcheck(lambda x: net(x, GRAPH), X.clone().requires_grad_())


def test_without_penalties_it_lowers():
    objective = us.Fidelity(0.3) + us.Smoothness(0.7)
    net = us.unroll(objective, us.Reweighted(us.GradientDescent(step=0.3), steps=2), depth=3)
    assert isinstance(net.adjoint, us.Polynomial)
    assert torch.allclose(
        net(X, GRAPH), us.unroll(objective, us.GradientDescent(step=0.3), depth=6)(X, GRAPH), atol=1e-12
    )


def test_what_does_not_fit_is_refused():
    with pytest.raises(us.InputError, match="inner"):
        us.Reweighted("gradient")
    with pytest.raises(us.InputError, match="steps"):
        us.Reweighted(us.GradientDescent(), steps=0)
    with pytest.raises(us.IncompatibleError, match="needs a gradient, but Sparse has none"):
        us.unroll(us.Fidelity(0.5) + us.Sparse(0.1), us.Reweighted(us.GradientDescent()), depth=2)
    with pytest.raises(us.IncompatibleError, match="Chebyshev needs bounds"):
        us.unroll(us.Fidelity(0.5) + us.EdgePenalty(us.Log(1.0)), us.Reweighted(us.Chebyshev()), depth=2)
    steep = us.Problem(us.Fidelity(0.5) + us.EdgePenalty(us.Power(3.0)), us.Given(X, GRAPH))
    with pytest.raises(us.IncompatibleError, match="without a bound on its slope"):
        us.Reweighted(us.GradientDescent()).step_size(steep)
    with pytest.raises(us.IncompatibleError, match=r"lies above the quadratic that touches it.*use Newton"):
        us.unroll(steep.objective, us.Reweighted(us.ConjugateGradient()), depth=2)


@pytest.mark.parametrize("p", [3.0, 4.0])
def test_the_way_out_for_steep_penalties_leads_to_the_minimiser(p):
    objective = us.Fidelity(0.5) + us.EdgePenalty(us.Power(p), 0.4)
    with pytest.raises(us.IncompatibleError, match=r"unroll Newton\(\)"):
        us.minimise(objective, 3 * X, GRAPH)
    h = us.unroll(objective, us.Newton(), depth=40)(3 * X, GRAPH)
    assert float(objective.gradient(h, 3 * X, GRAPH).abs().max()) < 1e-8


class Own(us.GradientDescent):
    """A rule from outside of the package, inside of one from within."""

    def update(self, state, problem):
        (h,) = super().update(state, problem)
        return (h.clamp(-1, 1),)


def test_a_rule_of_ones_own_inside_is_tried_like_one():
    net = us.unroll(us.Fidelity(0.3) + us.Smoothness(0.7), us.Reweighted(Own()), depth=3)
    assert isinstance(net.adjoint, us.Stored)
    assert float(net(X, GRAPH).abs().max()) <= 1


def test_its_step_is_that_of_the_rule_inside():
    penalty = us.EdgePenalty(us.Power(1.5, 0.1), 0.4)
    problem = us.Problem(us.Fidelity(0.5) + penalty, us.Given(X, GRAPH))
    assert us.Reweighted(us.GradientDescent(step=0.3)).step_size(problem) == 0.3
    assert us.Reweighted(us.GradientDescent()).step_size(problem) == us.GradientDescent().step_size(problem)
    learnt = us.Problem(us.Fidelity(0.5) + us.LearntEdges(0.4), us.Given(X, GRAPH))
    for rule in (us.Reweighted(us.GradientDescent()), us.BlockCoordinate()):
        assert rule.step_size(learnt) == pytest.approx(1 / (1 + 4 * 0.4))
    net = us.unroll(
        us.Fidelity(0.5) + penalty + us.Activation(torch.nn.ReLU()), us.Reweighted(us.ProximalGradient()), 3
    )
    assert float(net(X, GRAPH).min()) >= 0


@pytest.mark.parametrize("p", [2.5, 4.0])
def test_penalties_steeper_than_squares_keep_the_laws_and_have_rules_that_settle(p):
    testing.check_term(us.EdgePenalty(us.Power(p), 0.7))
    objective = us.Fidelity(1.0) + us.EdgePenalty(us.Power(p), 2.0)
    x = 3 * X
    for rule, depth in ((us.Newton(), 20), (us.Jacobi(step=1 / (p - 1)), 200)):
        told = us.unroll(objective, rule, depth).trace(x, GRAPH)
        assert told.gradient[-1] < 1e-4 * told.gradient[0]
        assert "no bound on its slope" in str(told)  # a solver with steps of 1/L would need one
    with pytest.raises(us.IncompatibleError, match=r"no steps of 1/L; unroll Newton\(\)"):
        us.minimise(objective, x, GRAPH)


class Steep(us.SmoothTerm):
    """Σ h⁴, whose author says that there is no bound by an infinite one."""

    uses_input = False

    def value(self, h, given):
        return h.pow(4).sum((-2, -1))

    def gradient(self, h, given):
        return 4 * h**3

    def lipschitz(self, given):
        return float("inf")


def test_steps_over_an_infinite_bound_would_stand_still_and_are_refused():
    with pytest.raises(us.IncompatibleError, match="has no Lipschitz constant"):
        us.unroll(us.Fidelity(1.0) + Steep(), us.GradientDescent(), depth=2)(X, GRAPH)
