"""Solvers answer for themselves: what they report is true, and what they missed is said aloud."""

import math
import warnings

import pytest
import torch

import unspool as us
from unspool.ops.conjugate import conjugate_gradients

OBJECTIVES = {
    "numbers": lambda a: us.Fidelity(a) + us.Smoothness(1 - a),
    "metric": lambda a: us.Fidelity(a, metric=torch.diag(torch.tensor([1.0, 2.0]))) + us.Smoothness(1 - a),
    "edges": lambda a: us.Fidelity(a) + us.EdgeSmoothness(torch.ones(59), weight=1 - a),
    "non-negative": lambda a: us.Fidelity(a) + us.Smoothness(1 - a) + us.NonNegative(),
    "sparse": lambda a: us.Fidelity(a) + us.Smoothness(1 - a) + us.Sparse(0.1 * a),
}


@pytest.fixture(scope="module")
def path():
    return us.graph.path(60)


def signal(graph, seed=0):
    random = torch.Generator().manual_seed(seed)
    return torch.randn(graph.nodes, 2, generator=random, dtype=torch.float64).to(graph.dtype)


def left(objective, h, x, graph):
    """What is left of the gradient, or of the proximal gradient, by the objective's own formulas in float64."""
    h, x, graph = h.double(), x.double(), graph.to(torch.float64)
    problem = us.Problem(objective, us.Given(x, graph))
    if objective.smooth:
        return (problem.gradient(h).norm(dim=0) / problem.gradient(torch.zeros_like(h)).norm(dim=0)).max().item()
    step = 1 / float(problem.lipschitz())
    move = problem.prox(h - problem.gradient(h) * step, step) - h
    low = max(2 * float(objective.terms[0].weight.value), 1e-3 / step)
    return float(move.norm() / step / low / h.norm())


@pytest.mark.long
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("alpha", [0.5, 0.01, 1e-4])
@pytest.mark.parametrize("name", OBJECTIVES)
def test_the_report_says_what_is_left(name, alpha, dtype, path):
    graph, objective = path.to(dtype), OBJECTIVES[name](alpha)
    x = signal(graph)
    with us.solve_reports() as reports:
        h = us.minimise(objective, x, graph)
    (report,) = reports
    assert report.iterations > 0
    assert report.tolerance == (1e-10 if dtype == torch.float64 else 1e-6)
    assert report.converged == (report.residual <= report.tolerance)
    noise = 30 * report.attainable  # in float32 the look itself is rounded
    assert report.residual == pytest.approx(left(objective, h, x, graph), rel=0.5, abs=noise)
    if dtype == torch.float64:
        assert report.converged


@pytest.mark.long
@pytest.mark.parametrize("name", ["numbers", "metric", "edges"])
@pytest.mark.parametrize("alpha", [0.5, 0.01, 1e-3, 1e-4, 1e-5])
def test_nothing_above_an_asked_tolerance_is_returned_in_silence(name, alpha, path):
    objective, x = OBJECTIVES[name](alpha), signal(path)
    for run in (
        lambda t: us.minimise(objective, x, path, tolerance=t),
        lambda t: us.unroll(objective, us.Exact(t))(x, path),
    ):
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            h = run(1e-7)
        missed = left(objective, h, x, path) > 1.5e-7
        assert bool(found) or not missed
        assert all(w.category is us.ConvergenceWarning for w in found)


def test_far_below_what_the_dtype_allows_is_a_warning_without_being_asked(path):
    objective = OBJECTIVES["numbers"](1e-5)
    with pytest.warns(us.ConvergenceWarning, match=r"float32.*float64"):
        us.minimise(objective, torch.ones(60, 2), path)
    with pytest.warns(us.ConvergenceWarning, match=r"float32.*float64"):
        us.unroll(objective, us.Exact())(torch.ones(60, 2), path)


def test_what_is_no_solution_at_all_is_refused():
    path = us.graph.path(2000)
    for run in (us.minimise, lambda o, x, g: us.unroll(o, us.Exact())(x, g)):
        with pytest.raises(us.IncompatibleError, match="no minimiser was found"):
            run(us.Fidelity(1e-8) + us.Smoothness(1.0), torch.ones(2000, 1), path)


@pytest.mark.long
@pytest.mark.parametrize("name", ["non-negative", "sparse"])
def test_slow_swings_of_the_momentum_are_waited_for(name):
    """A pause of 500 steps used to count as the end, with four hundredths of the signal still missing."""
    graph = us.graph.sensor(1000)[0].to(torch.float64)
    objective = (
        us.Fidelity(1e-4) + us.Smoothness(1 - 1e-4) + (us.NonNegative() if name == "non-negative" else us.Sparse(1e-5))
    )
    torch.manual_seed(0)
    x = torch.randn(1000, 3).double()
    with us.solve_reports() as reports:
        h = us.minimise(objective, x, graph)
    assert reports.converged
    assert left(objective, h, x, graph) <= 1.1e-10


def test_the_limit_is_told_with_numbers(path):
    x = signal(path)
    for objective in (OBJECTIVES["metric"](1e-3), OBJECTIVES["sparse"](1e-3)):
        with pytest.raises(us.IncompatibleError, match=r"\d iterations.*limit"):
            us.minimise(objective, x, path, limit=3)


