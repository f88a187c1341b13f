"""SURE and GCV for problems that are not linear: degrees of freedom that are right, risks that are, weights near the best."""

import numpy as np
import pytest
import scipy.sparse.csgraph
import torch

import unspool as us
from unspool.denoise import GCV, SURE, denoise
from unspool.denoise.fit import Fitter
from unspool.denoise.freedom import residuals_and_freedom
from unspool.denoise.problem import PROBLEMS, TotalVariation

pytestmark = pytest.mark.slow

NOISE = 0.3
PLAIN = {"normalise": us.Normalisation.NONE, "loops": 0.0}


def scene(name, seed):
    """A graph and a signal that the problem is meant for, without and with noise."""
    if name == "tv":
        graph, place = us.graph.sensor(250, seed=1, **PLAIN)
        clean = (place[:, :1] > 0.5).double() + (place[:, 1:] > 0.3).double()
    else:
        graph, column = us.graph.grid(6, 20, **PLAIN), torch.arange(120) % 20
        clean = ((column - 10).abs().double() / 5)[:, None]
    noise = torch.randn(clean.shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    return graph.to(torch.float64), clean, clean + NOISE * noise


def regions(h, graph):
    """How many parts a signal of one column is constant on."""
    adjacency = graph.to_scipy().tocoo()
    flat = np.abs(h[adjacency.row, 0] - h[adjacency.col, 0]) < 1e-5
    kept = scipy.sparse.coo_array((flat[flat], (adjacency.row[flat], adjacency.col[flat])), shape=adjacency.shape)
    return scipy.sparse.csgraph.connected_components(kept, directed=False)[0]


def test_the_freedom_of_total_variation_is_the_number_of_regions():
    graph, _, x = scene("tv", 0)
    problem, weights = TotalVariation(), torch.tensor([0.9, 0.75, 0.5], dtype=torch.float64)
    _, freedom = residuals_and_freedom(problem, x, graph, weights, 0.1, 24, 0)
    wanted = [regions(Fitter(problem, x, graph, tolerance=1e-8).fit(w).h.numpy(), graph) for w in weights.tolist()]
    for found, count in zip(freedom.tolist(), wanted, strict=True):
        assert abs(found - count) < 3 * np.sqrt(2 * count / 24) + 2  # what 24 random signs leave open


def test_the_estimate_is_the_risk_on_average():
    rule = SURE([0.75], noise=NOISE)
    gaps = []
    for seed in range(20):
        graph, clean, x = scene("tv", seed)
        ((_, score),) = rule.choose(x, graph, problem=TotalVariation()).curve
        h = Fitter(TotalVariation(), x, graph).fit(0.75).h
        gaps.append(score - float((h - clean).square().mean()))
    assert abs(np.mean(gaps)) < 3 * np.std(gaps) / np.sqrt(len(gaps))
    assert np.std(gaps) < 0.02


@pytest.mark.parametrize(
    ("name", "rule"),
    [("tv", SURE(noise=NOISE)), ("tv", SURE()), ("tv", GCV()), ("trend", SURE(noise=NOISE))],
    ids=["tv, known noise", "tv", "tv, GCV", "trend"],
)
def test_chosen_weights_are_near_the_best(name, rule):
    graph, clean, x = scene(name, 0)
    found = denoise(x, graph, rule, problem=name)
    candidates = PROBLEMS[name].candidates(x, graph).tolist()
    assert found.choice.weight in candidates
    risks = [float((Fitter(PROBLEMS[name], x, graph).fit(w).h - clean).square().mean()) for w in candidates]
    risk = float((found.signal - clean).square().mean())
    assert risk < 1.35 * min(risks)
    assert risk < 0.4 * NOISE**2
    assert abs(candidates.index(found.choice.weight) - int(np.argmin(risks))) <= 2
    assert 0.7 * NOISE < found.choice.noise < 1.3 * NOISE


def test_the_same_seed_chooses_the_same_and_probes_can_be_set():
    graph, _, x = scene("tv", 3)
    first, again = (SURE(noise=NOISE, seed=4).choose(x, graph, problem=TotalVariation()) for _ in range(2))
    assert np.array_equal(first.curve, again.curve)
    calls = []
    SURE([0.5, 0.7], probes=2).choose(x, graph, problem=TotalVariation(), progress=lambda *done: calls.append(done))
    assert calls == [(1, 4), (2, 4), (3, 4), (4, 4)]


@pytest.mark.parametrize("x", [torch.zeros(8, 1), torch.ones(8, 2), torch.arange(8.0)[:, None] * 1e8])
def test_signals_without_noise_have_a_weight(x):
    graph = us.graph.path(8, **PLAIN)
    for rule in (SURE(), GCV(), SURE(noise=0.0)):
        found = denoise(x, graph, rule, problem="tv")
        assert 0 < found.choice.weight <= 1
        assert bool(found.signal.isfinite().all())


@pytest.mark.parametrize("probes", [0, -1, 2.5, True])
def test_a_wrong_number_of_probes_is_named(probes):
    with pytest.raises(us.InputError) as wrong:
        SURE(probes=probes)
    assert wrong.value.argument == "probes"
