"""Parts of a graph: every node has one, and no part has much more work than another."""

import pytest
import torch

import unspool as us


def work(graph, parts, count):
    each = graph.adjacency.forward.crow.diff().double() + 1
    return torch.zeros(count, dtype=torch.float64).index_add_(0, parts, each)


def hubs(nodes=300):
    chance = torch.Generator().manual_seed(0)
    far = (nodes * torch.rand(2000, generator=chance) ** 3).long()
    near = torch.randint(0, nodes, (2000,), generator=chance)
    keep = (far != near).nonzero().flatten()
    return us.Graph.from_edges(torch.stack([far, near])[:, keep].unique(dim=1), nodes, directed=False)


@pytest.mark.parametrize("count", [1, 2, 3, 7])
def test_neighbouring_nodes_with_equal_shares_of_entries(count):
    graph = hubs()
    parts = us.graph.contiguous(graph, count)
    assert bool((parts.diff() >= 0).all())
    shares = work(graph, parts, count)
    heaviest = float(graph.adjacency.forward.crow.diff().max()) + 1
    assert float((shares - shares.mean()).abs().max()) <= heaviest


def test_more_parts_than_nodes():
    parts = us.graph.contiguous(us.graph.ring(3), 5)
    assert parts.unique().numel() == 3
    assert int(parts.max()) < 5


@pytest.mark.parametrize("directed", [False, True])
def test_metis_counts_degrees_and_cuts_less(directed):
    pytest.importorskip("pymetis", exc_type=ImportError)
    graph = us.graph.permuted(us.graph.grid(12, 12), torch.randperm(144, generator=torch.Generator().manual_seed(0)))
    row, col = graph.operator.rows(), graph.adjacency.forward.col.long()
    if directed:
        once = row < col
        row, col = row[once], col[once]
        graph = us.Graph.from_edges(torch.stack([row, col]), 144, directed=True)
    between = {}
    for how in (us.graph.metis, us.graph.contiguous):
        parts = how(graph, 4)
        shares = work(graph, parts, 4)
        assert float(shares.max()) <= 1.1 * float(shares.mean()), how
        between[how.__name__] = int((parts[row] != parts[col]).sum())
    assert between["metis"] < between["contiguous"] / 2


def test_without_metis_the_way_out_is_named(monkeypatch):
    import importlib

    real = importlib.import_module

    def missing(name, *more):
        if name == "pymetis":
            raise ImportError(name)
        return real(name, *more)

    monkeypatch.setattr(importlib, "import_module", missing)
    with pytest.raises(us.IncompatibleError, match="pip install 'unspool\\[metis\\]'"):
        us.graph.metis(us.graph.ring(3), 2)
