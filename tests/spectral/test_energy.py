"""Energies: bands sum to the total, by modes and by filters, and over-smoothing shows."""

import importlib

import pytest
import torch

import unspool as us
from unspool import IncompatibleError
from unspool.spectral import Follow, dirichlet, dirichlet_energy, energy, polynomials

ROOM = importlib.import_module("unspool.spectral.energies")


def smooth(weight):
    return us.Fidelity(weight) + us.Smoothness(1 - weight)


NETWORKS = {
    "APPNP": lambda: us.unroll(smooth(0.1), us.GradientDescent(step=0.5), depth=6),
    "prox": lambda: us.unroll(us.Smoothness(0.6) + us.RowSparseFidelity(0.4), us.ProximalGradient(), depth=4),
    "momentum": lambda: us.unroll(smooth(0.05), us.Accelerated(), depth=6),
    "PPNP": lambda: us.unroll(smooth(0.1), us.Exact()),
    "hops": lambda: us.HopNetwork(torch.randn(5)).double(),
    "matrices": lambda: us.HopNetwork(torch.randn(5, 3, 2)).double(),
    "function": lambda: lambda x, graph: torch.relu(graph @ x),
}


@pytest.mark.parametrize("filters", [False, True], ids=["by modes", "by filters"])
@pytest.mark.parametrize("name", list(NETWORKS))
def test_bands_sum_to_the_total(monkeypatch, name, filters, graph, x):
    if filters:
        monkeypatch.setattr(ROOM, "LARGEST_EXACT", 0)
    net = NETWORKS[name]()
    found = energy(net, x, graph)
    assert found.exact is not filters
    assert torch.allclose(found.bands.sum(1), found.total, rtol=1e-12)
    assert float(found.bands.min()) >= -1e-12 * float(found.total.max())
    assert found.total[0] == pytest.approx(float(x.square().sum())) or name in ("hops", "matrices")
    assert found.total[-1] == pytest.approx(float(net(x, graph).detach().square().sum()))
    assert found.dirichlet[-1] == pytest.approx(float(dirichlet(net(x, graph).detach(), graph)))
    assert torch.allclose(found.shares.sum(1), torch.ones(found.total.numel(), dtype=torch.float64))


def test_unrolled_networks_are_followed_through_their_iterates(graph, x):
    net = NETWORKS["APPNP"]()
    iterates = net.trace(x, graph).iterates
    by_net, by_hand = energy(net, x, graph), energy(iterates, x, graph)
    assert torch.allclose(by_net.bands, by_hand.bands)
    assert by_net.total.tolist() == pytest.approx([float(h.square().sum()) for h in iterates])


@pytest.mark.parametrize("basis", list(us.Basis))
def test_hop_networks_are_followed_as_asked(basis, graph, x):
    from types import SimpleNamespace

    hops = torch.randn(5, dtype=torch.float64)
    net = SimpleNamespace(hops=hops, basis=basis)
    output, walk = energy(net, x, graph), energy(net, x, graph, follow=Follow.HOPS)
    for k in range(5):
        running = us.propagate(graph, x, hops[: k + 1], basis)
        alone = us.propagate(graph, x, torch.eye(5, dtype=torch.float64)[k], basis)
        assert float(output.total[k]) == pytest.approx(float(running.square().sum()))
        assert float(walk.total[k]) == pytest.approx(float(alone.square().sum()))
    assert output.followed != walk.followed


@pytest.mark.parametrize("kind", us.models.MODELS, ids=lambda m: m.__name__)
def test_models_are_followed_through_their_propagation(kind, graph):
    model = kind(5, 3).double().eval()
    x = model.p_pre(torch.randn(12, 5, dtype=torch.float64)).detach()
    if getattr(model.propagation, "needs_features", False):
        with pytest.raises(us.IncompatibleError):  # its edges depend on features that are not here
            energy(model, x, graph)
        return
    found = energy(model.train(), x, graph)
    assert float(found.total[-1]) == pytest.approx(float(model.eval().propagation(x, graph).detach().square().sum()))


def test_over_smoothing_leaves_the_lowest_band_only():
    graph = us.graph.grid(10, 10).to(torch.float64)
    x = torch.randn(100, 4, dtype=torch.float64)
    found = energy(us.unroll(us.Smoothness(1.0), us.GradientDescent(step=0.5), 64), x, graph)
    assert found.shares[0, 0] < 0.2
    assert found.shares[-1, 0] > 1 - 1e-6
    assert found.dirichlet[-1] < 0.02 < 0.5 < found.dirichlet[0]
    assert bool((found.dirichlet.diff() <= 1e-12).all())
    kept = energy(us.unroll(smooth(0.3), us.GradientDescent(step=0.5), 64), x, graph)
    assert kept.shares[-1, 0] < 0.9  # fidelity keeps some of the rest


def test_bands_by_hand():
    """A signal that is one mode lies in one band."""
    graph = us.graph.ring(12, loops=0).to(torch.float64)
    frequency, modes = us.graph.frequencies_and_modes(graph)
    edges = (0, 0.3, 1, 1.6, 2)
    for i in (0, 3, 7, 11):
        found = energy([modes[:, i : i + 1]], modes[:, :1], graph, edges)
        band = int((frequency[i] >= torch.tensor(edges)[1:-1] - 1e-9).sum())
        assert found.bands[0].argmax() == band
        assert float(found.bands[0].max()) == pytest.approx(1)
        assert float(found.dirichlet[0]) == pytest.approx(float(frequency[i]), abs=1e-12)


