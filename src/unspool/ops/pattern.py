"""A matrix of which only the places are stored: every entry is a number of its row times a number of its column."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from unspool.ops.kernels import cpu
from unspool.ops.operator import Csr, hub_pieces

#: Rows of a pattern longer than this are cut into pieces on a GPU. There are many rows, so a long one may take its time.
LONGEST = 1024
#: How many numbers of a signal are gathered together where there is no kernel.
GATHERED = 1 << 20


@dataclass(frozen=True, eq=False)
class Pattern:
    r"""The matrix :math:`\mathrm{diag}(l)\, P\, \mathrm{diag}(r)`, where P has ones at places that are stored, and nothing else is.

    An unweighted graph needs no more: 4 bytes an entry, where an :class:`~unspool.ops.Operator` takes 8. Signals may be in half
    precision; sums are in float32 all the same (float64 for float64), and are rounded once.

    Attributes:
        crow: row starts, int64 where int32 would not do.
        col: int32 columns.
        left: one number for every row; None where all are one.
        right: one for every column; None where all are one.
        hubs: pieces of long rows, as those of :class:`~unspool.ops.operator.Csr`.
        longest: how many entries make a row long.

    Example:
        >>> import torch
        >>> half = torch.full((2,), 0.5)
        >>> pattern = Pattern.of(torch.tensor([0, 2, 3]), torch.tensor([0, 1, 1], dtype=torch.int32), half, None)
        >>> y, out = torch.tensor([[1.0], [2.0]], dtype=torch.bfloat16), torch.empty(2, 1, dtype=torch.bfloat16)
        >>> pattern.times(y, out)
        >>> out.flatten()
        tensor([1.5000, 1.0000], dtype=torch.bfloat16)
    """

    crow: Tensor
    col: Tensor
    left: Tensor | None
    right: Tensor | None
    hubs: Tensor
    longest: int = LONGEST

    @staticmethod
    def of(crow: Tensor, col: Tensor, left: Tensor | None, right: Tensor | None) -> Pattern:
        """With the pieces of long rows where they are needed."""
        hubs = hub_pieces(crow, LONGEST) if crow.is_cuda else crow.new_zeros((0, 3))
        return Pattern(crow, col, left, right, hubs)

    def times(self, y: Tensor, out: Tensor) -> None:
        """The product with a contiguous signal of shape (columns, channels), into other memory of its type."""
        if y.is_cuda:
            from unspool.ops.kernels import pattern_cuda

            pattern_cuda.product(self, y, out)
        else:
            _gathered(self, y, out)


def _gathered(pattern: Pattern, y: Tensor, out: Tensor) -> None:
    """The same sums where there is no kernel: rows of the signal are gathered in full precision, some at a time, and added up."""
    kind = torch.float64 if y.dtype is torch.float64 else torch.float32
    crow, col, rows = pattern.crow, pattern.col, pattern.crow.numel() - 1
    many, first = max(GATHERED // max(y.shape[1], 1), 1), 0
    while first < rows:
        start = int(crow[first])
        last = min(max(int(torch.searchsorted(crow, start + many, right=True)) - 1, first + 1), rows)
        source = col[start : int(crow[last])]
        given = y.index_select(0, source).to(kind)
        if pattern.right is not None:
            given *= pattern.right.index_select(0, source)[:, None]
        places = torch.arange(source.numel(), dtype=torch.int32, device=source.device)
        ones = Csr((crow[first : last + 1] - start).int(), places, given.new_ones(source.numel()), pattern.hubs)
        total = given.new_empty(last - first, y.shape[1])
        cpu.step(ones, given, total, 1.0, None, None, None)
        if pattern.left is not None:
            total *= pattern.left[first:last, None]
        out[first:last] = total
        first = last
