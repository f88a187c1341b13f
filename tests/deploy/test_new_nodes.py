"""New nodes: in double precision what the whole enlarged graph says, from their neighbourhood alone."""

import dataclasses

import pytest
import torch
from tests.deploy.test_torch_program import trained_like

import unspool as us
from unspool import datasets, models
from unspool.deploy import predict_new_nodes, predict_nodes
from unspool.errors import IncompatibleError, InputError
from unspool.graph import NewEdges
from unspool.ops import SparseFeatures

pytestmark = pytest.mark.long

#: Networks that look at all nodes at once.
WHOLE = (models.PPNP, models.FairGNN)
OLD, ALL = 400, 403


class Data:
    def __init__(self, features):
        self.features = features


@pytest.fixture(scope="module")
def data():
    """A long, thin weighted graph in float64, and the same with three new nodes, two of them joined, an edge listed twice."""
    chance = torch.Generator().manual_seed(0)
    line = torch.stack([torch.arange(OLD - 1), torch.arange(1, OLD)])
    near = torch.randperm(OLD - 3, generator=chance)[:30]
    old = torch.cat([line, torch.stack([near, near + 3])], dim=1)
    new = torch.tensor([[400, 401, 9, 402, 402], [7, 250, 401, 401, 251]])
    weight = torch.rand(old.shape[1] + new.shape[1], generator=chance).double() + 0.5
    whole = us.Graph.from_edges(torch.cat([old, new], 1), ALL, weight, directed=False).to(torch.float64)
    graph = us.Graph.from_edges(old, OLD, weight[: old.shape[1]], directed=False).to(torch.float64)
    x = datasets.contextual_sbm(nodes=ALL, classes=3, seed=0).features.double()
    return x, graph, NewEdges(new, weight[old.shape[1] :]), whole


@pytest.mark.parametrize("kind", models.MODELS)
def test_equal_to_the_whole_enlarged_graph(kind, data):
    x, graph, new, whole = data
    model = trained_like(kind, Data(x.float())).double()
    found = predict_new_nodes(model, x[:OLD], graph, x[OLD:], new)
    with torch.no_grad():
        wanted = model(x, whole)[OLD:]
    # A minimiser is as exact as its solver's tolerance.
    assert torch.allclose(found.output, wanted, rtol=1e-12, atol=1e-8 if kind in WHOLE else 1e-12)
    if kind in WHOLE:
        assert (found.hops, found.nodes_read) == (None, ALL)
    else:
        assert found.nodes_read < ALL / 2
        assert found.edges_read < whole.operator.forward.col.numel() / 2


def test_reads_the_neighbourhood_and_nothing_else(data):
    """What lies beyond may hold anything: it is not looked at."""
    x, graph, new, whole = data
    model = models.GCN(x.shape[1], 3).double().eval()
    found = predict_new_nodes(model, x[:OLD], graph, x[OLD:], new)
    near = us.graph.neighbourhood(whole, torch.arange(OLD, ALL), 2)
    assert (found.hops, found.nodes_read) == (2, near.numel())
    poisoned = torch.full_like(x, torch.nan)
    poisoned[near] = x[near]
    assert torch.equal(predict_new_nodes(model, poisoned[:OLD], graph, x[OLD:], new).output, found.output)


def test_old_neighbours_have_their_new_degrees(data):
    """With the old degrees the answer would be another one."""
    x, graph, new, whole = data
    model = models.SGC(x.shape[1], 3, depth=2).double().eval()
    with torch.no_grad():
        stale = dataclasses.replace(whole, degree=torch.cat([graph.degree, whole.degree[OLD:]]), _entries=None)
        wrong = model(x, stale)[OLD:]
    assert not torch.allclose(predict_new_nodes(model, x[:OLD], graph, x[OLD:], new).output, wrong, atol=1e-3)


