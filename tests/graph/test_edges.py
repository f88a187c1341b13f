"""Every bad input has its sentence, and odd but good ones are read."""

import numpy as np
import pytest
import scipy.sparse
import torch

import unspool as us
from unspool import Graph, Normalisation

PLAIN = {"loops": 0, "normalise": Normalisation.NONE, "directed": True}

BAD_INDEX = {
    "too large": ([[0, 5], [1, 1]], 3, ValueError, r"edge 1 names node 5, but node ids run from 0 to 2 \(nodes=3\)"),
    "target too large": ([[0, 1], [1, 3]], 3, ValueError, r"edge 1 names node 3, but node ids run from 0 to 2"),
    "negative": ([[0, 1], [-1, 0]], 3, ValueError, r"edge 0 names node -1, but node ids run from 0 to 2"),
    "negative, nodes inferred": ([[0, -2], [1, 1]], None, ValueError, r"edge 1 names node -2, .* 0 to 1 \(nodes=2\)"),
    "float": ([[0.0, 1.0], [1.0, 0.0]], 2, TypeError, r"edge_index holds float64: .* call edge_index.long\(\)"),
    "float tensor": (torch.ones(2, 3), 2, TypeError, r"edge_index holds float32: node ids are integers"),
    "bool": (torch.ones(2, 3, dtype=torch.bool), 2, TypeError, "edge_index holds bool: node ids are integers"),
    "complex": (torch.ones(2, 3, dtype=torch.complex64), 2, TypeError, "edge_index holds complex64"),
    "pairs": (
        torch.zeros(5, 2, dtype=torch.long),
        3,
        ValueError,
        r"shape \(5, 2\): .* pass edge_index.T for a list of pairs",
    ),
    "flat": ([0, 1, 2], 3, ValueError, r"edge_index has shape \(3,\): expected \(2, edges\)"),
    "cube": (np.zeros((2, 3, 1), dtype=int), 3, ValueError, r"edge_index has shape \(2, 3, 1\)"),
    "no nodes": ([[], []], 0, ValueError, "the graph is empty: it needs at least one node"),
    "no nodes inferred": (
        torch.zeros(2, 0, dtype=torch.long),
        None,
        ValueError,
        r"pass nodes=\.\.\. to count isolated",
    ),
    "nodes below zero": ([[0], [0]], -3, ValueError, "the graph is empty"),
}


@pytest.mark.parametrize("name", list(BAD_INDEX))
def test_bad_edges_are_named(name):
    index, nodes, kind, sentence = BAD_INDEX[name]
    with pytest.raises(kind, match=sentence):
        Graph.from_edges(index, nodes)


BAD_WEIGHTS = {
    "nan": ([1.0, float("nan"), 1.0], ValueError, "the weight of edge 1 is nan: weights must be finite"),
    "infinite": ([1.0, 1.0, float("inf")], ValueError, "the weight of edge 2 is inf: weights must be finite"),
    "minus infinite": ([-float("inf"), 1.0, 1.0], ValueError, "the weight of edge 0 is -inf: weights must be finite"),
    "negative": (
        [1.0, -0.5, 1.0],
        ValueError,
        "the weight of edge 1 is -0.5: weights must not be negative; .* EdgeSmoothness",
    ),
    "too few": ([1.0, 1.0], ValueError, r"weights has shape \(2,\), but there are 3 edges: expected \(3,\)"),
    "too many": (torch.ones(4), ValueError, r"weights has shape \(4,\), but there are 3 edges"),
    "wide": (torch.ones(3, 2), ValueError, r"weights has shape \(3, 2\), but there are 3 edges"),
    "one number": (2.0, ValueError, r"weights has shape \(\), but there are 3 edges"),
    "complex": (torch.ones(3, dtype=torch.complex64), TypeError, "weights are complex: edge weights are real"),
}


@pytest.mark.parametrize("name", list(BAD_WEIGHTS))
def test_bad_weights_are_named(name):
    weights, kind, sentence = BAD_WEIGHTS[name]
    with pytest.raises(kind, match=sentence):
        Graph.from_edges([[0, 1, 2], [1, 2, 0]], 3, weights=weights)


