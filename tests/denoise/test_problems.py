"""Problems by name and missing values: minimisers against dense and independent solutions, weights, symmetries, refusals."""

import numpy as np
import pytest
import scipy.optimize
import torch

import unspool as us
from unspool.denoise import PROBLEMS, SURE, HeldOut, denoise
from unspool.estimator import GCV, GraphDenoiser

pytestmark = pytest.mark.long

KINDS = {"plain": {"normalise": us.Normalisation.NONE, "loops": 0}, "symmetric": {}}
GAPS = [False, True]


def scene(kind="plain", nodes=60, gaps=False, seed=0):
    """A graph in float64, a piecewise constant signal of two columns, and noisy values of it with or without gaps."""
    graph, place = us.graph.sensor(nodes, seed=1, **KINDS[kind])
    clean = np.stack([place[:, 0] > 0.5, 2.0 * (place[:, 1] > 0.4)], axis=1).astype(float)
    random = np.random.default_rng(seed)
    noisy = clean + 0.2 * random.standard_normal(clean.shape)
    if gaps:
        noisy[random.random(clean.shape) < 0.3] = np.nan
    return graph.to(torch.float64), clean, noisy


@pytest.mark.parametrize("kind", KINDS)
def test_missing_values_are_the_dense_solution(kind):
    graph, _, noisy = scene(kind, gaps=True)
    laplacian = graph.laplacian().to_dense().numpy()
    for weight in (0.1, 0.9):
        denoiser = GraphDenoiser(weight).fit(noisy, graph=graph)
        for column in range(2):
            seen = ~np.isnan(noisy[:, column])
            system = weight * np.diag(seen.astype(float)) + (1 - weight) * laplacian
            wanted = np.linalg.solve(system, weight * np.where(seen, noisy[:, column], 0))
            assert np.allclose(denoiser.denoised_[:, column], wanted, rtol=0, atol=1e-9)
        assert np.array_equal(denoiser.transform(noisy), denoiser.denoised_)
        assert denoiser.report_.converged
        assert str(denoiser.objective_).startswith(f"{weight} ‖C ⊙ (H − X)‖²")


@pytest.mark.parametrize("gaps", GAPS)
@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("strength", [0.02, 0.3])
def test_edge_penalties_reach_the_objective_of_an_independent_solver(order, strength, gaps):
    """The dual problem is a box-constrained least-squares problem, which SciPy solves; both values must meet."""
    graph, _, noisy = scene()
    seen = np.ones(60) if not gaps else (np.random.default_rng(3).random(60) < 0.7).astype(float)
    incidence = graph.incidence().to_dense().numpy()
    k = incidence if order == 1 else incidence @ incidence.T @ incidence
    column = noisy[:, :1]
    term = us.NodeFidelity(torch.tensor(seen), 1.0) if gaps else us.Fidelity(1.0)
    x = torch.tensor(column)
    objective = term + us.EdgeSparse(strength, order=order)
    found = float(objective.value(us.minimise(objective, x, graph), x, graph))
    # max over |y| ≤ λ of min_h Σ c (h − x)² + yᵀKh; where c = 0 the inner minimum asks for (Kᵀy)ᵢ = 0, softly here.
    soft = np.where(seen > 0, 1.0, 1e-7)

    def dual(y):
        pull = k.T @ y
        value = pull @ np.where(seen > 0, column[:, 0], 0) - np.square(pull) @ (1 / (4 * soft))
        slope = k @ (np.where(seen > 0, column[:, 0], 0) - pull / (2 * soft))
        return -value, -slope

    if gaps:  # the soft dual is badly scaled, so the primal problem is looked at instead: no nearby point is lower
        random, best = np.random.default_rng(0), us.minimise(objective, x, graph)
        moves = [torch.tensor(random.standard_normal((60, 1)) * s) for s in (1e-1, 1e-2, 1e-3) for _ in range(50)]
        values = [float(objective.value(best + move, x, graph)) for move in moves]
        assert min(values) >= found * (1 - 1e-9)
        return
    bounds = [(-strength, strength)] * len(k)
    other = scipy.optimize.minimize(
        dual, np.zeros(len(k)), jac=True, bounds=bounds, options={"maxiter": 50_000, "maxfun": 100_000, "ftol": 1e-15, "gtol": 1e-10}
    )  # fmt: skip
    assert found == pytest.approx(-other.fun, rel=1e-6)


