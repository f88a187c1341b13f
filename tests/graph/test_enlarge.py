"""New nodes in a graph: the whole is that of all edges together, the part around them is a part of it."""

import warnings

import pytest
import torch

import unspool as us
from unspool.errors import InputError
from unspool.graph import NewEdges, around_new, enlarged

NEW = 4


def edges_and_weights(directed, seed=0):
    """Old edges among 60 nodes along a line with shortcuts, and new ones, some of them between new nodes, and a loop."""
    chance = torch.Generator().manual_seed(seed)
    old = torch.stack([torch.arange(59), torch.arange(1, 60)])
    old = torch.cat([old, torch.randint(0, 20, (2, 12), generator=chance)], dim=1)
    new = torch.tensor([[60, 3, 61, 62, 61, 62, 61], [5, 60, 5, 61, 61, 30, 60]])
    if directed:
        new = torch.cat([new, torch.tensor([[7], [62]])], dim=1)  # node 63 has no edge
    return old, torch.rand(old.shape[1], generator=chance) + 0.2, new, torch.rand(new.shape[1], generator=chance) + 0.2


def both(how, directed, weighted, loops):
    """The enlarged graph from all edges, and the old one with new edges."""
    old, w, new, v = edges_and_weights(directed)
    said = {"normalise": how, "loops": loops, "directed": directed}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        whole = us.Graph.from_edges(
            torch.cat([old, new], 1), 64, torch.cat([w, v]).double() if weighted else None, **said
        ).to(torch.float64)
        graph = us.Graph.from_edges(old, 60, w.double() if weighted else None, **said).to(torch.float64)
    return whole, graph, NewEdges(new, v.double() if weighted else None, loops)


@pytest.mark.parametrize("how", us.Normalisation)
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize(("weighted", "loops"), [(False, 1.0), (True, 1.0), (False, 0.0), (True, 0.3)])
def test_the_whole_is_that_of_all_edges(how, directed, weighted, loops):
    whole, graph, new = both(how, directed, weighted, loops)
    found = enlarged(graph, NEW, new)
    assert torch.allclose(found.to_dense(), whole.to_dense(), rtol=0, atol=1e-15)
    assert torch.allclose(found.degree, whole.degree, rtol=1e-15)
    assert (found.scale, found.symmetric, found.undirected) == pytest.approx(
        (whole.scale, whole.symmetric, whole.undirected)
    )
    assert (found.smoother is None) == (whole.smoother is None)
    if whole.smoother is not None:
        assert torch.allclose(found.smoother.to_dense(), whole.smoother.to_dense(), rtol=0, atol=1e-14)


@pytest.mark.parametrize("how", us.Normalisation)
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("hops", [0, 1, 3])
def test_the_part_around_them_is_a_part_of_it(how, directed, hops):
    whole, graph, new = both(how, directed, weighted=True, loops=0.3)
    part, old = around_new(graph, NEW, new, hops)
    here = torch.cat([old, torch.arange(60, 64)])
    wanted = us.graph.part_of(whole, here)
    assert torch.equal(old, us.graph.neighbourhood(whole, torch.arange(60, 64), hops)[NEW:].sort().values)
    assert torch.allclose(part.to_dense(), wanted.to_dense(), rtol=0, atol=1e-15)
    assert torch.allclose(part.degree, wanted.degree, rtol=1e-15)
    assert part.scale == pytest.approx(wanted.scale)
    assert (part.smoother is None) == (wanted.smoother is None)
    if wanted.smoother is not None:
        assert torch.allclose(part.smoother.to_dense(), wanted.smoother.to_dense(), rtol=0, atol=1e-14)


def test_random_walks_on_regular_graphs_ask_the_whole():
    graph = us.graph.ring(8, normalise=us.Normalisation.RANDOM_WALK)
    assert graph.symmetric
    part, _ = around_new(graph, 1, [[8], [0]], 1)
    assert part.smoother is None
    assert not part.symmetric


def test_a_graph_with_a_general_laplacian_keeps_it():
    chain = us.Graph.from_edges([[0, 1], [1, 2]], 3, directed=True).with_general_laplacian()
    assert enlarged(chain, 1, [[2], [3]]).smoother is not None
    assert around_new(chain, 1, [[2], [3]], 1)[0].smoother is not None


def test_edges_of_unequal_weight_meet_unweighted_graphs():
    graph = us.graph.path(3)
    found = enlarged(graph, 1, NewEdges([[3], [2]], [0.5]))
    wanted = us.Graph.from_edges([[0, 1, 3], [1, 2, 2]], 4, [1, 1, 0.5], directed=False)
    assert torch.allclose(found.to_dense(), wanted.to_dense())


def test_what_is_listed_twice_counts_once_and_is_said():
    graph = us.graph.path(3)
    with pytest.warns(UserWarning, match="listed more than once"):
        found = enlarged(graph, 1, [[3, 3], [2, 2]])
    assert found.edges == 3
    assert enlarged(graph, 1, [[3, 2], [2, 3]]).edges == 3  # both ways are one edge


def test_new_nodes_without_edges():
    found = enlarged(us.graph.path(3), 2, torch.empty(2, 0, dtype=torch.int64))
    assert (found.nodes, found.edges) == (5, 2)
    part, old = around_new(us.graph.path(3), 2, [[], []], 4)
    assert (part.nodes, old.numel()) == (2, 0)
    assert torch.equal(part.to_dense(), torch.eye(2))


@pytest.mark.parametrize("edges", [[[0], [4]], [[-1], [3]], [[0], [1]], [[1], [1]], [[0.5], [3]], [0, 3]])
def test_wrong_edges(edges):
    with pytest.raises((ValueError, TypeError)):
        enlarged(us.graph.path(3), 1, edges)


def test_wrong_counts_and_loops():
    weighted = us.Graph.from_edges([[0, 1], [1, 1]], 2, [1.0, 3.0], directed=False)
    with pytest.raises(InputError, match="self-loop"):
        enlarged(weighted, 1, [[2], [0]])
    assert enlarged(weighted, 1, NewEdges([[2], [0]], loops=1.0)).nodes == 3
    for nodes in (0, -1, 1.5):
        with pytest.raises(InputError):
            enlarged(us.graph.path(3), nodes, [[], []])
