"""A graph made of blocks of rows, as on a GPU, is the one that a single sort makes."""

import itertools
import warnings

import pytest
import torch

from unspool import Graph
from unspool.graph import both_ways
from unspool.graph.edges import notes_of, unsaid_of


def edges(count, nodes, seed=0):
    chance = torch.Generator().manual_seed(seed)
    return (torch.rand(2, count, generator=chance, dtype=torch.float64) ** 2 * nodes).long()


LISTS = {
    "many": (edges(20_000, 3000), 3100),
    "repeats and loops": (edges(20_000, 60), 60),
    "none": (torch.empty(2, 0, dtype=torch.int64), 5),
    "loops alone": (torch.tensor([[3, 3, 1], [3, 3, 1]]), 5),
    "a multiple of a piece": (edges(500, 512), 512),
    "one node": (torch.empty(2, 0, dtype=torch.int64), 1),
    "a star": (torch.stack([torch.zeros(4000, dtype=torch.int64), torch.arange(4000)]), 4000),
}


@pytest.mark.parametrize("name", LISTS)
@pytest.mark.parametrize("most", [300, 1 << 28])
@pytest.mark.parametrize("loops", [0.0, 1.0])
@pytest.mark.parametrize("kind", [torch.int32, torch.int64])
def test_blocks_make_the_graph_of_one_sort(name, most, loops, kind, monkeypatch):
    monkeypatch.setattr(both_ways, "MOST", most)
    monkeypatch.setattr(both_ways, "LOOKED_AT", 1700)
    index, nodes = LISTS[name]
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        graph = Graph.from_edges(index, nodes, loops=loops)
    w, found = both_ways.made_both_ways(index.to(kind), nodes, loops)
    assert w.symmetric
    assert w.loops == graph.adjacency.loops
    for ours, theirs in zip(w.forward, graph.adjacency.forward, strict=True):
        assert (ours is None and theirs is None) or (ours.dtype == theirs.dtype and torch.equal(ours, theirs))
    unsaid = unsaid_of(found)
    assert (*notes_of(found, False), *(() if unsaid is None else (unsaid,))) == graph.notes
    assert len(said) == len(graph.notes)
    assert torch.equal(torch.nonzero(found.own).flatten(), index[0][index[0] == index[1]].unique())


def test_blocks_hold_about_as_many_entries_each(monkeypatch):
    monkeypatch.setattr(both_ways, "MOST", 3000)
    index = torch.stack([torch.arange(10_000), (torch.arange(10_000) * 7919) % 10_000])
    bounds = both_ways.bounds_of(index, 10_000)
    assert (bounds[0], bounds[-1], len(bounds)) == (0, 10_000, 8)
    held = [int(((index >= a) & (index < b)).sum()) for a, b in itertools.pairwise(bounds)]
    assert sum(held) == 20_000
    assert max(held) < 3000 + 2 * 2 * 256
