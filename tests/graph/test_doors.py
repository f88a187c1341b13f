"""Every constructor reads the same W; what was merged on the way is said aloud."""

from types import SimpleNamespace

import networkx
import pytest
import scipy.sparse
import torch
from torch_geometric.data import Data, HeteroData

import unspool as us
from unspool import Graph, Normalisation

pytestmark = pytest.mark.long


NODES = 8
PLAIN = {"loops": 0, "normalise": Normalisation.NONE, "directed": True}
KINDS = ["plain", "weighted", "directed", "directed weighted", "weighted loops", "directed weighted loops"]


def seeded(seed):
    return torch.Generator().manual_seed(seed)


def weights_of(kind, seed=0, nodes=NODES):
    """W as a dense float64 matrix; row i holds what flows into node i. The last node is isolated."""
    present = torch.rand(nodes, nodes, generator=seeded(seed)) < 0.35
    w = torch.randint(1, 500, (nodes, nodes), generator=seeded(seed + 1)).double() / 300
    w = w * present if "weighted" in kind else present.double()
    w.fill_diagonal_(0)
    if "loops" in kind:
        w[0, 0], w[3, 3] = (2.5, 0.3) if "weighted" in kind else (1, 1)
    if "directed" not in kind:
        w = torch.maximum(w, w.T)
    w[-1], w[:, -1] = 0, 0
    return w


def edges_of(w):
    """(edge_index, weights) of W, in no particular order."""
    target, source = w.nonzero(as_tuple=True)
    order = torch.randperm(target.numel(), generator=seeded(9))
    index = torch.stack([source, target])[:, order]
    return index, w[index[1], index[0]]


def network_of(index, weights, nodes):
    network = networkx.DiGraph()
    network.add_nodes_from(range(nodes))
    network.add_weighted_edges_from(zip(*index.tolist(), weights.tolist(), strict=True))
    return network


DOORS = {
    "tensor": lambda w, e, v, how: Graph.from_edges(e, NODES, v, **how),
    "array": lambda w, e, v, how: Graph.from_edges(e.numpy(), NODES, v.numpy(), **how),
    "lists": lambda w, e, v, how: Graph.from_edges(e.tolist(), NODES, v.tolist(), **how),
    "int32 and a column": lambda w, e, v, how: Graph.from_edges(e.int(), NODES, v[:, None], **how),
    "pyg": lambda w, e, v, how: Graph.from_pyg(Data(edge_index=e, edge_weight=v, num_nodes=NODES), **how),
    "pyg edge_attr": lambda w, e, v, how: Graph.from_pyg(
        Data(edge_index=e, edge_attr=v[:, None], num_nodes=NODES), **how
    ),
    "like pyg": lambda w, e, v, how: Graph.from_pyg(
        SimpleNamespace(edge_index=e, edge_weight=v, num_nodes=NODES), **how
    ),
    "scipy csr": lambda w, e, v, how: Graph.from_scipy(scipy.sparse.csr_array(w.numpy()), **how),
    "scipy csc": lambda w, e, v, how: Graph.from_scipy(scipy.sparse.csc_array(w.numpy()), **how),
    "scipy coo": lambda w, e, v, how: Graph.from_scipy(scipy.sparse.coo_matrix(w.numpy()), **how),
    "dense": lambda w, e, v, how: Graph.from_dense(w, **how),
    "dense array": lambda w, e, v, how: Graph.from_dense(w.numpy(), **how),
    "dense lists": lambda w, e, v, how: Graph.from_dense(w.tolist(), **how),
    "networkx": lambda w, e, v, how: Graph.from_networkx(network_of(e, v, NODES), **how),
}


