"""A in pieces of rows is A, and a product with the pieces is the product, bit for bit."""

import itertools

import numpy as np
import pytest
import torch

from unspool import Graph, Normalisation
from unspool.graph import compress
from unspool.graph.row_pieces import RowPieces

NODES = 400


def made(directed, weighted, how, dtype):
    random = np.random.default_rng(0)
    index = torch.from_numpy((random.random((2, 3000)) ** 2 * (NODES - 3)).astype(np.int64)).unique(dim=1)
    weights = torch.from_numpy(random.integers(0, 4, index.shape[1]) / 4.0) if weighted else None
    if not directed:
        weights = None if weights is None else ((index[0] * index[1]) % 4 / 4).double()
        index = torch.cat([index, index.flip(0)], 1)
        weights = None if weights is None else weights.repeat(2)
        index, place = index.unique(dim=1, return_inverse=True)
        weights = None if weights is None else torch.zeros(index.shape[1]).double().scatter_(0, place, weights)
    return Graph.from_edges(index, NODES, weights, normalise=how, directed=directed).to(dtype)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("how", list(Normalisation))
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("directed", [False, True])
def test_pieces_are_the_rows_of_the_operator(directed, weighted, how, dtype, monkeypatch):
    monkeypatch.setattr(compress, "BLOCK", 300)
    graph = made(directed, weighted, how, dtype)
    whole = graph.operator.forward
    bare = Graph(**{name: getattr(graph, name) for name in Graph.__dataclass_fields__} | {"_entries": None})
    object.__setattr__(bare, "_entries", None)
    for one in (graph, bare):  # with A made, and without
        pieces = list(RowPieces(one))
        assert len(pieces) > 5
        assert (pieces[0].first, pieces[-1].last) == (0, NODES)
        assert all(a.last == b.first for a, b in itertools.pairwise(pieces))
        assert torch.equal(torch.cat([piece.entries.val for piece in pieces]), whole.val)
        assert torch.equal(torch.cat([piece.entries.col for piece in pieces]), whole.col)
        y = torch.randn(NODES, 5, dtype=dtype, generator=torch.Generator().manual_seed(1))
        out = torch.full_like(y, float("nan"))
        RowPieces(one).times(y, out)
        assert torch.equal(out, graph @ y)


def test_the_operator_stays_unmade():
    graph = made(False, False, Normalisation.SYMMETRIC, torch.float32)
    object.__setattr__(graph, "_entries", None)
    RowPieces(graph).times(torch.ones(NODES, 2), torch.empty(NODES, 2))
    assert graph._entries is None