@pytest.mark.parametrize("loops", [-1, -0.5, float("nan"), float("inf"), "one"])
def test_bad_loops_are_named(loops):
    with pytest.raises(
        ValueError, match=f"loops={loops!r}: expected a finite number of at least 0, the weight of self-loops"
    ):
        Graph.from_edges([[0, 1], [1, 0]], 2, loops=loops)


@pytest.mark.parametrize("door", [Graph.from_dense, lambda m: Graph.from_scipy(scipy.sparse.csr_array(m))])
def test_matrices_must_be_square(door):
    with pytest.raises(ValueError, match=r"the adjacency matrix has shape \(2, 3\): it must be square"):
        door(np.ones((2, 3)))


def test_dense_matrices_are_read_entry_by_entry():
    with pytest.raises(ValueError, match=r"the adjacency matrix has shape \(4,\): it must be square"):
        Graph.from_dense(np.ones(4))
    with pytest.raises(ValueError, match="weights must be finite"):
        Graph.from_dense([[0.0, float("nan")], [1.0, 0.0]])
    with pytest.raises(ValueError, match="weights must not be negative"):
        Graph.from_scipy(scipy.sparse.csr_array(-np.ones((2, 2))))


def test_data_without_edges_is_named():
    with pytest.raises(ValueError, match="data has no edge_index"):
        Graph.from_pyg(object())


@pytest.mark.parametrize("dtype", [torch.int64, torch.bool, torch.complex64])
def test_graphs_hold_floating_point(dtype):
    name = str(dtype).removeprefix("torch.")
    for move in (lambda g: g.to(dtype), lambda g: g.to(dtype=dtype)):
        with pytest.raises(TypeError, match=f"a graph holds float32 or float64 weights, not {name}"):
            move(us.graph.ring(3))


@pytest.mark.parametrize("empty", [[[], []], torch.zeros(2, 0, dtype=torch.long), np.zeros((2, 0)), torch.zeros(0)])
def test_no_edges_at_all(empty):
    graph = Graph.from_edges(empty, nodes=3)
    assert torch.equal(graph.to_dense(), torch.eye(3))
    assert graph.edges == 0
    bare = Graph.from_edges(empty, nodes=3, **PLAIN)
    assert torch.equal(bare @ torch.ones(3, 2), torch.zeros(3, 2))
    assert Graph.from_edges(empty, nodes=3, weights=[], directed=False).undirected


def test_one_node():
    graph = Graph.from_edges([[], []], nodes=1)
    assert graph.to_dense().tolist() == [[1.0]]
    assert graph.laplacian().to_dense().tolist() == [[0.0]]
    assert Graph.from_edges([[0], [0]], **PLAIN).to_dense().tolist() == [[1.0]]


def test_nodes_are_counted_from_the_largest_id():
    assert Graph.from_edges([[0, 4], [1, 2]], directed=False).nodes == 5


def test_the_input_is_left_alone():
    index, weights = torch.tensor([[0, 1], [1, 0]]), torch.tensor([1.0, 2.0])
    graph = Graph.from_edges(index, 2, weights, **PLAIN)
    weights.zero_()
    index.zero_()
    assert graph.to_dense().tolist() == [[0, 2], [1, 0]]


def test_weights_with_a_history_are_read_as_numbers():
    weights = torch.tensor([1.0, 2.0], requires_grad=True)
    graph = Graph.from_edges([[0, 1], [1, 0]], 2, weights, **PLAIN)
    assert not graph.operator.forward.val.requires_grad


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: us.graph.ring(2), r"a ring needs at least 3 nodes, not 2; use path\(2\)"),
        (lambda: us.graph.sensor(6), "6 sensors cannot each have 6 neighbours; ask for fewer neighbours"),
    ],
)
def test_shapes_that_do_not_exist(make, sentence):
    with pytest.raises(ValueError, match=sentence):
        make()


def test_lists_keep_their_digits():
    graph = Graph.from_edges([[0], [1]], 2, [0.1], **PLAIN).to(torch.float64)
    assert float(graph.to_dense()[1, 0]) == 0.1
    assert float(Graph.from_dense([[0, 0.1], [0.1, 0]], **PLAIN).to(torch.float64).to_dense()[0, 1]) == 0.1


def test_an_edge_of_weight_zero_is_no_edge():
    graph = Graph.from_edges([[0, 1, 1], [1, 0, 2]], 3, weights=[1.0, 1.0, 0.0])
    assert graph.undirected
    assert graph.edges == 1
