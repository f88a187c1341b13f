"""FixedPoint: few steps where a rule is slow, a residual that is true, derivatives to second order, and words where it fails."""

import warnings
from dataclasses import dataclass

import pytest
import torch

import unspool as us
from unspool.algorithm.algorithm import Problem
from unspool.algorithm.fixed_point import iterate
from unspool.algorithm.solvers import Effort
from unspool.testing import small_graph

pytestmark = pytest.mark.long

GRAPH = small_graph()
X = torch.randn(12, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(3))
LONG = us.graph.path(60).to(torch.float64)
NOISE = torch.randn(60, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))

SLOW = {
    "smooth": (us.Fidelity(0.003) + us.Smoothness(1.0), us.GradientDescent()),
    "sparse": (us.Fidelity(0.01) + us.Smoothness(1.0) + us.Sparse(0.001), us.ProximalGradient()),
    "reweighted": (us.Fidelity(0.05) + us.EdgePenalty(us.Power(1.2, 0.1)), us.Reweighted(us.Jacobi())),
    "bends": (us.Fidelity(0.2) + us.EdgeSparse(0.2, order=2), us.PrimalDual()),
}


@pytest.mark.parametrize("name", SLOW)
def test_combined_steps_are_fewer_and_end_where_plain_ones_do(name):
    objective, rule = SLOW[name]
    problem = Problem(objective, us.Given(NOISE, LONG))
    effort = Effort(1e-8, 50_000, True, None)
    (plain, slow), (fast, quick) = (iterate(rule, problem, NOISE, effort, memory) for memory in (0, 10))
    assert quick.iterations < slow.iterations / 3
    size = torch.linalg.vector_norm(plain[0])
    assert float(torch.linalg.vector_norm(plain[0] - fast[0]) / size) < 1e-6
    exact = us.minimise(objective, NOISE, LONG, tolerance=1e-11, limit=200_000)
    assert (
        float(torch.linalg.vector_norm(exact - fast[0]) / size) < 1e-6
    )  # the residual is a distance, not a small step


def network(objective, rule, **settings):
    return us.unroll(objective, rule, 1, adjoint=us.FixedPoint(**settings)).double()


def weighted():
    return us.Learnable(0.4, within=(0, 1), name="α")


RULES = {
    "GradientDescent": lambda a: network(us.Fidelity(a) + us.Smoothness(1 - a), us.GradientDescent(), tolerance=1e-13),
    "Reweighted": lambda a: network(
        us.Fidelity(a) + us.EdgePenalty(us.Log(2.0), 0.3), us.Reweighted(us.Jacobi(step=0.9)), tolerance=1e-13
    ),
    "PrimalDual": lambda a: network(
        us.Fidelity(a) + us.Smoothness(0.1) + us.EdgeSparse(0.02), us.PrimalDual(), tolerance=1e-13
    ),
    "Anderson": lambda a: network(us.Fidelity(a) + us.Smoothness(1 - a), us.Anderson(us.Jacobi()), tolerance=1e-13),
}


@pytest.mark.parametrize("rule", RULES)
def test_derivatives_to_second_order_agree_with_finite_differences(rule):
    net = RULES[rule](weighted())
    (raw,) = net.parameters()
    generator = torch.Generator().manual_seed(1)
    along_x = torch.randn(X.shape, dtype=X.dtype, generator=generator)
    probe = torch.randn(X.shape, dtype=X.dtype, generator=generator)

    def loss(t):
        values = {"coefficients.α": raw + t}
        return (torch.func.functional_call(net, values, (X + t * along_x, GRAPH)).sin() * probe).sum()

    def derivatives(at):
        t = torch.tensor(at, dtype=X.dtype, requires_grad=True)
        (first,) = torch.autograd.grad(loss(t), t, create_graph=True)
        (second,) = torch.autograd.grad(first, t)
        return float(first.detach()), float(second)

    first, second = derivatives(0.0)
    size = 1e-4
    ahead, behind = (float(loss(torch.tensor(s, dtype=X.dtype)).detach()) for s in (size, -size))
    assert first == pytest.approx((ahead - behind) / (2 * size), rel=1e-5, abs=1e-7)
    ahead, behind = (derivatives(s)[0] for s in (size, -size))
    assert second == pytest.approx((ahead - behind) / (2 * size), rel=1e-4, abs=1e-6)


def test_both_ways_are_reported():
    net, x = RULES["GradientDescent"](weighted()), X.clone().requires_grad_()
    with us.solve_reports() as reports:
        net(x, GRAPH).sum().backward()
    assert [r.method for r in reports] == ["steps of GradientDescent", "Neumann series"]
    assert reports.converged
    assert all(0 < r.iterations < 200 and r.residual <= 1e-13 for r in reports)


