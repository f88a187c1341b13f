"""A trial as the store gives it back: how far it is, and what came of it."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from enum import Enum
from typing import Any

from unspool.study.trial import Result

#: The columns of a result, in the order of its fields.
RESULT = tuple(field.name for field in dataclasses.fields(Result))
#: What :func:`read` wants.
COLUMNS = f"key, number, data, described, status, holder, message, finished_at, mark, {', '.join(RESULT)}"
_KINDS: dict[str, Any] = {"epoch": int, "epochs": int, "reason": str}


class Status(Enum):
    """How far a trial is. One whose process has died waits again."""

    WAITING = "waiting"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"


@dataclass(frozen=True)
class Row:
    """A trial as the store knows it.

    Attributes:
        key: its name on its data (:meth:`~unspool.study.trial.Trial.key`).
        number: its place in the order in which trials were added, from 1.
        data: the name of the dataset; ``mark``: its fingerprint.
        described: the trial in plain values (:meth:`~unspool.study.trial.Trial.describe`).
        status: how far it is.
        result: what came of it, when done.
        message: what went wrong, when failed.
        finished_at: when it was done or failed, in UTC.

    Example:
        >>> import unspool as us
        >>> from unspool.study.store import Store
        >>> from unspool.study.trial import Trial
        >>> with Store(None) as store:
        ...     keys = store.add([Trial(us.models.GCN, seed=3)], data="cora", mark="5e1f")
        ...     row = store.rows()[0]
        >>> row.number, row.data, row.described["seed"], row.status.name
        (1, 'cora', 3, 'WAITING')
    """

    key: str
    number: int
    data: str
    described: dict[str, Any]
    status: Status
    result: Result | None
    message: str | None
    finished_at: str | None
    mark: str


def numbers(result: Result) -> tuple[Any, ...]:
    """A result as columns.

    Example:
        >>> numbers(Result(12, 50, 0.1, 0.9, 0.7, 0.71, "all epochs", 0.4))
        (12, 50, 0.1, 0.9, 0.7, 0.71, 'all epochs', 0.4)
    """
    # Trap: SQLite would store the numbers of NumPy as bytes.
    return tuple(_KINDS.get(name, float)(getattr(result, name)) for name in RESULT)


def read(columns: tuple[Any, ...], alive: AbstractSet[str]) -> Row:
    """A row from its columns; ``alive`` are the holders that are."""
    key, number, data, described, status, holder, message, finished_at, mark, *values = columns
    state = status_of(status, holder, alive)
    given: list[Any] = [
        math.nan if v is None else v for v in values
    ]  # SQLite has no NaN and keeps nothing in its place
    result = Result(*given) if state is Status.DONE else None
    return Row(key, number, data, json.loads(described), state, result, message, finished_at, mark)


def status_of(status: str, holder: str | None, alive: AbstractSet[str]) -> Status:
    """How far a trial is, given who of those at work is alive.

    Example:
        >>> status_of("running", "5e", {"5e"}).name, status_of("running", "5e", set()).name
        ('RUNNING', 'WAITING')
    """
    return Status.WAITING if holder is not None and holder not in alive else Status(status)
