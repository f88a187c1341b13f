"""graph.subgraph: by itself as PyG's layers see it, or as it lies in the whole."""

import numpy as np
import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.nn.conv.gcn_conv import gcn_norm

import unspool as us
from unspool.errors import InputError
from unspool.graph import Degrees


def test_own_degrees_are_what_pyg_makes_of_the_same_nodes():
    chance = torch.Generator().manual_seed(0)
    index = torch.randint(0, 30, (2, 90), generator=chance)
    index = torch.cat([index, index.flip(0)], 1).unique(dim=1)
    index = index[:, index[0] != index[1]]
    graph, nodes = us.Graph.from_edges(index, 30, directed=False), torch.tensor([3, 7, 8, 20, 29, 4])
    part = Data(edge_index=index, num_nodes=30).subgraph(nodes)
    edge, weight = gcn_norm(part.edge_index, num_nodes=6)
    wanted = torch.zeros(6, 6)
    wanted[edge[1], edge[0]] = weight
    assert torch.allclose(graph.subgraph(nodes).to_dense(), wanted, atol=1e-6)


@pytest.mark.parametrize("how", us.Normalisation)
@pytest.mark.parametrize("directed", [False, True])
def test_both_kinds(how, directed):
    chance = torch.Generator().manual_seed(1)
    index = torch.randint(0, 20, (2, 60), generator=chance).unique(dim=1)
    weight = torch.rand(index.shape[1], generator=chance) + 0.1
    graph = us.Graph.from_edges(index, 20, weight, normalise=how, directed=directed)
    nodes = torch.tensor([9, 2, 5, 11, 17])
    own, whole = graph.subgraph(nodes), graph.subgraph(nodes, Degrees.WHOLE)
    gone = [i for i in range(20) if i not in nodes.tolist()]
    rest = us.graph.without(graph, gone)
    order = nodes.argsort().argsort()
    assert torch.allclose(own.to_dense(), rest.to_dense()[order][:, order])
    assert torch.equal(whole.to_dense(), graph.to_dense()[nodes][:, nodes])
    assert torch.equal(whole.degree, graph.degree[nodes])
    assert whole.scale == graph.scale


def test_masks_names_and_types():
    graph = us.Graph.from_edges([[0, 1], [1, 2]], 4, directed=True).to(torch.float64).with_general_laplacian()
    for nodes in (torch.tensor([True, True, False, True]), np.array([0, 1, 3]), [0, 1, 3]):
        found = graph.subgraph(nodes)
        assert (found.nodes, found.dtype, found.undirected) == (3, torch.float64, False)
        assert found.smoother is not None


@pytest.mark.parametrize("nodes", [[], [1, 1], [9], [-1], [0.5], [[1]], [True], "a"])
def test_wrong_nodes(nodes):
    with pytest.raises(InputError):
        us.graph.ring(5).subgraph(nodes)


def test_wrong_degrees():
    with pytest.raises(InputError, match="Degrees"):
        us.graph.ring(5).subgraph([0], "whole")
