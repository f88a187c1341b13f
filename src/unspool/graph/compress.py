"""Entries of a sparse matrix sorted into compressed rows: the one sort that a graph costs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from unspool.ops.transforming import transforming

#: How many entries a walk over a matrix looks at together: few enough for the cache, on a GPU enough to fill it.
BLOCK, BLOCK_CUDA = 1 << 18, 1 << 26


class Rows(NamedTuple):
    """A matrix in compressed rows: row starts (int64 while a graph is made), int32 columns, and something beside every entry, or None."""

    crow: Tensor
    col: Tensor
    beside: Tensor | None


class Block(NamedTuple):
    """Some whole rows of a matrix, ``first`` up to ``last``, and their entries, ``start`` up to ``stop``."""

    first: int
    last: int
    start: int
    stop: int


def ordered(row: Tensor, col: Tensor, beside: Tensor | None, nodes: int, turned: bool = False) -> Rows:
    """Entries sorted by row and then by column; equal ones stay in the order of the list.

    Two counting sorts on the CPU (first by column, then by row), a sort of keys on a GPU.

    Args:
        row: the row of every entry.
        col: its column.
        beside: what goes with it.
        nodes: how many rows and columns there are.
        turned: whether the smaller of the two is the row, whichever it was.

    Example:
        >>> import torch
        >>> ordered(torch.tensor([1, 0, 1]), torch.tensor([1, 0, 0]), torch.tensor([5, 6, 7]), 2)
        Rows(crow=tensor([0, 1, 3]), col=tensor([0, 0, 1], dtype=torch.int32), beside=tensor([6, 7, 5]))
    """
    low, high = (_narrow(torch.minimum, row, col), _narrow(torch.maximum, row, col)) if turned else (row, col)
    if row.device.type != "cpu" or transforming():
        return _sorted_by_key(low, high, beside, nodes)
    import scipy.sparse

    numbers = (high.int().numpy(), low.int().numpy())
    matrix: Any = scipy.sparse.coo_array((_numpy(beside, row.numel()), numbers), shape=(nodes, nodes))
    matrix.has_canonical_format = True  # Trap: else SciPy adds equal entries up
    del numbers, low, high
    matrix = matrix.tocsr()
    return _rows(matrix.tocsc(), beside is not None)


def transposed(rows: Rows, nodes: int) -> Rows:
    """The transpose of a matrix with sorted rows, again with sorted rows.

    Example:
        >>> import torch
        >>> transposed(Rows(torch.tensor([0, 2, 2]), torch.tensor([0, 1]), None), 2)
        Rows(crow=tensor([0, 1, 2]), col=tensor([0, 0], dtype=torch.int32), beside=None)
    """
    if rows.col.device.type != "cpu" or transforming():
        row = torch.repeat_interleave(torch.arange(nodes, device=rows.col.device, dtype=torch.int32), rows.crow.diff())
        return _sorted_by_key(rows.col, row, rows.beside, nodes)
    import scipy.sparse

    parts = (_numpy(rows.beside, rows.col.numel()), rows.col.numpy(), rows.crow.numpy())
    return _rows(scipy.sparse.csr_array(parts, shape=(nodes, nodes)).tocsc(), rows.beside is not None)


def blocks(crow: Tensor) -> Iterator[Block]:
    """The rows of a matrix in blocks of about as many entries each, a longer row being one of its own; rows without entries, too.

    Example:
        >>> import torch
        >>> list(blocks(torch.tensor([0, 2, 2, 3])))
        [Block(first=0, last=3, start=0, stop=3)]
    """
    size = BLOCK_CUDA if crow.is_cuda else BLOCK
    marks = torch.arange(0, int(crow[-1]), size, dtype=crow.dtype, device=crow.device)
    inner = torch.searchsorted(crow, marks[1:]).tolist()
    places = sorted({0, *inner, crow.numel() - 1})
    starts = crow[torch.tensor(places, device=crow.device)].tolist()
    for i in range(len(places) - 1):
        yield Block(places[i], places[i + 1], starts[i], starts[i + 1])


def rows_in(crow: Tensor, block: Block) -> Tensor:
    """The row of every entry of a block.

    Example:
        >>> import torch
        >>> rows_in(torch.tensor([0, 2, 2, 3]), Block(1, 3, 2, 3))
        tensor([2])
    """
    count = crow[block.first : block.last + 1].diff().long()
    rows = torch.arange(block.first, block.last, device=crow.device)
    return torch.repeat_interleave(rows, count, output_size=block.stop - block.start)


def starts_of(count: Tensor) -> Tensor:
    """Row starts from the numbers of entries.

    Example:
        >>> import torch
        >>> starts_of(torch.tensor([2, 0, 1]))
        tensor([0, 2, 2, 3])
    """
    crow = count.new_zeros(count.numel() + 1, dtype=torch.int64)
    torch.cumsum(count, 0, dtype=torch.int64, out=crow[1:])
    return crow


def _sorted_by_key(row: Tensor, col: Tensor, beside: Tensor | None, nodes: int) -> Rows:
    key = (row.long() << 32) | col.long()
    key, order = torch.sort(key, stable=True)
    beside = None if beside is None else beside[order]
    del order
    edges = torch.arange(nodes + 1, device=row.device, dtype=torch.int64) << 32
    return Rows(torch.searchsorted(key, edges), (key & 0xFFFFFFFF).int(), beside)


def _narrow(smaller: Any, a: Tensor, b: Tensor) -> Tensor:
    """The smaller or larger ends as int32, piece by piece."""
    out = torch.empty(a.numel(), dtype=torch.int32, device=a.device)
    size = 1 << 20 if a.device.type == "cpu" else 1 << 28
    for to, x, y in zip(out.split(size), a.split(size), b.split(size), strict=True):
        to.copy_(smaller(x, y))
    return out


def _numpy(beside: Tensor | None, size: int) -> Any:
    return np.zeros(size, dtype=np.int8) if beside is None else beside.numpy()


def _rows(matrix: Any, beside: bool) -> Rows:
    crow = torch.from_numpy(matrix.indptr.astype(np.int64, copy=False))
    col = torch.from_numpy(matrix.indices.astype(np.int32, copy=False))
    return Rows(crow, col, torch.from_numpy(matrix.data) if beside else None)
