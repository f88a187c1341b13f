"""The law of this room: U h(Λ) Uᵀ X equals the network."""

import importlib
from types import SimpleNamespace

import pytest
import torch
from torch import nn

import unspool as us
from unspool import IncompatibleError
from unspool.spectral import measure, response

WHERE = torch.linspace(0, 2, 33, dtype=torch.float64)


def hop_network(*shape):
    net = us.HopNetwork([0.0]).double()
    net.coefficients = nn.Parameter(torch.randn(*shape, dtype=torch.float64))
    return net


def smooth(weight):
    return us.Fidelity(weight) + us.Smoothness(1 - weight)


METRIC = us.Symmetric(3, name="T")
LINEAR = {
    "numbers": lambda: hop_network(6),
    "diagonals": lambda: hop_network(6, 3),
    "matrices": lambda: hop_network(6, 3, 3),
    "matrices that change the width": lambda: hop_network(4, 3, 5),
    "one hop": lambda: hop_network(1),
    "SGC": lambda: us.unroll(us.Smoothness(1.0), us.GradientDescent(step=0.5), depth=7),
    "APPNP": lambda: us.unroll(smooth(0.1), us.GradientDescent(step=0.5), depth=10),
    "learnt per layer": lambda: us.unroll(
        smooth(us.Learnable(0.3, per_layer=True, within=(0, 1), name="α")), us.GradientDescent(step=0.5), depth=5
    ).double(),
    "metric": lambda: us.unroll(
        us.Fidelity(0.4, metric=METRIC) + us.Smoothness(0.5), us.GradientDescent(step=0.3), depth=4
    ).double(),
    "accelerated": lambda: us.unroll(smooth(0.05), us.Accelerated(), depth=40),
    "Chebyshev": lambda: us.unroll(smooth(0.05), us.Chebyshev(), depth=40),
    "from zero": lambda: us.unroll(smooth(0.2), us.GradientDescent(step=0.5), depth=6, start=us.Zero()),
    "stored": lambda: us.unroll(smooth(0.2), us.GradientDescent(step=0.5), depth=6, adjoint=us.Stored()),
    "stored momentum": lambda: us.unroll(smooth(0.2), us.Accelerated(), depth=9, adjoint=us.Stored()),
    "PPNP": lambda: us.unroll(smooth(0.1), us.Exact(tolerance=1e-13)),
    "minimiser with metrics": lambda: us.unroll(
        us.Fidelity(0.4) + us.Smoothness(0.5) + us.Ridge(0.3, metric=METRIC), us.Exact(tolerance=1e-13)
    ).double(),
}


@pytest.mark.parametrize("name", list(LINEAR))
def test_in_the_frequency_domain_it_is_the_network(name, graph, x):
    net = LINEAR[name]()
    h = response(net)
    assert h.exact
    assert torch.allclose(h.apply(x, graph), net(x, graph), atol=1e-9, rtol=0)


@pytest.mark.parametrize("name", ["APPNP", "accelerated", "PPNP", "metric", "stored"])
def test_on_graphs_that_are_not_normalised(name):
    graph = us.graph.grid(3, 4, normalise=us.Normalisation.NONE).to(torch.float64)
    x = torch.randn(12, 3, dtype=torch.float64)
    net = LINEAR[name]()
    if name in ("APPNP", "stored", "metric"):
        net = us.unroll(net.objective, us.GradientDescent(), depth=net.depth, adjoint=net.adjoint).double()
    h = response(net, graph)
    assert graph.scale == 4
    assert torch.allclose(h.apply(x, graph), net(x, graph), atol=1e-9, rtol=0)
    with pytest.raises(IncompatibleError, match="read it with response"):
        h.apply(x, us.testing.small_graph())


def test_isolated_nodes_and_trials():
    graph = us.Graph.from_edges([[0, 1], [1, 0]], nodes=4).to(torch.float64)
    x = torch.randn(2, 5, 4, 3, dtype=torch.float64)
    net = LINEAR["APPNP"]()
    assert torch.allclose(response(net).apply(x, graph), net(x, graph))


@pytest.mark.parametrize("depth", [1, 2, 16])
def test_sgc_is_a_power(depth):
    net = us.unroll(us.Smoothness(1.0), us.GradientDescent(step=0.5), depth=depth)
    h = response(net)
    assert torch.allclose(h(WHERE), (1 - WHERE) ** depth)
    assert h.degree == depth
    assert h.basis is us.Basis.POWERS


@pytest.mark.parametrize("alpha", [0.05, 0.3])
def test_appnp_by_recursion(alpha):
    h = torch.ones_like(WHERE)
    for _ in range(10):
        h = (1 - alpha) * (1 - WHERE) * h + alpha
    net = us.unroll(smooth(alpha), us.GradientDescent(step=0.5), depth=10)
    assert torch.allclose(response(net)(WHERE), h)