@pytest.mark.parametrize("how", [{}, {"loops": 0}, {"normalise": us.Normalisation.NONE}])
def test_filters_agree_with_modes(monkeypatch, how):
    graph = us.graph.grid(20, 20, **how).to(torch.float64)
    x = torch.randn(400, 8, dtype=torch.float64)
    net = us.unroll(smooth(0.2), us.GradientDescent(), depth=3)
    bands = (0, 0.23, 0.61, 1.07, 1.53, 2)  # grids have many frequencies at exactly 1, which soft edges would halve
    exact = energy(net, x, graph, bands)
    monkeypatch.setattr(ROOM, "LARGEST_EXACT", 0)
    near = energy(net, x, graph, bands)
    assert torch.allclose(near.shares, exact.shares, atol=0.02)
    assert "soft edges" in str(near)


def test_filters_weigh_each_mode_by_a_smooth_partition_of_one(graph, x):
    """φ_b(λ) = Σ cₘ Tₘ(1 − λ) lies in [0, 1], sums to one over the bands, and weighs every mode's energy."""
    edges, degree = (0.0, 0.5, 1.2, 2.0), 40
    split = ROOM._ByFilters(graph, edges, degree)
    frequency, modes = us.graph.frequencies_and_modes(graph)
    weight = polynomials(frequency, degree, us.Basis.CHEBYSHEV) @ split.series
    assert torch.allclose(split(x), (modes.T @ x).square().sum(1) @ weight, atol=1e-12)
    everywhere = polynomials(torch.linspace(0, 2, 999), degree, us.Basis.CHEBYSHEV) @ split.series
    assert torch.allclose(everywhere.sum(1), torch.ones(999, dtype=torch.float64))
    assert float(everywhere.min()) > -1e-12
    middle = everywhere[torch.linspace(0, 2, 999).sub(0.85).abs().argmin()]
    assert middle[1] > 0.99


def test_large_graphs_need_no_eigenvectors(monkeypatch):
    def never(*_):
        raise AssertionError

    monkeypatch.setattr(ROOM, "modes_of", never)
    graph = us.graph.ring(5000)
    found = energy(NETWORKS["APPNP"](), torch.randn(5000, 1), graph, degree=32)
    assert torch.allclose(found.bands.sum(1), found.total)


def test_dirichlet_is_the_rayleigh_quotient(graph, x):
    laplacian = graph.laplacian().to_dense()
    trace = torch.trace(x.T @ laplacian @ x)
    assert torch.allclose(dirichlet_energy(x, graph), trace)
    assert torch.allclose(dirichlet(x, graph), trace / x.square().sum())
    assert torch.allclose(dirichlet(7 * x, graph), dirichlet(x, graph))
    assert torch.allclose(dirichlet_energy(x, graph), (graph.incidence() @ x).square().sum())
    stacked = torch.stack([x, 2 * x])
    assert dirichlet(stacked, graph).shape == (2,)


def test_dirichlet_of_the_zero_signal_is_zero_with_a_gradient(graph):
    h = torch.zeros(12, 2, dtype=torch.float64, requires_grad=True)
    value = dirichlet(h, graph)
    value.backward()
    assert float(value.detach()) == 0
    assert bool(torch.isfinite(h.grad).all())


def test_isolated_nodes_lie_in_the_lowest_band():
    graph = us.Graph.from_edges([[], []], nodes=4).to(torch.float64)
    found = energy(NETWORKS["APPNP"](), torch.ones(4, 1, dtype=torch.float64), graph)
    assert found.bands[:, 0].tolist() == pytest.approx([4.0] * 7)
    assert float(found.bands[:, 1:].abs().max()) < 1e-12


def test_a_signal_that_dies_has_no_shares(graph, x):
    found = energy([x, torch.zeros_like(x)], x, graph)
    assert found.shares[1].tolist() == [0] * 5
    assert float(found.dirichlet[1]) == 0


def test_leading_dimensions_are_summed(graph, x):
    stacked = torch.stack([x, 3 * x])
    one, two = energy(NETWORKS["APPNP"](), x, graph), energy(NETWORKS["APPNP"](), stacked, graph)
    assert torch.allclose(two.bands, 10 * one.bands)


def test_prints_as_a_table(graph, x):
    lines = str(energy(NETWORKS["APPNP"](), x, graph, bands=(0, 1, 2))).splitlines()
    assert lines[1].split() == ["depth", "energy", "Dirichlet", "0", "to", "1", "1", "to", "2"]
    assert len(lines) == 9
    assert len({len(line) for line in lines[1:]}) == 1


@pytest.mark.parametrize("bands", [(0, 1), (0.5, 2), (0, 1, 1, 2), (2,), ()])
def test_bands_must_cover_everything(bands, graph, x):
    with pytest.raises(ValueError, match="rising edges from 0 to 2"):
        energy(NETWORKS["APPNP"](), x, graph, bands)


def test_directed_graphs_have_no_bands():
    graph = us.Graph.from_edges([[0], [1]], nodes=3, directed=True)
    with pytest.raises(IncompatibleError, match="directed"):
        energy(us.HopNetwork([1.0, 1.0]), torch.ones(3, 1), graph)


def test_layers_of_a_gcn_are_followed():
    graph, _ = us.graph.sensor(30)
    graph = graph.to(torch.float64)
    x = torch.randn(30, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    model = us.models.GCN(3, 3, hidden=3, depth=4).double().eval()
    found = us.spectral.energy(model, x, graph)
    assert len(found.total) == 5
    layers = [h.detach() for h in model.propagation.layers(x, graph)]
    expected = [float(h.square().sum()) for h in [x, *layers]]
    assert found.total.tolist() == pytest.approx(expected, rel=1e-9)