@pytest.mark.long
@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("rows", [True, False])
def test_edge_penalties_agree_with_cvxpy(order, rows):
    cp = pytest.importorskip("cvxpy")
    graph, _, noisy = scene(nodes=150)
    incidence = graph.incidence().to_dense().numpy()
    k = incidence if order == 1 else incidence @ incidence.T @ incidence
    h = cp.Variable(noisy.shape)
    penalty = cp.sum(cp.norm(k @ h, 2, axis=1)) if rows else cp.sum(cp.abs(k @ h))
    wanted = cp.Problem(cp.Minimize(cp.sum_squares(h - noisy) + 0.1 * penalty)).solve(solver=cp.CLARABEL)
    objective, x = us.Fidelity(1.0) + us.EdgeSparse(0.1, rows=rows, order=order), torch.tensor(noisy)
    assert float(objective.value(us.minimise(objective, x, graph), x, graph)) == pytest.approx(wanted, rel=1e-6)


@pytest.mark.parametrize("gaps", GAPS)
@pytest.mark.parametrize("name", PROBLEMS)
def test_minimisers_are_lower_than_all_around_them(name, gaps):
    graph, _, noisy = scene(gaps=gaps)
    found = denoise(torch.tensor(noisy), graph, 0.6, problem=name)
    assert found.report.converged
    x, random = torch.tensor(np.nan_to_num(noisy)), np.random.default_rng(0)
    least = float(found.objective.value(found.signal, x, graph))
    for size in (1e-1, 1e-2, 1e-3):
        for _ in range(30):
            move = torch.tensor(size * random.standard_normal(noisy.shape))
            assert float(found.objective.value(found.signal + move, x, graph)) >= least * (1 - 1e-9)


@pytest.mark.parametrize("name", PROBLEMS)
def test_single_and_double_precision_agree(name):
    graph, _, noisy = scene(gaps=True)
    double = GraphDenoiser(0.6, problem=name).fit_transform(noisy, graph=graph)
    single = GraphDenoiser(0.6, problem=name).fit_transform(noisy.astype(np.float32), graph=graph)
    assert single.dtype == np.float32
    assert np.allclose(single, double, atol=1e-4)


@pytest.mark.parametrize("gaps", GAPS)
@pytest.mark.parametrize("name", [n for n in PROBLEMS if n != "smooth"])
def test_units_of_the_signal_pass_through(name, gaps):
    graph, _, noisy = scene(gaps=gaps)
    plain = GraphDenoiser(HeldOut(folds=3), problem=name).fit(noisy, graph=graph)
    again = GraphDenoiser(HeldOut(folds=3), problem=name).fit(noisy, graph=graph)
    assert np.array_equal(again.denoised_, plain.denoised_)
    assert np.array_equal(again.curve_, plain.curve_)
    large = GraphDenoiser(HeldOut(folds=3), problem=name).fit(1000 * noisy + 5000, graph=graph)
    assert np.allclose(large.denoised_, 1000 * plain.denoised_ + 5000, rtol=1e-3, atol=5)
    assert plain.weight_ == plain.curve_[plain.curve_[:, 1].argmin(), 0]
    assert plain.noise_ is None


@pytest.mark.long
def test_each_problem_is_best_on_its_own_kind_of_signal():
    graph = us.graph.grid(20, 20, **KINDS["plain"])
    x, y = np.divmod(np.arange(400), 20)
    random = np.random.default_rng(0)
    noise = 0.5 * random.standard_normal(400)
    outliers = np.where(random.random(400) < 0.1, 8.0, 0.0)
    signals = {
        "tv": (4.0 * (x > 9), noise),
        "trend": (np.abs(x - 9.5) + 0.5 * np.maximum(y - 9.5, 0), noise),
        "robust": (np.sin(x / 3), noise + outliers),
    }
    for name, (clean, disturbed) in signals.items():
        errors = {
            kind: np.mean((GraphDenoiser(problem=kind).fit_transform(clean + disturbed, graph=graph) - clean) ** 2)
            for kind in (name, "smooth")
        }
        assert errors[name] < 0.7 * errors["smooth"], (name, errors)