def test_ppnp_is_rational():
    h = response(us.unroll(smooth(0.1), us.Exact()))
    assert torch.allclose(h(WHERE), 0.1 / (0.1 + 0.9 * WHERE))
    assert h.hops is None
    assert h.degree is None
    assert "exact minimiser" in str(h)


def test_momentum_is_read_in_the_chebyshev_basis():
    """Degree 60 in powers would be noise; here it stays a low-pass that the exact minimiser confirms."""
    h = response(us.unroll(smooth(0.05), us.Chebyshev(), depth=60))
    assert h.basis is us.Basis.CHEBYSHEV
    assert torch.allclose(h(WHERE), response(us.unroll(smooth(0.05), us.Exact()))(WHERE), atol=1e-6)


def test_gains_are_singular_values():
    net = hop_network(5, 3, 4)
    h = response(net)
    assert torch.allclose(h.gains(WHERE), torch.linalg.svdvals(h(WHERE)))
    assert h.gains(WHERE).shape == (33, 3)
    diagonal = response(hop_network(5, 2))
    assert torch.equal(diagonal.gains(WHERE), diagonal(WHERE).abs())


def test_anything_with_hops_will_do(graph, x):
    hops = torch.randn(5, 3, 3, dtype=torch.float64)
    for network in (
        SimpleNamespace(hops=lambda: hops, basis=us.Basis.CHEBYSHEV),
        SimpleNamespace(hops=hops, basis=us.Basis.CHEBYSHEV),
        SimpleNamespace(propagation=SimpleNamespace(hops=lambda: hops, basis=us.Basis.CHEBYSHEV)),
    ):
        expected = us.propagate(graph, x, hops, us.Basis.CHEBYSHEV)
        assert torch.allclose(response(network, graph).apply(x, graph), expected, atol=1e-10)
    assert response(SimpleNamespace(hops=hops)).basis is us.Basis.POWERS


def test_hop_coefficients_mean_nothing_where_a_is_no_function_of_the_laplacian():
    for how, message in [
        ({"normalise": us.Normalisation.NONE}, "not a function of L"),
        ({"normalise": us.Normalisation.RANDOM_WALK}, "random-walk"),
    ]:
        with pytest.raises(IncompatibleError, match=message):
            response(hop_network(3), us.graph.star(5, **how))
    with pytest.raises(IncompatibleError, match="directed"):
        response(hop_network(3), us.Graph.from_edges([[0], [1]], nodes=3, directed=True))


def test_what_cannot_be_read_is_refused():
    with pytest.raises(
        IncompatibleError, match=r"Sparse is not quadratic, so its response can only be measured.* graph="
    ):
        response(us.unroll(smooth(0.2) + us.Sparse(0.1), us.ProximalGradient(), depth=3))
    start = torch.zeros(3, 1)
    for adjoint in (None, us.Stored()):
        with pytest.raises(IncompatibleError, match="starts at a tensor of its own"):
            response(us.unroll(smooth(0.2), us.GradientDescent(step=0.5), depth=3, start=start, adjoint=adjoint))
    with pytest.raises(ValueError, match="diverged"):
        response(us.HopNetwork([1.0, float("nan")]))
    with pytest.raises(TypeError, match="not a tensor"):
        response(SimpleNamespace(hops=[1.0]))
    with pytest.raises(TypeError, match="expected Basis"):
        response(SimpleNamespace(hops=torch.ones(2), basis="powers"))


def test_prints_as_a_table():
    lines = str(response(hop_network(4, 3, 3))).splitlines()
    assert lines[0] == "degree 3 in powers of A; coefficients are matrices"
    assert lines[1].split() == ["λ", "smallest", "gain", "median", "gain", "largest", "gain"]
    assert len(lines) == 11
    assert len({len(line) for line in lines[1:]}) == 1


@pytest.mark.parametrize("name", ["SGC", "PPNP", "APPNP", "JKNet", "GPRGNN", "UGDGNN"])
def test_linear_models_are_read_through_their_propagation(name, graph):
    model = getattr(us.models, name)(5, 3).double().eval()
    h = response(model, graph)
    assert h.exact
    x = model.p_pre(torch.randn(12, 5, dtype=torch.float64)).detach()
    assert torch.allclose(h.apply(x, graph), model.propagation(x, graph).detach(), atol=1e-7)


@pytest.mark.long
@pytest.mark.parametrize("name", ["GCN", "GCNII", "AirGNN", "DAGNN", "MLP"])
def test_other_models_are_measured_at_the_width_of_their_encoder(name, graph):
    h = response(getattr(us.models, name)(5, 3), graph)
    assert not h.exact
    assert bool(((h.coherence >= 0) & (h.coherence <= 1)).all())


def test_a_module_between_the_layers_is_measured_with_dropout_off(graph):
    net = us.unroll(smooth(0.2), us.GradientDescent(step=0.5), depth=4, between=nn.Dropout(0.5))
    plain = response(us.unroll(smooth(0.2), us.GradientDescent(step=0.5), depth=4))
    with pytest.raises(IncompatibleError, match="a module stands between"):
        response(net)
    h = response(net, graph)
    assert torch.allclose(h.gain, plain.gains(h.frequency), atol=1e-9)
    assert float(h.coherence.min()) == 1


