"""A trial as the store gives it back: how far it is, and what came of it.

Every row carries two seals, digests of what must not change: ``made`` of what the trial is, ``ended`` of what came of it. A row whose seals are
broken is never read, so a disk that loses a bit costs a sentence and not a wrong number. Who has a trial in work is not sealed: a wrong holder is a dead one.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from enum import Enum
from typing import Any

from unspool.study.trial import Result

#: The columns of a result, in the order of its fields.
RESULT = tuple(field.name for field in dataclasses.fields(Result))
#: What :func:`read` wants.
COLUMNS = f"key, number, data, described, status, holder, message, finished_at, mark, made, ended, {', '.join(RESULT)}"
_KINDS: dict[str, Any] = {"epoch": int, "epochs": int, "reason": str}
#: Lists among settings that are nested deeper than this are nobody's settings.
_DEEPEST = 8


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


class DamagedRow(Exception):
    """A row that is not what was written; its number is all that is said of it."""


def sealed(*values: Any) -> str:
    """A digest of some columns of a row.

    Example:
        >>> sealed("5e1f", 1, None) == sealed("5e1f", 1, None), sealed("5e1f", 1, None) == sealed("5e1f", 1.0, None)
        (True, False)
    """
    return hashlib.sha256(repr(values).encode("utf-8", "surrogatepass")).hexdigest()[:16]


def numbers(result: Result) -> tuple[Any, ...]:
    """A result as columns.

    Example:
        >>> numbers(Result(12, 50, 0.1, 0.9, 0.7, 0.71, "all epochs", 0.4))
        (12, 50, 0.1, 0.9, 0.7, 0.71, 'all epochs', 0.4)
    """
    # Trap: SQLite would store the numbers of NumPy as bytes; it has no NaN and keeps nothing in its place, and no sign of zero.
    given = [_KINDS.get(name, float)(getattr(result, name)) for name in RESULT]
    return tuple(v if isinstance(v, int | str) else None if math.isnan(v) else v + 0.0 for v in given)


def read(columns: tuple[Any, ...], alive: AbstractSet[str]) -> Row:
    """A row from its columns; ``alive`` are the holders that are. Raises :class:`DamagedRow` where a seal is broken."""
    key, number, data, described, status, holder, message, finished_at, mark, made, ended, *values = columns
    over = (message, finished_at, *values)
    whole = ended == sealed(key, status, *over) if status in ("done", "failed") else {ended, *over} == {None}
    if made != sealed(key, number, data, mark, described) or not whole:
        raise DamagedRow(number)
    told = _described(number, described)
    state = status_of(status, holder, alive)
    given: list[Any] = [math.nan if v is None else v for v in values]
    result = Result(*given) if state is Status.DONE else None
    return Row(key, number, data, told, state, result, message, finished_at, mark)


def _described(number: int, text: Any) -> dict[str, Any]:
    """A trial in plain values, as :meth:`~unspool.study.trial.Trial.describe` gave it, and nothing else: anybody can write files."""
    try:
        told = json.loads(text)
        plan, settings = told["plan"], told["settings"]
        decay = plan["decay"] if isinstance(plan["decay"], Mapping) else {"all": plan["decay"]}
        kinds = {
            str: (told["model"], told["preset"], told["code"], *(plan[name] for name in ("select", "stop", "optimiser", "precision"))),
            int: (told["seed"], *(plan[name] for name in ("epochs", "patience", "earliest"))),
            bool: (told["normalise_rows"],),
        }  # fmt: skip
        right = all(type(value) is kind for kind, values in kinds.items() for value in values)
        right &= all(type(value) in (int, float) for value in (plan["rate"], *decay.values()))
        right &= isinstance(settings, dict) and all(_is_setting(value) for value in settings.values())
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        right, told = False, {}
    if not right:
        raise DamagedRow(number)
    return told


def _is_setting(value: Any, depth: int = 0) -> bool:
    if isinstance(value, list):
        return depth < _DEEPEST and all(_is_setting(v, depth + 1) for v in value)
    return value is None or isinstance(value, bool | int | float | str)


def status_of(status: str, holder: str | None, alive: AbstractSet[str]) -> Status:
    """How far a trial is, given who of those at work is alive.

    Example:
        >>> status_of("running", "5e", {"5e"}).name, status_of("running", "5e", set()).name
        ('RUNNING', 'WAITING')
    """
    return Status.WAITING if status == "running" and holder not in alive else Status(status)