def test_a_tolerance_that_was_missed_is_warned_about_and_reported():
    net = network(us.Fidelity(0.003) + us.Smoothness(1.0), us.GradientDescent(), tolerance=1e-12, limit=80)
    with pytest.warns(us.ConvergenceWarning, match="limit on iterations was reached"):
        h = net(NOISE, LONG)
    with us.solve_reports() as reports, warnings.catch_warnings():
        warnings.simplefilter("error")
        net(NOISE, LONG)
    (report,) = reports
    assert report.exhausted
    assert not report.converged
    assert report.iterations == 80
    exact = us.minimise(us.Fidelity(0.003) + us.Smoothness(1.0), NOISE, LONG)
    assert float(torch.linalg.vector_norm(h - exact) / torch.linalg.vector_norm(exact)) < 100 * report.residual


def test_points_that_a_rule_leaves_are_refused_though_combined_steps_find_them():
    objective = us.Fidelity(0.5) + us.Smoothness(0.5)
    with pytest.raises(us.IncompatibleError, match="did not come to rest"):
        network(objective, us.GradientDescent(step=1.2))(X, GRAPH)
    with pytest.raises(us.IncompatibleError, match="did not come to rest"):
        network(objective, us.GradientDescent(step=1e200))(X, GRAPH)


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        (us.Chebyshev(), "Chebyshev depend on those before"),
        (us.ConjugateGradient(), "ConjugateGradient have no derivative"),
        (us.Newton(), "Newton have no derivative"),
        (us.Reweighted(us.ConjugateGradient()), "ConjugateGradient have no derivative"),
    ],
)
def test_rules_without_a_derivative_at_rest_are_refused(rule, words):
    with pytest.raises(us.IncompatibleError, match=words):
        network(us.Fidelity(0.5) + us.Smoothness(0.5), rule)(X, GRAPH)


@pytest.mark.parametrize("adjoint", [us.FixedPoint, us.Implicit])
@pytest.mark.parametrize("settings", [{"tolerance": 0.0}, {"tolerance": float("nan")}, {"limit": 0}, {"limit": 1.5}])
def test_bad_settings_are_named(adjoint, settings):
    with pytest.raises(us.InputError) as wrong:
        adjoint(**settings)
    assert wrong.value.argument == next(iter(settings))


@dataclass(frozen=True, eq=False)
class SecondDifferences(us.LinearOperator):
    """Along the order of the nodes, with a weight for each."""

    weights: torch.Tensor

    def __call__(self, h, graph):
        return self.weights[:, None] * (h[..., 2:, :] - 2 * h[..., 1:-1, :] + h[..., :-2, :])

    def adjoint(self, z, graph):
        z, pad = self.weights[:, None] * z, torch.nn.functional.pad
        return pad(z, (0, 0, 2, 0)) - 2 * pad(z, (0, 0, 1, 1)) + pad(z, (0, 0, 0, 2))

    def squared_norm(self, graph):
        return 16 * float(self.weights.max()) ** 2


@dataclass(frozen=True, eq=False)
class FewBends(us.CompositeTerm):
    weight: float
    operator: us.LinearOperator

    def outer_value(self, z, given):
        return z.abs().sum((-2, -1)) * given[self.weight]

    def outer_prox(self, z, step, given):
        return us.ops.prox.soft_threshold(z, step * given[self.weight])


def test_a_rule_that_swings_before_it_settles_is_at_rest():
    """ADMM makes a nudge of its multipliers nearly four times larger, and then small: that is no point to flee from."""
    generator = torch.Generator().manual_seed(0)
    weights = torch.rand(38, dtype=torch.float64, generator=generator) + 0.5
    x = torch.linspace(0, 4, 40).double()[:, None] + 0.3 * torch.randn(40, 1, dtype=torch.float64, generator=generator)
    graph = us.graph.path(40, normalise=us.Normalisation.NONE, loops=0).to(torch.float64)
    objective = us.Fidelity(0.5) + us.Smoothness(0.05) + FewBends(0.7, SecondDifferences(weights))
    h = us.unroll(objective, us.ADMM(), depth=1, adjoint=us.FixedPoint())(x, graph)
    assert torch.allclose(h, us.minimise(objective, x, graph), rtol=0, atol=1e-8)


def test_duals_that_are_not_unique_are_nothing_to_flee_from():
    """A nudge of the multipliers stays, and H comes back: the minimiser was refused."""
    generator = torch.Generator().manual_seed(9)
    a, x = (torch.randn(*s, dtype=torch.float64, generator=generator) for s in ((2, 2), (8, 2)))
    metric = a @ a.T + 0.3 * torch.eye(2, dtype=torch.float64)
    graph = us.graph.ring(8, normalise=us.Normalisation.NONE).to(torch.float64)
    objective = us.Fidelity(0.6, metric=metric) + us.Simplex() + us.EdgeSparse(0.92, rows=False)
    h = us.minimise(objective, x, graph)
    assert torch.allclose(h, us.unroll(objective, us.PrimalDual(), 2000)(x, graph), rtol=0, atol=1e-9)