def test_straight_lines_with_bends_ask_for_slopes():
    """Trend looks at a bend as two jumps of L H; the penalty on L H itself sees one spike."""
    graph = us.graph.path(120, **KINDS["plain"])
    clean = np.interp(np.arange(120), [0, 36, 84, 119], [0, 4, -1, 3])
    noisy = clean + 0.3 * np.random.default_rng(0).standard_normal(120)
    noisy[50:56] = np.nan

    def best(name):
        weights = 1 / (1 + np.logspace(0, 2, 5))
        found = [GraphDenoiser(weight, problem=name).fit_transform(noisy, graph=graph) for weight in weights]
        return min(np.mean((h - clean) ** 2) for h in found)

    errors = {name: best(name) for name in ("smooth", "tv", "trend", "slopes")}
    assert errors["slopes"] < 0.6 * min(errors[name] for name in ("smooth", "tv", "trend")), errors


def test_slopes_reach_the_objective_of_an_independent_solver():
    """The dual of α‖h − x‖² + (1 − α)‖L h‖₁ is bounded least squares."""
    graph, _, noisy = scene(nodes=40)
    alpha, x = 0.3, noisy[:, 0]
    laplacian = graph.laplacian().to_dense().numpy()
    bound = 1 - alpha
    found = scipy.optimize.lsq_linear(laplacian, 2 * alpha * x, (-bound, bound), method="bvls", tol=1e-14)
    wanted = x - laplacian @ found.x / (2 * alpha)
    assert np.allclose(GraphDenoiser(alpha, problem="slopes").fit_transform(x, graph=graph), wanted, rtol=0, atol=1e-4)


def test_hidden_values_do_not_leak():
    """Total variation leaves a hidden value on a path free between its neighbours, so a start at the truth would stay there."""
    graph = us.graph.path(200, **KINDS["plain"])
    clean = 4.0 * (np.arange(200) > 60) - 3.0 * (np.arange(200) > 140)
    noisy = clean + 0.5 * np.random.default_rng(0).standard_normal(200)
    found = GraphDenoiser(problem="tv").fit(noisy, graph=graph)
    assert found.curve_[0, 1] > 1.3 * 0.25  # a hidden value is predicted by two noisy neighbours, no better
    assert np.mean((found.denoised_ - clean) ** 2) < 0.05


def test_held_out_is_near_the_best_weight():
    graph, clean, noisy = scene(nodes=300, gaps=True)
    denoiser = GraphDenoiser(problem="tv").fit(noisy, graph=graph)
    errors = [
        np.mean((GraphDenoiser(w, problem="tv").fit_transform(noisy, graph=graph) - clean) ** 2)
        for w in denoiser.curve_[:, 0]
    ]
    assert np.mean((denoiser.denoised_ - clean) ** 2) < 1.5 * min(errors)


def test_progress_is_told():
    graph, _, noisy = scene()
    told = []
    denoise(
        torch.tensor(noisy), graph, HeldOut([0.3, 0.6], folds=2), problem="tv", progress=lambda *at: told.append(at)
    )
    assert told == [(1, 4), (2, 4), (3, 4), (4, 4)]


def test_constants_and_single_nodes():
    graph = us.Graph.from_edges([[0, 1], [1, 2]], nodes=4, directed=False, **KINDS["plain"])
    for name in PROBLEMS:
        found = GraphDenoiser(0.5, problem=name).fit_transform(np.array([5.0, np.nan, 5.0, 7.0]), graph=graph)
        assert np.allclose(found, [5, 5, 5, 7], atol=1e-6)


