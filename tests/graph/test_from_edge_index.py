"""Edge lists as graphs: read once per list, anew when it changed, forgotten when it died."""

import gc

import numpy
import pytest
import torch

import unspool as us
from unspool.graph import from_edge_index
from unspool.graph.from_edge_index import graph_of

pytestmark = pytest.mark.long


def pairs():
    return torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])


def test_graphs_pass():
    ring = us.graph.ring(4)
    assert graph_of(ring, 4) is ring
    with pytest.raises(TypeError, match="a Graph carries its own weights"):
        graph_of(ring, 4, torch.ones(8))


def test_a_list_is_read_once():
    edges, weights = pairs(), torch.ones(4)
    assert graph_of(edges, 3) is graph_of(edges, 3)
    assert graph_of(edges, 3, weights) is graph_of(edges, 3, weights)
    assert graph_of(edges, 3, weights) is not graph_of(edges, 3)
    assert graph_of(pairs(), 3) is not graph_of(edges, 3)


def test_it_is_the_graph_of_the_list():
    edges, weights = pairs(), torch.tensor([2.0, 2.0, 3.0, 3.0])
    expected = us.Graph.from_edges(edges, nodes=5, weights=weights).to_dense()
    assert torch.equal(graph_of(edges, 5, weights).to_dense(), expected)


def test_nodes_and_dtype_make_another_graph():
    edges = pairs()
    assert graph_of(edges, 3).nodes == 3
    assert graph_of(edges, 7).nodes == 7
    assert graph_of(edges, 3).nodes == 3
    assert graph_of(edges, 3, dtype=torch.float64).dtype == torch.float64
    assert graph_of(edges, 3, dtype=torch.float32).dtype == torch.float32


def test_a_change_in_place_is_seen():
    edges, weights = pairs(), torch.ones(4)
    before = graph_of(edges, 4, weights)
    edges[edges == 2] = 3
    after = graph_of(edges, 4, weights)
    assert float(after.to_dense()[3, 1]) > 0
    assert float(before.to_dense()[3, 1]) == 0
    weights.mul_(5.0)
    assert not torch.equal(graph_of(edges, 4, weights).to_dense(), after.to_dense())
    assert torch.equal(graph_of(edges, 4, weights).to_dense(), us.Graph.from_edges(edges, 4, weights).to_dense())


def test_a_change_through_a_view_is_seen():
    edges = pairs()
    graph_of(edges, 4)
    edges[0][2:3].fill_(0)
    edges[1][3:4].fill_(0)
    assert float(graph_of(edges, 4).to_dense()[2, 0]) > 0


def through_data(edges, array):
    edges.data[:, 2:] = torch.tensor([[0, 3], [3, 0]])


def through_numpy(edges, array):
    array[:, 2:] = [[0, 3], [3, 0]]


def by_other_data(edges, array):
    edges.data = torch.tensor([[0, 3], [3, 0]])


def in_place(edges, array):
    edges[:, 2:] = torch.tensor([[0, 3], [3, 0]])


@pytest.mark.parametrize("change", [through_data, through_numpy, by_other_data, in_place])
def test_every_change_is_seen(change):
    """The law: the answer is that of the list at hand."""
    array = pairs().numpy().copy()
    edges, model = torch.from_numpy(array), us.models.SGC(2, 2)
    x = torch.randn(4, 2)
    before = model(x, edges)
    change(edges, array)
    after = model(x, edges)
    assert torch.equal(after, model(x, edges.clone()))
    assert not torch.equal(after, before)


@pytest.mark.parametrize("change", ["numpy", "data"])
def test_changed_weights_are_seen(change):
    array = numpy.ones(4)
    edges, weights = pairs(), torch.from_numpy(array)
    graph_of(edges, 3, weights)
    if change == "numpy":
        array[:2] = 5.0
    else:
        weights.data[:2] = 5.0
    assert torch.equal(graph_of(edges, 3, weights).to_dense(), us.Graph.from_edges(edges, 3, weights).to_dense())


@pytest.mark.parametrize("which", [0, 1])
def test_the_dead_are_forgotten(which):
    gc.collect()
    before = len(from_edge_index._MADE)
    kept = [pairs(), torch.ones(4)]
    graph_of(kept[0], 3, kept[1])
    graph_of(kept[0], 4, kept[1])
    assert len(from_edge_index._MADE) == before + 2
    kept[which] = None  # either of the two is enough
    gc.collect()
    assert len(from_edge_index._MADE) == before


def test_a_new_list_at_an_old_address_is_read_anew():
    for end in range(1, 30):
        edges = torch.tensor([[0, end], [end, 0]])
        assert float(graph_of(edges, 31).to_dense()[0, end]) > 0
        del edges


def test_a_bad_list_is_not_remembered():
    edges = torch.tensor([[0, 9], [9, 0]])
    with pytest.raises(ValueError, match="names node 9"):
        graph_of(edges, 3)
    assert graph_of(edges, 10).nodes == 10


def test_lists_and_arrays_are_read_each_time():
    assert graph_of([[0, 1], [1, 0]], 2).nodes == 2
    assert graph_of(pairs().numpy(), 3, [1.0, 1.0, 1.0, 1.0]).nodes == 3
    assert graph_of(pairs(), 3, [1.0, 1.0, 1.0, 1.0]).nodes == 3


@pytest.mark.parametrize("thing", [None, "cora", 3, torch.eye(3).to_sparse(), torch.eye(3).to_sparse_csr(), object()])
def test_what_is_no_graph_is_named(thing):
    with pytest.raises(TypeError, match=r"expected a Graph .*or an edge_index of shape"):
        graph_of(thing, 3)


def test_weights_with_gradients_are_refused():
    with pytest.raises(TypeError, match="requires gradients"):
        graph_of(pairs(), 3, torch.ones(4, requires_grad=True))


def test_an_inference_tensor_is_read():
    with torch.inference_mode():
        edges = pairs()
        assert graph_of(edges, 3).nodes == 3


def test_a_first_call_in_inference_mode_does_no_harm():
    edges, model = pairs(), us.models.GCN(4, 2, dropout=0.0)
    x = torch.ones(3, 4)
    with torch.inference_mode():
        expected = model(x, edges)
    out = model(x, edges)
    out.sum().backward()
    assert torch.equal(out, expected)
