"""Parts of graphs keep what their nodes have in the whole."""

import pytest
import torch

import unspool as us


def test_entries_degrees_and_incidence_are_those_of_the_whole():
    graph = us.graph.sensor(60)[0].to(torch.float64)
    nodes = us.graph.neighbourhood(graph, torch.tensor([11, 3]), 2)
    part = us.graph.part_of(graph, nodes)
    assert torch.equal(nodes[:2], torch.tensor([11, 3]))
    assert torch.equal(part.to_dense(), graph.to_dense()[nodes][:, nodes])
    assert torch.equal(part.degree, graph.degree[nodes])
    b = part.incidence().to_dense()
    inside = us.graph.part_of(graph, us.graph.neighbourhood(graph, torch.tensor([11, 3]), 1)).nodes
    whole = (torch.eye(60, dtype=torch.float64) - graph.to_dense())[nodes][:, nodes]
    off = ~torch.eye(part.nodes, dtype=torch.bool)
    assert torch.allclose((b.T @ b)[off], whole[off])
    # Rows whose neighbours are all there are whole, the diagonal included.
    assert torch.allclose((b.T @ b)[:inside, :inside], whole[:inside, :inside])


def test_neighbourhoods_follow_edges_both_ways_and_end():
    graph = us.Graph.from_edges(torch.tensor([[0, 1, 3], [1, 2, 4]]), 6, directed=True)
    assert sorted(us.graph.neighbourhood(graph, torch.tensor([1]), 5).tolist()) == [0, 1, 2]
    assert us.graph.neighbourhood(graph, torch.tensor([5]), 3).tolist() == [5]
    assert us.graph.neighbourhood(graph, torch.tensor([4, 0]), 0).tolist() == [4, 0]


def test_a_part_keeps_names_scale_and_smoother():
    graph = us.Graph.from_edges(
        torch.tensor([[0, 1, 2], [1, 2, 3]]), 4, normalise=us.Normalisation.NONE, loops=0, directed=False
    )
    part = us.graph.part_of(graph, torch.tensor([2, 1]))
    assert part.scale == graph.scale
    assert torch.equal(part.smoother.to_dense(), graph.smoother.to_dense()[[2, 1]][:, [2, 1]])


@pytest.mark.parametrize("how", us.Normalisation)
@pytest.mark.parametrize("directed", [False, True])
def test_without_is_the_graph_of_the_other_edges(how, directed):
    chance = torch.Generator().manual_seed(0)
    place = torch.randperm(20 * 20, generator=chance)[:70]
    place = place[place // 20 < place % 20]
    edges, weights = torch.stack([place // 20, place % 20]), torch.rand(place.numel(), generator=chance) + 0.1
    graph = us.Graph.from_edges(edges, 20, weights, normalise=how, directed=directed)
    gone = [3, 7, 19]
    kept = [i for i in range(20) if i not in gone]
    left = [e for e in range(edges.shape[1]) if int(edges[0, e]) in kept and int(edges[1, e]) in kept]
    new = torch.tensor([[kept.index(int(i)) for i in row[left]] for row in edges])
    wanted = us.Graph.from_edges(new, 17, weights[left], normalise=how, directed=directed)
    found = us.graph.without(graph, gone)
    assert torch.allclose(found.to_dense(), wanted.to_dense(), atol=1e-6)
    assert torch.allclose(found.degree, wanted.degree)
    assert (found.undirected, found.normalisation) == (wanted.undirected, how)


def test_all_nodes_cannot_be_taken_out():
    with pytest.raises(us.InputError) as caught:
        us.graph.without(us.graph.ring(3), [0, 1, 2])
    assert caught.value.argument == "nodes"
