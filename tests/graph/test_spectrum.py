"""Frequencies against closed forms, and densities against counted eigenvalues."""

import math
from itertools import pairwise

import numpy as np
import pytest
import torch

import unspool as us
from unspool import Graph, IncompatibleError, Normalisation
from unspool.graph import frequencies, frequencies_and_modes, spectral_density, spectrum
from unspool.ops.operator import Operator

BARE = {"loops": 0, "normalise": Normalisation.NONE}


def angles(count, turn):
    return torch.cos(turn * torch.arange(count, dtype=torch.float64) / count)


def path_spectrum(n):
    return 2 - 2 * angles(n, math.pi)


KNOWN = {
    "path": lambda n: (us.graph.path(n, **BARE), path_spectrum(n)),
    "ring": lambda n: (us.graph.ring(n), 1 - (1 + 2 * angles(n, 2 * math.pi)) / 3),
    "ring without loops": lambda n: (us.graph.ring(n, loops=0), 1 - angles(n, 2 * math.pi)),
    "ring, not normalised": lambda n: (us.graph.ring(n, **BARE), 2 - 2 * angles(n, 2 * math.pi)),
    "ring, random walk": lambda n: (
        us.graph.ring(n, normalise=Normalisation.RANDOM_WALK),
        1 - (1 + 2 * angles(n, 2 * math.pi)) / 3,
    ),
    "complete": lambda n: (
        us.graph.complete(n, loops=0),
        torch.tensor([0.0] + [n / (n - 1)] * (n - 1), dtype=torch.float64),
    ),
    "complete with loops": lambda n: (us.graph.complete(n), torch.tensor([0] + [1] * (n - 1))),
    "star": lambda n: (us.graph.star(n, loops=0), torch.tensor([0] + [1] * (n - 2) + [2])),
    "star, not normalised": lambda n: (us.graph.star(n, **BARE), torch.tensor([0] + [1] * (n - 2) + [n])),
    "grid": lambda n: (us.graph.grid(n, n + 2, **BARE), path_spectrum(n)[:, None] + path_spectrum(n + 2)),
    "no edges": lambda n: (Graph.from_edges([[], []], nodes=n), torch.zeros(n)),
}


@pytest.mark.parametrize("nodes", [3, 4, 11])
@pytest.mark.parametrize("name", list(KNOWN))
def test_known_spectra(name, nodes):
    graph, expected = KNOWN[name](nodes)
    expected = expected.double().flatten().sort().values
    result = frequencies(graph)
    assert result.dtype == torch.float64
    assert torch.allclose(result, expected, atol=1e-12)
    assert graph.largest_frequency == pytest.approx(float(expected[-1]), abs=1e-12)


GRAPHS = {
    "sensor": lambda: us.graph.sensor(40)[0],
    "sensor without loops": lambda: us.graph.sensor(40, loops=0)[0],
    "star": lambda: us.graph.star(9, loops=0),
    "heavy loops": lambda: us.graph.path(9, loops=5.0),
    "not normalised": lambda: us.graph.sensor(40, normalise=Normalisation.NONE)[0],
}


@pytest.mark.parametrize("name", list(GRAPHS))
def test_modes_rebuild_the_laplacian(name):
    graph = GRAPHS[name]()
    value, mode = frequencies_and_modes(graph)
    eye = torch.eye(graph.nodes, dtype=torch.float64)
    assert torch.allclose(mode @ value.diag() @ mode.T, graph.to(torch.float64).laplacian().to_dense(), atol=1e-12)
    assert torch.allclose(mode.T @ mode, eye, atol=1e-12)
    assert bool((value.diff() >= 0).all())
    assert torch.equal(frequencies(graph), value)


@pytest.mark.parametrize("name", list(GRAPHS))
def test_frequencies_lie_between_zero_and_twice_the_scale(name):
    graph = GRAPHS[name]()
    value = frequencies(graph)
    assert float(value.min()) == pytest.approx(0, abs=1e-12)
    assert float(value.max()) <= 2 * graph.scale + 1e-12
    assert graph.normalisation is Normalisation.NONE or graph.scale == 1


@pytest.mark.parametrize(
    "make",
    [
        lambda: us.graph.sensor(600)[0],
        lambda: us.graph.sensor(600, normalise=Normalisation.NONE)[0],
        lambda: us.graph.ring(700, loops=0),
        lambda: us.graph.star(520, **BARE),
        lambda: Graph.from_edges([[], []], nodes=600),
        lambda: us.graph.complete(501),
    ],
)
def test_largest_frequency_of_large_graphs_is_the_exact_one(make):
    graph = make()
    assert graph.nodes > 500
    assert graph.largest_frequency == pytest.approx(float(frequencies(graph)[-1]), rel=1e-9, abs=1e-12)


CROWDED = {
    "path": lambda n: (us.graph.path(n, **BARE), 2 - 2 * math.cos(math.pi * (n - 1) / n)),
    "ring": lambda n: (us.graph.ring(n), 4 / 3 - (n % 2) * (2 / 3) * (1 - math.cos(math.pi / n))),
    "ring without loops": lambda n: (us.graph.ring(n, loops=0), 2 - (n % 2) * (1 - math.cos(math.pi / n))),
    "ladder": lambda n: (us.graph.grid(2, n, **BARE), 2 + 2 - 2 * math.cos(math.pi * (n - 1) / n)),
    "star": lambda n: (us.graph.star(n, **BARE), float(n)),
}


class Counting:
    """A matrix that counts its products."""

    def __init__(self, held):
        self.held, self.products = held, 0

    def __matmul__(self, x):
        self.products += 1
        return self.held @ x


