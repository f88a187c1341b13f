"""Every process has the whole matrix and propagates some columns of the signals, through all hops, alone."""

from __future__ import annotations

import itertools

import torch
from torch import Tensor

from unspool.ops import matrix_hops, recurrence
from unspool.ops.operator import Operator
from unspool.ops.ranks import Ranks
from unspool.ops.spread_operator import SpreadOperator


class ColumnOperator(SpreadOperator):
    r"""A matrix that all processes hold, with signals cut by rows at rest and by columns on their way.

    Columns of a polynomial of M do not see one another. So the rows of X become columns in one exchange, take all hops, and become rows
    again in one more, however many hops there are: :math:`n c\,(P - 1) / P` numbers each, of all P processes together. Hop coefficients that are
    matrices mix channels between hops: then the second exchange has K + 1 pages.

    Args:
        whole: the matrix.
        ranks: the processes.
        rows: how many rows of signals each has, in order.
    """

    def __init__(self, whole: Operator, ranks: Ranks, rows: tuple[int, ...]) -> None:
        super().__init__(ranks, rows, whole.dtype, whole.device)
        vars(self).update(whole=whole)

    whole: Operator

    @property
    def symmetric(self) -> bool:
        """Whether the matrix equals its transpose."""
        return self.whole.symmetric

    @property
    def T(self) -> ColumnOperator:  # noqa: N802
        """The transpose."""
        return ColumnOperator(self.whole.T, self.ranks, self.owned)

    def product(self, x: Tensor, turned: bool) -> Tensor:  # noqa: D102
        columns = self._to_columns(x)
        csr = self.whole.transpose if turned else self.whole.forward
        return self._to_rows(recurrence.product(csr, columns) if columns.shape[1] else columns, x.shape[1])

    def series(self, x: Tensor, hops: Tensor, chebyshev: bool, turned: bool) -> tuple[Tensor, Tensor]:  # noqa: D102
        columns = self._to_columns(x)
        out = columns
        if columns.shape[1]:
            mine = self._mine(hops, x.shape[1])[:, None]
            csr = self.whole.transpose if turned else self.whole.forward
            out = recurrence.series(csr, columns[:, None], mine, chebyshev)[:, 0]
        return self._to_rows(out, x.shape[1]), columns

    def sweep(self, g: Tensor, seen: Tensor, hops: Tensor, chebyshev: bool, want_dx: bool) -> tuple[Tensor, Tensor]:  # noqa: D102
        width, columns = g.shape[1], self._to_columns(g)
        dx, dhops = columns, torch.zeros_like(hops)
        if columns.shape[1]:
            mine = self._mine(hops, width)[:, None]
            dx, part = recurrence.sweep(self.whole.transpose, columns[:, None], seen[:, None], mine, chebyshev, want_dx)
            self._mine(dhops, width).copy_(part[:, 0])
            dx = dx[:, 0] if want_dx else dx
        return (self._to_rows(dx, width) if want_dx else dx), dhops

    def walk(self, x: Tensor, depth: int, chebyshev: bool, turned: bool) -> Tensor:  # noqa: D102
        columns = self._to_columns(x)
        pages = columns.new_empty(columns.shape[0], depth + 1, columns.shape[1])
        if columns.shape[1]:
            csr = self.whole.transpose if turned else self.whole.forward
            pages = matrix_hops.walk(csr, columns[:, None], depth + 1, chebyshev)[:, 0]
        return self._to_rows(pages, x.shape[1])

    def gather(self, pages: Tensor, chebyshev: bool, turned: bool) -> Tensor:  # noqa: D102
        columns = self._to_columns(pages)
        total = columns.new_empty(columns.shape[0], columns.shape[2])
        if columns.shape[2]:
            csr = self.whole.transpose if turned else self.whole.forward
            total = matrix_hops.clenshaw(csr, columns[:, None].contiguous(), chebyshev)[:, 0]
        return self._to_rows(total, pages.shape[2])

    # -- from rows to columns and back -----------------------------------------------------------------------------------

    def _mine(self, hops: Tensor, width: int) -> Tensor:
        """The coefficients of this process's columns."""
        return hops if hops.ndim == 1 else hops[:, shares(width, self.ranks.size)[self.ranks.rank]]

    def _to_columns(self, x: Tensor) -> Tensor:
        """Own rows with all columns, (own, ..., c), as all rows with own columns, (n, ..., some)."""
        own, between, cut = x.shape[0], x.shape[1:-1], shares(x.shape[-1], self.ranks.size)
        each = between.numel()
        mine = _width(cut[self.ranks.rank])
        sent = torch.cat([x[..., some].reshape(-1) for some in cut])
        got = self.ranks.exchange(
            sent, [own * each * _width(some) for some in cut], [rows * each * mine for rows in self.owned]
        )
        return got.view(sum(self.owned), *between, mine)

    def _to_rows(self, y: Tensor, width: int) -> Tensor:
        """The way back, to signals of so many columns."""
        own, between, cut = self.shape[0], y.shape[1:-1], shares(width, self.ranks.size)
        each, mine = between.numel(), y.shape[-1]
        given = [own * each * _width(some) for some in cut]
        got = self.ranks.exchange(y.reshape(-1), [rows * each * mine for rows in self.owned], given)
        return torch.cat(
            [part.view(own, *between, _width(some)) for part, some in zip(got.split(given), cut, strict=True)], -1
        )


def shares(count: int, parts: int) -> list[slice]:
    """Neighbouring columns, or rows, dealt as evenly as can be; where there are fewer than processes, the last have none.

    Example:
        >>> shares(5, 3), shares(1, 2)
        ([slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)], [slice(0, 1, None), slice(1, 1, None)])
    """
    ends = itertools.accumulate((count + parts - 1 - i) // parts for i in range(parts))
    return [slice(a, b) for a, b in itertools.pairwise([0, *ends])]


def _width(some: slice) -> int:
    return some.stop - some.start
