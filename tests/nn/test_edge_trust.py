"""Edges that are believed as far as the features of their ends agree."""

import copy
import gc
import weakref

import pytest
import torch

import unspool as us
from unspool.nn.edges import unit_distances
from unspool.ops import SparseFeatures


@pytest.fixture
def case():
    random = torch.Generator().manual_seed(0)
    graph = us.graph.grid(5, 6)
    x = (torch.rand(graph.nodes, 12, generator=random) < 0.2).double() * torch.rand(graph.nodes, 12, generator=random)
    x[3] = 0  # a node without features
    return x, graph.to(torch.float64)


def dense_distances(x, graph):
    unit = x / x.norm(dim=1, keepdim=True).clamp_min(1e-300)
    i, j = us.graph.edge_list(graph)
    return (unit[i] - unit[j]).square().sum(1)


def dense_smoothed(x, graph, smoothings):
    """Distances after means over neighbours weighed by their cosine, and over oneself with 0.1."""
    own = 0.1 * torch.eye(graph.nodes, dtype=x.dtype)
    i, j = us.graph.edge_list(graph)
    y = x = x / x.norm(dim=1, keepdim=True).clamp_min(1e-300)
    means = []
    for _ in range(smoothings):
        a = own.clone()
        a[i, j] = a[j, i] = (1 - dense_distances(y, graph) / 2).clamp_min(0)
        means.append(a / a.sum(1, keepdim=True))
        y = x
        for mean in means:
            y = mean @ y
    return dense_distances(y, graph)


@pytest.mark.parametrize("smoothings", [1, 2])
def test_smoothed_features_are_compared_at_length_one(case, smoothings, monkeypatch):
    x, graph = case
    wanted = dense_smoothed(x, graph, smoothings)
    assert torch.allclose(unit_distances(x, graph, smoothings), wanted, atol=1e-12)
    assert torch.allclose(unit_distances(SparseFeatures.from_tensor(x), graph, smoothings), wanted, atol=1e-12)
    monkeypatch.setattr("unspool.nn.edges._BLOCK", 5 * graph.nodes)
    assert torch.allclose(unit_distances(7 * x, graph, smoothings), wanted, atol=1e-12)
    assert torch.allclose(unit_distances(x, graph), dense_distances(x, graph), atol=1e-12)


def test_neighbourhoods_tell_what_a_node_with_few_words_cannot():
    """Two groups whose members share words with some of their own only, and one edge between them."""
    words = torch.tensor(
        [
            [1.0, 1, 0, 0, 0, 0],
            [0, 1, 1, 0, 0, 0],
            [1, 0, 1, 0, 0, 0],
            [0, 0, 0, 1, 1, 0],
            [0, 0, 0, 0, 1, 1],
            [0, 0, 0, 1, 0, 1],
        ]
    )
    edges = torch.tensor([[0, 0, 1, 3, 3, 4, 2], [1, 2, 2, 4, 5, 5, 3]])
    graph = us.Graph.from_edges(edges, nodes=6, directed=False)
    i, j = us.graph.edge_list(graph)
    inside = (i < 3) == (j < 3)
    before, after = (us.nn.EdgeTrust(us.Capped(2.0), smoothings)(words, graph) for smoothings in (0, 1))
    assert after[~inside] == before[~inside] == 0
    assert (after[inside] > before[inside] + 0.2).all()


def test_distances_are_those_of_rows_of_length_one(case):
    x, graph = case
    assert torch.allclose(unit_distances(x, graph), dense_distances(x, graph), atol=1e-12)
    assert torch.allclose(unit_distances(7 * x, graph), dense_distances(x, graph), atol=1e-12)


def test_sparse_features_give_the_same(case):
    x, graph = case
    assert torch.allclose(unit_distances(SparseFeatures.from_tensor(x), graph), dense_distances(x, graph), atol=1e-12)


def test_small_blocks_give_the_same(case, monkeypatch):
    x, graph = case
    monkeypatch.setattr("unspool.nn.edges._BLOCK", 5 * graph.nodes)
    for features in (x, SparseFeatures.from_tensor(x)):
        assert torch.allclose(unit_distances(features, graph), dense_distances(x, graph), atol=1e-12)


def test_changed_features_are_looked_at_again(case):
    x, graph = case
    before = unit_distances(x, graph).clone()
    x[0] = torch.arange(12.0)
    assert not torch.allclose(unit_distances(x, graph), before)
    assert torch.allclose(unit_distances(x, graph), dense_distances(x, graph), atol=1e-12)
    other = x.flip(0)
    assert torch.allclose(unit_distances(other, graph), dense_distances(other, graph), atol=1e-12)


def test_what_is_remembered_keeps_nothing_alive():
    graph, x = us.graph.grid(3, 3), torch.rand(9, 4)
    unit_distances(x, graph)
    watched = weakref.ref(graph), weakref.ref(x)
    del graph, x
    gc.collect()
    assert [one() for one in watched] == [None, None]


def test_features_have_gradients_through_the_weights(case):
    x, graph = case
    x = (x + 0.1).requires_grad_()
    for smoothings in (0, 1):
        trust = us.nn.EdgeTrust(us.Log(0.5), smoothings)
        assert torch.autograd.gradcheck(lambda t, trust=trust: trust(t, graph), x)


def test_a_network_without_features_is_refused_by_name(case):
    x, graph = case
    leaf = us.FeatureComputed(us.nn.EdgeTrust(us.Capped(2.0)), name="w(features)")
    net = us.unroll(us.Fidelity(1.0) + us.EdgeSmoothness(leaf, 4.0), us.Jacobi(), depth=3)
    with pytest.raises(us.IncompatibleError, match=r"w\(features\)"):
        net(x, graph)
    with pytest.raises(us.IncompatibleError, match=r"w\(features\)"):
        net.trace(x, graph)
    assert torch.equal(net(x, graph, features=x), copy.deepcopy(net)(x, graph, features=x))


def test_the_encoder_does_not_change_who_is_believed(case):
    """Computed looks at what the encoder makes of the features, FeatureComputed at the features."""
    x, graph = case
    model = us.models.TrustGNN(12, 3, dropout=0.0).double()
    seen = []
    model.propagation.computed["w"].register_forward_hook(lambda module, given, out: seen.append(out))
    model(x, graph)
    with torch.no_grad():
        for parameter in model.p_pre.parameters():
            parameter.mul_(-2)
    model(x, graph)
    assert torch.equal(seen[0], seen[1])
    assert torch.allclose(seen[0], (1 - dense_distances(x, graph) / 2).clamp_min(0), atol=1e-12)