@pytest.mark.parametrize("nodes", [900, 10_001])
@pytest.mark.parametrize("steps", [40, spectrum.STEPS])
@pytest.mark.parametrize("name", list(CROWDED))
def test_crowded_eigenvalues_are_bounded_from_above_in_bounded_work(name, steps, nodes, monkeypatch):
    graph, true = CROWDED[name](nodes)
    seen = []
    whole = Operator.to_scipy
    monkeypatch.setattr(Operator, "to_scipy", lambda self: seen.append(Counting(whole(self))) or seen[-1])
    monkeypatch.setattr(spectrum, "STEPS", steps)
    found = spectrum.largest_frequency(graph)
    assert 0 < seen[0].products <= steps
    assert true * (1 - 1e-9) <= found <= 2 * graph.scale
    assert found <= true * (1.002 if steps > 100 else 1.3)


@pytest.mark.parametrize("how", [{}, {"loops": 0}, BARE])
def test_density_matches_counted_eigenvalues(how):
    graph = us.graph.grid(30, 30, **how)
    density, exact = spectral_density(graph), frequencies(graph)
    top = 2 * graph.scale
    assert density.mass(0.0, top) == pytest.approx(1.0, abs=1e-3)
    for low, high in [(0.0, 0.25), (0.25, 0.5), (0.5, 0.75), (0.1, 0.9), (0.0, 0.1)]:
        counted = float(((exact >= low * top) & (exact < high * top)).double().mean())
        assert density.mass(low * top, high * top) == pytest.approx(counted, abs=0.03)


@pytest.mark.parametrize("points", [50, 201])
@pytest.mark.parametrize("degree", [1, 2, 30, 80])
def test_density_integrates_to_one(degree, points):
    density = spectral_density(us.graph.sensor(200)[0], points=points, degree=degree)
    assert density.frequency.shape == density.value.shape == (points,)
    assert density.edges.shape == (points + 1,)
    assert bool((density.value >= 0).all())
    assert bool((density.edges[:-1] < density.frequency).all())
    assert bool((density.frequency < density.edges[1:]).all())
    by_cells = float((density.value * density.edges.diff()).sum())
    assert by_cells == pytest.approx(1.0, abs=0.02)
    assert density.mass(-1.0, 3.0) == pytest.approx(1.0, abs=0.01)


@pytest.mark.parametrize("how", [{}, BARE])
@pytest.mark.parametrize("degree", [5, 80])
def test_every_frequency_is_smeared_by_jacksons_kernel(monkeypatch, degree, how):
    """Given exact moments the density is a sum of squares |Σ aₖ exp(ikt)|², a half sine wave: positive, narrow."""
    graph = us.graph.grid(5, 6, **how)
    theta = torch.arccos((1 - frequencies(graph) / graph.scale).clamp(-1, 1))
    order = torch.arange(degree, dtype=torch.float64)
    monkeypatch.setattr(spectrum, "_moments", lambda *_: torch.cos(order[:, None] * theta).mean(1))
    density = spectral_density(graph, degree=degree)
    angle = torch.arccos(1 - density.frequency / graph.scale)
    wave = torch.sin(math.pi * (order + 1) / (degree + 1))

    def kernel(t):
        return (wave / wave.norm() * torch.exp(1j * order * t[..., None])).sum(-1).abs() ** 2 / (2 * math.pi)

    smeared = (kernel(angle[:, None] - theta) + kernel(angle[:, None] + theta)).mean(1)
    assert torch.allclose(density.value * graph.scale * torch.sin(angle), smeared, rtol=1e-8, atol=1e-10)


def test_masses_add_up():
    density = spectral_density(us.graph.ring(300))
    cuts = np.linspace(0, 2, 9)
    pieces = [density.mass(a, b) for a, b in pairwise(cuts)]
    assert sum(pieces) == pytest.approx(density.mass(0, 2))
    assert min(pieces) >= 0


def test_same_seed_same_density():
    graph = us.graph.sensor(100)[0]
    assert torch.equal(spectral_density(graph, seed=3).value, spectral_density(graph, seed=3).value)
    assert not torch.equal(spectral_density(graph, seed=3).value, spectral_density(graph, seed=4).value)


def test_more_probes_less_noise():
    """The first moment is tr(S)/n; its error over seeds falls like one over the root of the probes."""
    graph = us.graph.sensor(100)[0]
    exact = float(graph.to_dense().double().trace()) / 100

    def error(probes):
        moments = [spectrum._moments(graph, 2, probes, seed)[1] - exact for seed in range(30)]
        return float(torch.stack(moments).square().mean().sqrt())

    assert error(64) < error(1) / 4


def test_large_graphs_are_refused(monkeypatch):
    monkeypatch.setattr(spectrum, "LARGEST_EXACT", 10)
    assert frequencies(us.graph.ring(10)).numel() == 10
    for ask in (frequencies, frequencies_and_modes):
        with pytest.raises(
            IncompatibleError, match=r"exact eigenvalues of 11 nodes .* use spectral_density\(graph\) \(limit 10\)"
        ):
            ask(us.graph.ring(11))
    assert spectral_density(us.graph.ring(11)).mass(0, 2) == pytest.approx(1, abs=1e-3)


@pytest.mark.parametrize(
    "ask",
    [frequencies, frequencies_and_modes, spectral_density, spectrum.largest_frequency, lambda g: g.largest_frequency],
)
@pytest.mark.parametrize("nodes", [3, 600])
def test_directed_graphs_have_no_frequencies(ask, nodes):
    with pytest.raises(IncompatibleError, match="this graph is directed"):
        ask(Graph.from_edges([[0, 1], [1, 2]], nodes, directed=True))
