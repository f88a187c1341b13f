"""A permuted graph is the same graph under other names."""

import pytest
import torch

import unspool as us

RING = torch.tensor([[0, 1, 2, 3, 4, 0], [1, 2, 3, 4, 0, 2]])


def graphs():
    weights = torch.tensor([1.0, 2.0, 0.5, 3.0, 1.5, 0.7])
    for how in us.Normalisation:
        for loops in (0.0, 1.0):
            for directed in (True, False):
                made = us.Graph.from_edges(
                    RING, nodes=6, weights=weights, normalise=how, loops=loops, directed=directed
                )
                yield made
                yield made.with_general_laplacian().to(torch.float64)


@pytest.mark.parametrize("graph", list(graphs()), ids=str)
def test_everything_that_belongs_to_it_moves_along(graph):
    order = torch.tensor([3, 0, 5, 1, 4, 2])
    moved = us.graph.permuted(graph, order)
    assert (moved.dtype, moved.scale, moved.undirected) == (graph.dtype, graph.scale, graph.undirected)
    assert torch.equal(moved.to_dense(), graph.to_dense()[order][:, order])
    assert torch.equal(moved.degree, graph.degree[order])
    assert (moved.smoother is None) == (graph.smoother is None)
    if graph.smoother is not None:
        assert torch.equal(moved.smoother.to_dense(), graph.smoother.to_dense()[order][:, order])
    try:
        b = graph.incidence().to_dense()
    except us.IncompatibleError:
        with pytest.raises(us.IncompatibleError):
            moved.incidence()
        return
    b_moved, b = moved.incidence().to_dense(), b[:, order]
    # The rows of B are the same up to their order and signs.
    rows = {tuple(row.abs().tolist()) for row in b}
    assert rows == {tuple(row.abs().tolist()) for row in b_moved}
    assert torch.allclose(b_moved.T @ b_moved, b.T @ b, atol=1e-6)


def test_names_move_and_bad_orders_are_named():
    import networkx

    graph = us.Graph.from_networkx(networkx.path_graph(["a", "b", "c"]))
    assert us.graph.permuted(graph, torch.tensor([2, 0, 1])).names == ("c", "a", "b")
    with pytest.raises(ValueError, match="each of the 3 nodes once"):
        us.graph.permuted(graph, torch.tensor([0, 0, 1]))