def test_graphs_on_which_i_minus_a_only_stands_in_are_refused():
    """A model runs on any graph, by taking I − A for L; frequencies in [0, 2] it has only on some."""
    directed = us.Graph.from_edges([[0, 1], [1, 2]], nodes=3, directed=True)
    for graph in (directed, directed.with_general_laplacian(), us.graph.star(5, normalise=us.Normalisation.NONE)):
        for network in (us.models.APPNP(5, 3), us.models.GPRGNN(5, 3), us.models.AirGNN(5, 3)):
            with pytest.raises(IncompatibleError, match="stands in for the Laplacian"):
                response(network, graph)


# -- measured ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["numbers", "APPNP", "accelerated", "SGC", "PPNP", "one hop"])
def test_a_linear_network_measures_as_it_is(name, graph):
    net = LINEAR[name]()
    h = measure(net, graph, features=2)
    exact = response(net)
    assert not h.exact
    assert torch.allclose(h.gain, exact.gains(h.frequency), atol=1e-9)
    assert torch.allclose(h(h.frequency), h.gain)
    assert torch.allclose(h.coherence, torch.ones_like(h.gain))


@pytest.mark.parametrize("name", ["diagonals", "matrices", "matrices that change the width", "metric"])
def test_the_linear_part_of_a_linear_network_is_its_response(name, graph):
    net = LINEAR[name]()
    h = measure(net, graph, features=3)
    expected = response(net)(h.frequency)
    expected = torch.diag_embed(expected) if expected.ndim == 2 else expected
    assert torch.allclose(h.linear, expected, atol=1e-9)
    assert torch.allclose(h.coherence, torch.ones_like(h.gain))


def test_equal_frequencies_share_a_bin():
    """The modes of equal eigenvalues are arbitrary; a ring has them in pairs."""
    h = measure(LINEAR["APPNP"](), us.graph.ring(12))
    assert h.frequency.numel() == 7
    pooled = measure(LINEAR["APPNP"](), us.graph.ring(12), bins=4)
    assert pooled.frequency.numel() <= 4


def test_coherence_falls_with_the_strength_of_the_kink():
    graph = us.graph.grid(6, 6)
    mean = [
        float(response(us.unroll(smooth(0.4) + us.Sparse(w), us.ProximalGradient(), depth=8), graph).coherence.mean())
        for w in (1e-4, 0.2, 0.6)
    ]
    assert mean[0] > 0.999
    assert mean[0] > mean[1] > mean[2] > 0


def test_noise_of_no_relation_has_no_coherence():
    def square(x, graph):
        return x.square() - 1

    h = measure(square, us.graph.grid(6, 6), probes=200)
    assert float(h.coherence.mean()) < 0.05
    assert float(h.coherence.min()) >= 0
    assert float(h.coherence.max()) <= 1


def test_dropout_is_off_while_measuring_and_on_again_after(graph):
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.drop = nn.Dropout(0.5)

        def forward(self, x, graph):
            return self.drop(graph @ x)

    net = Net()
    h = response(net, graph)
    assert torch.allclose(h.coherence, torch.ones_like(h.gain))
    assert torch.allclose(h.gain, (1 - h.frequency).abs(), atol=1e-9)
    assert net.training
    assert net.drop.training


def test_float32_modules_are_measured_in_float32(graph):
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(4, 4, bias=False)

        def forward(self, x, graph):
            return graph @ self.linear(x)

    h = measure(Net(), graph, features=4)
    assert float(h.coherence.min()) > 1 - 1e-6


def test_same_seed_same_measurement(graph):
    net = us.unroll(smooth(0.2) + us.Sparse(0.1), us.ProximalGradient(), depth=3)
    first, again, other = (response(net, graph, seed=s) for s in (1, 1, 2))
    assert torch.equal(first(WHERE), again(WHERE))
    assert not torch.equal(first(WHERE), other(WHERE))
    assert "coherence" in str(first)


def test_measuring_has_limits(monkeypatch, graph, x):
    net = us.unroll(smooth(0.2) + us.Sparse(0.1), us.ProximalGradient(), depth=3)
    with pytest.raises(IncompatibleError, match="run the network itself"):
        response(net, graph).apply(x, graph)
    with pytest.raises(ValueError, match="more draws"):
        measure(net, graph, features=8, probes=4)
    with pytest.raises(TypeError, match="must map"):
        measure(lambda x, graph: x.sum(), graph)
    monkeypatch.setattr(importlib.import_module("unspool.spectral.measuring"), "LARGEST_MEASURED", 10)
    with pytest.raises(IncompatibleError, match=r"12 nodes \(limit 10\); measure on a smaller graph or on a sample"):
        response(net, graph)
