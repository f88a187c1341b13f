"""Memory: flat in depth, and nothing of the caller's is written to."""

import copy

import pytest
import torch
from torch.autograd.graph import saved_tensors_hooks

import unspool as us
from unspool.ops import column_pieces

KINDS = {"numbers": (), "diagonals": (4,), "matrices": (4, 3)}


def signal(*shape, seed=1):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def one_way(nodes=9, seed=0, dtype=torch.float64):
    """A directed weighted graph: its operator differs from its transpose."""
    generator = torch.Generator().manual_seed(seed)
    dense = torch.rand(nodes, nodes, generator=generator) * (torch.rand(nodes, nodes, generator=generator) < 0.4)
    return us.Graph.from_dense(dense, normalise=us.Normalisation.RANDOM_WALK, directed=True).to(dtype)


def kept_bytes(graph, x, hops, run):
    """Bytes that autograd keeps for the backward pass, other than the graph's own and the coefficients."""
    known = {t.untyped_storage().data_ptr() for csr in (graph.operator.forward, graph.operator.transpose) for t in csr}
    known.add(hops.untyped_storage().data_ptr())
    kept = {}

    def pack(t):
        if t.untyped_storage().data_ptr() not in known:
            kept[t.untyped_storage().data_ptr()] = t.untyped_storage().nbytes()
        return t

    with saved_tensors_hooks(pack, lambda t: t):
        result = run(x, hops)
    assert result.requires_grad
    return sum(kept.values())


@pytest.mark.parametrize("kind", list(KINDS))
@pytest.mark.parametrize("basis", list(us.Basis))
def test_bytes_kept_for_backward_do_not_grow_with_depth(basis, kind):
    graph, x = one_way(), signal(9, 4).requires_grad_()

    def kept(depth):
        hops = signal(depth + 1, *KINDS[kind]).requires_grad_()
        return kept_bytes(graph, x, hops, lambda x, hops: us.propagate(graph, x, hops, basis))

    assert [kept(depth) for depth in (1, 10, 50)] == [x.nbytes] * 3


def test_the_byte_counter_sees_a_network_that_keeps_its_steps():
    graph, x, hops = one_way(), signal(9, 4).requires_grad_(), signal(11).requires_grad_()

    def stepped(x, hops):
        h = x
        for c in hops:
            h = c * (graph @ h)
        return h

    assert kept_bytes(graph, x, hops, stepped) >= 10 * x.nbytes


@pytest.mark.parametrize("degree", [0, 1, 2, 3, 6])
@pytest.mark.parametrize("kind", list(KINDS))
@pytest.mark.parametrize("basis", list(us.Basis))
def test_nothing_of_the_callers_is_overwritten(basis, kind, degree):
    graph = one_way()
    mine = [signal(9, 4).requires_grad_(), signal(degree + 1, *KINDS[kind]).requires_grad_()]
    result = us.propagate(graph, *mine, basis)
    mine.append(signal(*result.shape))
    before = copy.deepcopy([*mine, *graph.operator.forward, *graph.operator.transpose])
    torch.autograd.grad(result, mine[:2], mine[2])
    assert all(
        torch.equal(a, b)
        for a, b in zip(before, [*mine, *graph.operator.forward, *graph.operator.transpose], strict=True)
    )


@pytest.mark.parametrize("columns", [1, 8, 9, 40, 77])
@pytest.mark.parametrize("block", [1, 3, 5, 13])
def test_pieces_cover_all_columns_in_whole_blocks(monkeypatch, columns, block):
    monkeypatch.setattr(column_pieces, "cache_bytes", lambda: 100 * 9)
    pieces = column_pieces.cache_pieces(signal(9, 1), columns * block, whole_blocks=True, block=block)
    covered = [i for piece in pieces for i in range(piece.start, piece.stop)]
    assert covered == list(range(columns * block))
    assert all(edge % block == 0 for piece in pieces for edge in (piece.start, piece.stop))
    assert (len(pieces) > 1) == (columns * block > 8 and columns > 1)