@pytest.mark.parametrize("door", list(DOORS))
@pytest.mark.parametrize("kind", KINDS)
def test_all_doors_lead_to_the_same_graph(kind, door):
    w = weights_of(kind)
    graph = DOORS[door](w, *edges_of(w), PLAIN).to(torch.float64)
    assert torch.equal(graph.to_dense(), w)
    assert graph.undirected == torch.equal(w, w.T)
    assert graph.notes == ()
    symmetrised = DOORS[door](w, *edges_of(w), PLAIN | {"directed": False}).to(torch.float64)
    assert torch.equal(symmetrised.to_dense(), torch.maximum(w, w.T))  # the larger weight wins
    assert symmetrised.undirected
    default = DOORS[door](w, *edges_of(w), {"directed": True}).to(torch.float64)
    assert torch.equal(default.to_dense(), Graph.from_dense(w, directed=True).to(torch.float64).to_dense())


def test_several_edge_attributes_are_refused_until_one_is_chosen():
    """Which of them is the weight cannot be seen, and dropping them would be silent."""
    w = weights_of("directed")
    index = edges_of(w)[0]
    data = Data(edge_index=index, edge_attr=torch.rand(index.shape[1], 3, generator=seeded(0)), num_nodes=NODES)
    with pytest.raises(us.errors.DataError) as caught:
        Graph.from_pyg(data, **PLAIN)
    assert caught.value.where == "edge_attr"
    data.edge_weight = data.edge_attr[:, 1]
    wanted = Graph.from_edges(index, NODES, data.edge_attr[:, 1], **PLAIN).to_dense()
    assert torch.equal(Graph.from_pyg(data, **PLAIN).to_dense(), wanted)
    data.edge_weight = data.edge_attr = None
    assert torch.equal(Graph.from_pyg(data, **PLAIN).to_dense(), w.float())


def test_hetero_data_is_named_as_such():
    data = HeteroData()
    data["a"].x = torch.ones(2, 1)
    data["b"].x = torch.ones(2, 1)
    data["a", "to", "b"].edge_index = torch.tensor([[0], [1]])
    with pytest.raises(us.IncompatibleError, match="HeteroData with 2 kinds of nodes and 1 of edges"):
        Graph.from_pyg(data)


@pytest.mark.parametrize("directed", [False, True])
def test_networkx_keeps_names_order_and_weights(directed):
    network = networkx.DiGraph() if directed else networkx.Graph()
    network.add_nodes_from(["c", "a", "lonely", "b"])
    network.add_edge("a", "b", weight=2.0)
    network.add_edge("b", "c")
    network.add_edge("c", "c", weight=5.0, size=0.5)
    graph = Graph.from_networkx(network, **PLAIN)
    expected = torch.zeros(4, 4)
    expected[3, 1], expected[0, 3], expected[0, 0] = 2.0, 1.0, 5.0
    expected = expected if directed else torch.maximum(expected, expected.T)
    assert graph.names == ("c", "a", "lonely", "b")
    assert torch.equal(graph.to_dense(), expected)
    assert graph.undirected != directed
    assert graph.to(torch.float64).names == graph.names
    assert float(Graph.from_networkx(network, weight="size", **PLAIN).to_dense()[0, 0]) == 0.5


def test_repeated_edges_count_once_or_add_up_and_are_reported():
    index, how = [[0, 0, 1, 0], [1, 1, 2, 1]], PLAIN
    with pytest.warns(UserWarning, match="^1 edge listed more than once: kept once$"):
        once = Graph.from_edges(index, 3, **how)
    with pytest.warns(UserWarning, match="^1 edge listed more than once: their weights added$"):
        added = Graph.from_edges(index, 3, weights=[1.0, 2.0, 5.0, 4.0], **how)
    with pytest.warns(UserWarning, match="^2 edges listed more than once"):
        two = Graph.from_edges([[0, 0, 1, 1], [1, 1, 2, 2]], 3, **{**how, "directed": False})
    assert once.to_dense().tolist() == [[0, 0, 0], [1, 0, 0], [0, 1, 0]]
    assert added.to_dense().tolist() == [[0, 0, 0], [7, 0, 0], [0, 5, 0]]
    assert two.to_dense().tolist() == [[0, 1, 0], [1, 0, 1], [0, 1, 0]]
    assert once.notes == ("1 edge listed more than once: kept once",)


def test_both_directions_of_an_edge_are_no_repeat():
    assert Graph.from_edges([[0, 1], [1, 0]], 2, directed=False).notes == ()
