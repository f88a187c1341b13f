"""Which rows of the whole signal the rows of a tensor are, where a process works on some of them."""

from __future__ import annotations

import contextlib
from collections.abc import Generator
from contextvars import ContextVar

from torch import Tensor

_ROWS: ContextVar[Tensor | None] = ContextVar("own rows", default=None)


def own_rows() -> Tensor | None:
    """The numbers of the rows that signals have here; None where they have all."""
    return _ROWS.get()


@contextlib.contextmanager
def rows_are(rows: Tensor) -> Generator[None]:
    """Inside, row i of a signal is row ``rows[i]`` of the whole: masks of dropout are those of these rows, and no kernel counts for itself.

    Example:
        >>> import torch
        >>> from unspool.ops.dropout import dropout, key
        >>> x, rows = torch.ones(10, 4), torch.tensor([7, 2])
        >>> with rows_are(rows):
        ...     some = dropout(x[rows], 0.5, key(0, 1, 2))
        >>> torch.equal(some, dropout(x, 0.5, key(0, 1, 2))[rows])
        True
    """
    before = _ROWS.set(rows)
    try:
        yield
    finally:
        _ROWS.reset(before)
