"""A of an unweighted graph from the places of its entries alone; graphs that are more than that are told apart."""

import pytest
import torch

import unspool as us
from unspool import Graph, Normalisation
from unspool.errors import IncompatibleError
from unspool.graph.pattern import pattern_of, walk_on

EDGES = torch.tensor([[0, 1, 2, 3, 3, 0], [1, 2, 0, 4, 0, 0]])


@pytest.mark.parametrize("how", list(Normalisation))
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("loops", [0.0, 1.0])
def test_a_pattern_is_the_graph(how, directed, loops):
    graph = Graph.from_edges(EDGES, 6, normalise=how, directed=directed, loops=loops).to(torch.float64)
    pattern = pattern_of(graph)
    y, out = torch.eye(6, dtype=torch.float64), torch.empty(6, 6, dtype=torch.float64)
    pattern.times(y, out)
    assert torch.allclose(out, graph.to_dense(), atol=1e-15)


def test_other_matrices_have_none():
    plain = us.graph.ring(6)
    assert pattern_of(Graph.from_edges(EDGES, 6, weights=torch.arange(1.0, 7.0), directed=False)) is None
    assert pattern_of(Graph.from_edges(EDGES, 6, directed=False, loops=0.5)) is None
    csr = plain.operator.forward
    scaled = plain.operator.to(values=(2 * csr.val, 2 * csr.val))
    assert pattern_of(plain.with_operator(scaled, "it is scaled")) is None
    assert pattern_of(plain.with_operator(us.graph.star(6).operator, "it is a star")) is None
    assert pattern_of(plain.with_general_laplacian()) is not None


def test_products_have_the_bits_of_the_graph_or_are_refused():
    weighted = Graph.from_edges(EDGES, 6, weights=torch.arange(1.0, 7.0), directed=False)
    y, out = torch.randn(6, 3), torch.empty(6, 3)
    walk_on(weighted, torch.float32).step(y, out)
    assert torch.equal(out, weighted @ y)
    with pytest.raises(IncompatibleError, match="this one has weights; leave dtype="):
        walk_on(weighted, torch.bfloat16)


@pytest.mark.parametrize("normalisation", Normalisation)
@pytest.mark.parametrize("loops", [0.0, 1.0])
def test_a_walk_in_half_precision_is_that_of_the_graph(normalisation, loops):
    graph = Graph.from_edges(
        EDGES, 8, directed=False, normalise=normalisation, loops=loops
    )  # nodes 5 to 7 have no edge
    y = torch.randn(8, 3, generator=torch.Generator().manual_seed(0)).bfloat16()
    walk, travels, out, wanted = walk_on(graph, torch.bfloat16), y.clone(), torch.empty_like(y), y.float()
    walk.begin(travels)
    for _ in range(4):
        walk.step(travels, out)
        travels, out, wanted = out, travels, graph @ wanted
        for rows in (slice(2, 8), torch.tensor([7, 0])):
            found = walk.signal(travels, rows)
            assert found.dtype is torch.bfloat16
            torch.testing.assert_close(found.float(), wanted[rows], rtol=0.03, atol=0.03)