def test_forward_and_backward_are_reported_alike(path):
    net = us.unroll(us.Fidelity(us.Learnable(0.1, name="α")) + us.Smoothness(0.9), us.Exact()).double()
    graph = path.to(torch.float64)
    with us.solve_reports() as reports:
        (slope,) = torch.autograd.grad(
            net(signal(graph), graph).square().sum(), list(net.parameters()), create_graph=True
        )
        slope.backward()
    assert len(reports) >= 4
    assert reports.converged
    rough = us.unroll(
        us.Fidelity(us.Learnable(0.1, name="α")) + us.Smoothness(0.9) + us.Sparse(0.1), us.Exact()
    ).double()
    with us.solve_reports() as reports:
        rough(signal(graph), graph).sum().backward()
    assert [report.method for report in reports] == ["accelerated steps", "Neumann series"]
    with us.solve_reports() as reports:
        us.models.PPNP(2, 2).double()(signal(graph), graph).sum().backward()
    assert len(reports) == 2


def test_who_asked_when_the_network_ran_hears_of_its_gradient(path):
    net = us.unroll(us.Fidelity(us.Learnable(1e-5, name="α")) + us.Smoothness(1.0), us.Exact())
    with us.solve_reports() as outer:
        total = net(torch.ones(60, 1), path).sum()
        with us.solve_reports() as inner:
            total.backward(retain_graph=True)
        assert len(outer) == len(inner) == 1
        total.backward(retain_graph=True)
        assert len(outer) == 2
    with pytest.warns(us.ConvergenceWarning):
        total.backward()
    assert len(outer) == 2


def test_a_trace_says_how_exact_its_minimiser_is(path):
    objective = OBJECTIVES["numbers"](1e-5)
    found = us.unroll(objective, us.GradientDescent(), 2).trace(torch.ones(60, 2), path)
    assert not found.report.converged
    assert "not met" in str(found)
    exact = us.unroll(objective, us.GradientDescent(), 2).trace(torch.ones(60, 2).double(), path.to(torch.float64))
    assert exact.report.residual < 1e-6
    nothing = us.unroll(us.Smoothness(1.0), us.GradientDescent(), 2).trace(torch.ones(60, 2), path)
    assert nothing.report is None


def test_tiny_right_sides_keep_their_digits():
    apply = lambda u: 2 * u + torch.roll(u, 1, -2) + torch.roll(u, -1, -2)  # noqa: E731
    right = torch.randn(7, 2, generator=torch.Generator().manual_seed(0))
    for per_channel in (True, False):
        plain = conjugate_gradients(apply, right, None, 1e-6, 100, per_channel)
        tiny = conjugate_gradients(apply, right * 1e-30, None, 1e-6, 100, per_channel)
        assert torch.allclose(tiny.h * 1e30, plain.h, rtol=1e-4)


@pytest.mark.parametrize("per_channel", [True, False])
def test_conjugate_gradients_know_where_they_fail(per_channel):
    eye = torch.eye(6, dtype=torch.float64)
    signs = torch.tensor([1.0, 1, 1, 1, 1, -1], dtype=torch.float64)[:, None]
    assert conjugate_gradients(
        lambda u: signs * u, torch.ones(6, 2, dtype=torch.float64), None, 1e-9, 50, per_channel
    ).bent
    zero = conjugate_gradients(lambda u: 2 * u, 0 * eye, eye, 1e-9, 50, per_channel)
    assert torch.equal(zero.h, 0 * eye)
    assert zero.report.converged
    slow = torch.linspace(1, 1e4, 6, dtype=torch.float64)[:, None]
    short = conjugate_gradients(lambda u: slow * u, torch.ones(6, 2, dtype=torch.float64), None, 1e-12, 3, per_channel)
    assert short.exhausted
    assert short.report.residual > 1e-6
    assert short.report.iterations == 3
    blind = conjugate_gradients(
        lambda u: slow * u, torch.ones(6, 2, dtype=torch.float64), None, 1e-12, 8, per_channel, 0
    )
    assert blind.report is None
    assert torch.allclose(slow * blind.h, torch.ones(6, 2, dtype=torch.float64))


def test_a_report_prints_what_it_holds():
    met = us.SolveReport("conjugate gradients", 1, 1e-8, 1e-6, 1e-7)
    assert met.converged
    assert "1 iteration " in str(met)
    assert "not met" in str(us.SolveReport("conjugate gradients", 5, math.inf, 1e-6, 1e-7))


def test_laws_are_not_judged_by_a_minimiser_that_is_not_known():
    with pytest.raises(us.IncompatibleError, match="not known well enough"):
        us.testing.check_algorithm(us.Accelerated(), us.Fidelity(1e-9) + us.Smoothness(1.0))


def test_weights_beyond_the_range_of_numbers_are_refused():
    x, graph = torch.eye(4, dtype=torch.float64), us.graph.ring(4).to(torch.float64)
    with pytest.raises(us.IncompatibleError, match="beyond the range of numbers"):
        us.minimise(us.NodeFidelity(torch.ones(4), 1e300) + us.Smoothness(1.0), x, graph)
