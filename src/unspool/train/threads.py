"""How many threads train on the CPU: one rule for single runs and studies, and a number where somebody asks for it."""

from __future__ import annotations

import contextlib
from collections.abc import Generator
from contextvars import ContextVar

import torch

#: Graphs up to this many nodes are trained with one thread.
SMALL = 4096

_asked: ContextVar[int | None] = ContextVar("threads", default=None)


def threads_for(nodes: int) -> int:
    """As many as were asked for (:func:`use_threads`); else one on graphs of up to 4,096 nodes, and torch's number above.

    Example:
        >>> threads_for(100)
        1
        >>> with use_threads(2):
        ...     threads_for(100), threads_for(1_000_000)
        (2, 2)
    """
    asked = _asked.get()
    if asked is not None:
        return asked
    return 1 if nodes <= SMALL else torch.get_num_threads()


def asked_threads() -> int | None:
    """The number that was asked for, if any: what other processes of the same work are told.

    Example:
        >>> asked_threads() is None
        True
    """
    return _asked.get()


@contextlib.contextmanager
def use_threads(count: int | None) -> Generator[None]:
    """Train with so many threads in this block, whatever the size of the graph; None leaves it to the rule.

    Results do not depend on it beyond rounding: sparse products have the same bits with any number, dense ones may be summed in
    another order. On a machine with other work, one thread is often the fastest.

    Example:
        >>> with use_threads(1):
        ...     threads_for(1_000_000)
        1
    """
    if count is not None and count < 1:
        raise ValueError(f"threads={count}: expected a whole number of at least 1")
    token = _asked.set(_asked.get() if count is None else count)
    try:
        yield
    finally:
        _asked.reset(token)