def test_directed_graphs_sparse_features_and_sinks():
    chance = torch.Generator().manual_seed(1)
    edges = torch.stack([torch.arange(299), torch.arange(1, 300)])
    new = torch.tensor([[5, 6, 300], [300, 300, 9]])
    graph = us.Graph.from_edges(edges, 300, directed=True).to(torch.float64)
    whole = us.Graph.from_edges(torch.cat([edges, new], 1), 301, directed=True).to(torch.float64)
    x = torch.randn(301, 16, generator=chance, dtype=torch.float64).relu()
    model = models.GPRGNN(16, 3, depth=4).double().eval()
    for old in (SparseFeatures.from_tensor(x[:300]), x[:300]):
        found = predict_new_nodes(model, old, graph, x[300:], new)
        with torch.no_grad():
            assert torch.allclose(found.output, model(x, whole)[300:], rtol=0, atol=1e-12)
        assert found.nodes_read < 30
    sparse = SparseFeatures.from_tensor(x[300:])
    assert torch.equal(predict_new_nodes(model, x[:300], graph, sparse, new).output, found.output)


def test_the_largest_frequency_is_that_of_the_enlarged_graph():
    graph = us.graph.path(60, normalise=us.Normalisation.NONE, loops=0).to(torch.float64)
    whole = us.graph.path(61, normalise=us.Normalisation.NONE, loops=0).to(torch.float64)
    net = us.unroll(us.Fidelity(0.5) + us.Smoothness(0.5), us.GradientDescent(step=us.InverseLipschitz()), 3)
    net.in_features = 4
    x = torch.randn(61, 4, dtype=torch.float64)
    found = predict_new_nodes(net, x[:60], graph, x[60:], [[60], [59]])
    assert torch.allclose(found.output, net(x, whole)[60:].detach(), rtol=0, atol=1e-12)


def test_a_network_that_sees_no_graph_reads_no_old_node(data):
    x, graph, new, _ = data
    model = models.MLP(x.shape[1], 3).double().eval()
    found = predict_new_nodes(model, x[:OLD], graph, x[OLD:], new)
    assert (found.nodes_read, found.hops) == (3, 0)
    assert torch.allclose(found.output, model(x[OLD:], us.graph.path(3).to(torch.float64)), atol=1e-12)


def test_wrong_input(tmp_path):
    graph, model = us.graph.path(5), models.SGC(3, 2).eval()
    x, new = torch.ones(5, 3), torch.ones(1, 3)
    for bad in (torch.ones(1, 4), torch.ones(3), torch.ones(0, 3)):
        with pytest.raises(InputError):
            predict_new_nodes(model, x, graph, bad, [[5], [0]])
    for kind in (lambda x: x, us.ops.SparseFeatures.from_tensor):
        with pytest.raises(InputError, match="new node 1 has nan"):
            predict_new_nodes(
                model, x, graph, kind(torch.tensor([[1.0, 1, 1], [0, float("nan"), 1]])), [[5, 6], [0, 1]]
            )
    with pytest.raises(ValueError, match="node ids run from 0 to 5"):
        predict_new_nodes(model, x, graph, new, [[6], [0]])
    with pytest.raises(InputError, match="has already"):
        predict_new_nodes(model, x, graph, new, [[1], [0]])
    with pytest.raises(ValueError, match="4 rows"):
        predict_new_nodes(model, x[:4], graph, new, [[5], [0]])
    stored = us.hops.write(graph, x, depth=1, out=tmp_path / "hops")
    with pytest.raises(IncompatibleError, match="hops on the disk"):
        predict_new_nodes(model, stored, graph, new, [[5], [0]])


def test_a_network_that_is_being_trained_predicts_without_masks_and_stays_as_it_was(data):
    x, graph, new, whole = data
    model = models.GCN(x.shape[1], 3, dropout=0.5).double().train()
    model.p_pre.eval()
    found = predict_new_nodes(model, x[:OLD], graph, x[OLD:], new)
    few = predict_nodes(model, x, whole, [OLD, OLD + 1, OLD + 2])
    assert (model.training, model.p_pre.training) == (True, False)
    wanted = model.eval()(x, whole)[OLD:]
    assert torch.allclose(found.output, wanted, atol=1e-12)
    assert torch.allclose(few.output, wanted, atol=1e-12)
