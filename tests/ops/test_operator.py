"""A sparse matrix and its transpose, stored as they say, and long rows cut into pieces."""

import pytest
import torch

from unspool.ops.operator import Operator, hub_pieces, row_of_entry


def seeded(seed):
    return torch.Generator().manual_seed(seed)


def signal(*shape, seed=1):
    return torch.randn(*shape, generator=seeded(seed), dtype=torch.float64)


def from_dense(dense):
    row, col = dense.nonzero(as_tuple=True)
    return Operator.from_entries(row, col, dense[row, col], tuple(dense.shape))


def sparse(rows=9, cols=9, seed=0):
    """A random matrix, unlike its transpose, with an empty row and an empty column."""
    dense = signal(rows, cols, seed=seed) * (torch.rand(rows, cols, generator=seeded(seed)) < 0.4)
    dense[1], dense[:, 2] = 0, 0
    return from_dense(dense), dense


@pytest.mark.parametrize(("rows", "cols"), [(6, 6), (3, 8), (8, 3)])
def test_transpose(rows, cols):
    operator, dense = sparse(rows, cols)
    assert operator.T.shape == (cols, rows)
    assert torch.equal(operator.T.to_dense(), dense.T)
    assert torch.allclose(operator.T @ signal(rows, 2), dense.T @ signal(rows, 2), rtol=1e-13)
    assert torch.equal(operator.T.T.to_dense(), dense)


def test_symmetric_matrices_keep_one_copy():
    dense = sparse()[1]
    both = from_dense(dense + dense.T)
    assert both.symmetric
    assert both.T.symmetric
    assert both.to(values=(both.forward.val.float(), both.transpose.val.float())).symmetric
    assert not from_dense(dense).symmetric


def test_indices_are_32_bit():
    operator, dense = sparse(5, 7)
    for csr in (operator.forward, operator.transpose):
        assert csr.crow.dtype == csr.col.dtype == torch.int32
        assert int(csr.crow[-1]) == csr.col.numel() == int((dense != 0).sum())


def test_entries_in_any_order():
    operator, dense = sparse()
    row, col = dense.nonzero(as_tuple=True)
    order = torch.randperm(row.numel(), generator=seeded(3))
    shuffled = Operator.from_entries(row[order], col[order], dense[row, col][order], (9, 9))
    assert torch.equal(shuffled.forward.col, operator.forward.col)
    assert torch.equal(shuffled.to_dense(), dense)
    assert torch.equal(torch.from_numpy(operator.to_scipy().toarray()), dense)


@pytest.mark.parametrize("longest", [1, 2, 5, 128])
@pytest.mark.parametrize("seed", range(5))
def test_pieces_cover_every_long_row_once_in_order(longest, seed):
    length = torch.randint(0, 4 * longest, (30,), generator=seeded(seed))
    length[torch.rand(30, generator=seeded(seed + 100)) < 0.3] = longest  # rows just short enough
    crow = torch.cat([torch.zeros(1, dtype=torch.int64), length.cumsum(0)]).int()
    pieces = hub_pieces(crow, longest)
    row, first, last = pieces.long().unbind(1)
    covered = torch.cat([torch.arange(a, b) for a, b in zip(first, last, strict=True)] or [torch.zeros(0).long()])
    entry_row = row_of_entry(crow)
    assert pieces.dtype == torch.int32
    assert torch.equal(covered, torch.nonzero(length[entry_row] > longest).flatten())
    assert torch.equal(entry_row[covered], torch.repeat_interleave(row, last - first))
    assert bool((last - first <= longest).all())
    assert bool((last - first > 0).all())
    assert row.numel() == int(((length[length > longest] + longest - 1) // longest).sum())