def test_what_is_refused():
    graph, _, noisy = scene(gaps=True)
    apart = us.Graph.from_edges([[0, 2], [1, 3]], nodes=5, directed=False)
    lost = np.array([1.0, 2.0, np.nan, np.nan, 3.0])
    with pytest.raises(
        us.errors.DataError, match="the signal has no value at the 2 nodes that hang together with node 2"
    ):
        GraphDenoiser(0.5).fit(lost, graph=apart)
    two = np.array([[1.0, 1], [2, 1], [3, 1], [3, 1], [1, np.nan]])
    with pytest.raises(
        us.errors.DataError, match="column 1 of the signal has no value at node 4, which has no neighbours"
    ):
        GraphDenoiser(0.5).fit(two, graph=apart)
    fitted = GraphDenoiser(0.5).fit(np.arange(5.0), graph=apart)
    with pytest.raises(us.errors.DataError, match="nothing to fill it in from"):
        fitted.transform(lost)
    for rule in (GCV(), SURE()):
        with pytest.raises(us.IncompatibleError, match="this is a signal with missing values; choose by HeldOut"):
            GraphDenoiser(rule).fit(noisy, graph=graph)
        with pytest.raises(
            us.IncompatibleError, match="the problem robust is there to leave them out; choose by HeldOut"
        ):
            GraphDenoiser(rule, problem="robust").fit(np.nan_to_num(noisy), graph=graph)
    with pytest.raises(us.InputError, match="one of smooth, tv, slopes, trend, robust"):
        GraphDenoiser(problem="total").fit(noisy, graph=graph)
    with pytest.raises(us.IncompatibleError, match="for smooth signals without missing values"):
        GraphDenoiser(noise_covariance=[1.0, 2.0]).fit(noisy, graph=graph)
    with pytest.raises(us.InputError, match="a number below 1 where values are missing"):
        GraphDenoiser(1.0).fit(noisy, graph=graph)
    with pytest.raises(ValueError, match="which an objective of your own does not know of"):
        GraphDenoiser(objective=us.Fidelity(0.5) + us.Smoothness(0.5)).fit(noisy, graph=graph)
    with pytest.raises(ValueError, match="problem='tv' and objective are both given"):
        GraphDenoiser(problem="tv", objective=us.Fidelity(0.5) + us.Smoothness(0.5)).fit(noisy, graph=graph)
    with pytest.raises(us.IncompatibleError, match="no value can be hidden"):
        GraphDenoiser(problem="tv").fit(np.ones(3), graph=us.Graph.from_edges([[], []], nodes=3))
    with pytest.raises(ValueError, match="inf"):
        GraphDenoiser().fit(np.array([1.0, np.inf, 2.0, 0.0, 0.0]), graph=apart)
    for bad in ({"folds": 1}, {"folds": 2.0}):
        with pytest.raises(us.InputError, match="folds"):
            HeldOut(**bad)
    with pytest.raises(ValueError, match="expected weights between 0 and 1"):
        GraphDenoiser(HeldOut([0.0, 0.5])).fit(noisy, graph=graph)


@pytest.mark.parametrize("value", [0.0, 5.0, -1e12])
@pytest.mark.parametrize("problem", PROBLEMS)
def test_constant_signals_stay_what_they_are(problem, value):
    graph = us.graph.path(12, normalise=us.Normalisation.NONE, loops=0).to(torch.float64)
    signal = torch.full((12, 1), value, dtype=torch.float64)
    for weight in (HeldOut(), 0.5):
        assert torch.allclose(denoise(signal, graph, weight, problem=problem).signal, signal, rtol=1e-9, atol=0)


def test_values_that_no_weight_can_balance_are_named():
    graph = us.graph.path(12, normalise=us.Normalisation.NONE, loops=0).to(torch.float64)
    signal = 1e-21 * torch.arange(12, dtype=torch.float64)[:, None]
    with pytest.raises(us.errors.DataError, match=r"of the size 6e-21.*multiply them"):
        denoise(signal, graph, HeldOut(), problem="tv")
    small = 1e-12 * (torch.arange(12) > 5).double()[:, None]
    assert torch.allclose(1e12 * denoise(small, graph, HeldOut(), problem="tv").signal, 1e12 * small, atol=0.1)


@pytest.mark.parametrize("problem", PROBLEMS)
@pytest.mark.parametrize("value", [0.0, 3.0])
@pytest.mark.parametrize("gap", GAPS)
def test_a_constant_signal_stays_what_it_is(problem, value, gap):
    """Every weight gives the same, so there is nothing to choose by: one is taken, and no matrix is singular."""
    graph = us.graph.path(7, normalise=us.Normalisation.NONE, loops=0)
    x = np.full(7, value)
    if gap:
        x[2] = np.nan
    denoiser = GraphDenoiser(problem=problem).fit(x, graph=graph)
    assert np.allclose(denoiser.denoised_, value, rtol=0, atol=1e-9)
    assert 0 < denoiser.weight_ < 1
    assert denoiser.report_.converged
