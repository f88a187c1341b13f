"""A few nodes from their neighbourhood: equal to the whole, and read no more than they must."""

import pytest
import torch
from tests.deploy.test_torch_program import trained_like

import unspool as us
from unspool import datasets, models
from unspool.deploy import predict_nodes, receptive_hops
from unspool.errors import InputError
from unspool.ops import SparseFeatures

pytestmark = pytest.mark.long

#: Networks that look at all nodes at once.
WHOLE = (models.PPNP, models.FairGNN)


@pytest.fixture(scope="module")
def data():
    """A long, thin graph with hubs, so that neighbourhoods are small."""
    chance = torch.Generator().manual_seed(0)
    steps = torch.stack([torch.arange(799), torch.arange(1, 800)])
    near = torch.randperm(797, generator=chance)[:60]
    edges = torch.cat([steps, torch.stack([near, near + 3])], dim=1)
    graph = us.Graph.from_edges(edges, 800, torch.rand(edges.shape[1], generator=chance) + 0.5, directed=False)
    made = datasets.contextual_sbm(nodes=800, classes=3, seed=0)
    return made.features, graph


class Data:
    def __init__(self, features):
        self.features = features


@pytest.mark.parametrize("kind", models.MODELS)
def test_equal_to_the_whole(kind, data):
    x, graph = data
    model = trained_like(kind, Data(x))
    nodes = [7, 400, 401]
    found = predict_nodes(model, x, graph, nodes)
    with torch.no_grad():
        wanted = model(x, graph)[nodes]
    assert torch.allclose(found.output, wanted, atol=1e-6, rtol=1e-6)
    if kind in WHOLE:
        assert (found.hops, found.nodes_read) == (None, 800)
    else:
        assert found.nodes_read < 400
        assert found.edges_read < graph.operator.forward.col.numel() / 2


def test_reads_the_neighbourhood_and_nothing_else(data):
    """What lies beyond may hold anything: it is not looked at."""
    x, graph = data
    model = models.GCN(x.shape[1], 3).eval()
    found = predict_nodes(model, x, graph, [400])
    near = us.graph.neighbourhood(graph, torch.tensor([400]), 2)
    assert (found.hops, found.nodes_read) == (2, near.numel())
    poisoned = torch.full_like(x, torch.nan)
    poisoned[near] = x[near]
    assert torch.equal(predict_nodes(model, poisoned, graph, [400]).output, found.output)


def test_sparse_features_and_directed_graphs(data):
    x, _ = data
    chance = torch.Generator().manual_seed(1)
    edges = torch.stack([torch.arange(799), torch.arange(1, 800)])
    edges = torch.cat([edges, torch.randint(0, 800, (2, 20), generator=chance)], dim=1)
    graph = us.Graph.from_edges(edges, 800, directed=True)
    model = models.GPRGNN(x.shape[1], 3, depth=4).eval()
    sparse = SparseFeatures.from_tensor(torch.where(x > 1, x, 0.0))
    found = predict_nodes(model, sparse, graph, [3, 700])
    with torch.no_grad():
        assert torch.allclose(found.output, model(sparse, graph)[[3, 700]], atol=1e-6)
    assert found.nodes_read < 100


def test_the_largest_frequency_is_that_of_the_whole(data):
    x, _ = data
    graph = us.Graph.from_edges(
        torch.stack([torch.arange(199), torch.arange(1, 200)]),
        200,
        normalise=us.Normalisation.NONE,
        loops=0,
        directed=False,
    )
    net = us.unroll(us.Fidelity(0.5) + us.Smoothness(0.5), us.GradientDescent(step=us.InverseLipschitz()), 3)
    net.in_features = 4
    x = torch.randn(200, 4)
    found = predict_nodes(net, x, graph, [100])
    assert found.nodes_read < 200
    assert torch.allclose(found.output, net(x, graph)[[100]].detach(), atol=1e-6)


def test_a_module_whose_way_is_not_known_is_computed_as_a_whole(data):
    """A dense product with the matrix moves signals as no counted operator does: the second look finds it."""

    class Dense(torch.nn.Module):
        in_features = 3

        def forward(self, x, graph):
            a = graph.to_dense()
            return a @ (a @ x)

    class Mean(torch.nn.Module):
        in_features = 3

        def forward(self, x, graph):
            return x - x.mean(0)

    assert receptive_hops(Dense()) is None or receptive_hops(Dense()).hops >= 2
    assert receptive_hops(Mean()) is None
    x, graph = torch.randn(30, 3), us.graph.ring(30)
    for model in (Dense(), Mean()):
        assert torch.allclose(predict_nodes(model, x, graph, [3]).output, model(x, graph)[[3]], atol=1e-6)


def test_the_mode_of_the_model_stays():
    model = models.GCN(4, 2).train()
    receptive_hops(model)
    assert model.training
    assert model.p_pre.training


@pytest.mark.parametrize("nodes", [[], [1, 1], [99], [-1], [0.5], "a", [True]])
def test_wrong_nodes(nodes):
    with pytest.raises((InputError, TypeError)):
        predict_nodes(models.SGC(3, 2), torch.ones(5, 3), us.graph.ring(5), nodes)
