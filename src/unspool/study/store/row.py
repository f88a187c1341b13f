"""A trial as the store gives it back: how far it is, and what came of it.

Every row carries two seals, digests of what must not change: ``made`` of what the trial is, ``ended`` of what came of it. A row whose seals are
broken is never read, so a disk that loses a bit costs a sentence and not a wrong number. Who has a trial in work is not sealed: a wrong worker is a dead one.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from enum import Enum
from typing import Any

from unspool.train import DataRecord, Ending, Result, TrainConfig

#: The columns of a result, in the order of its fields.
RESULT = tuple(field.name for field in dataclasses.fields(Result))
#: What :func:`read` wants.
COLUMNS = f"key, number, data, fingerprint, score, kind, source, trial, status, worker, message, finished_at, made, ended, {', '.join(RESULT)}"
#: The place of the worker among them.
WORKER = 9
_KINDS: dict[str, Any] = {"epoch": int, "epochs": int, "ending": lambda ending: ending.name.lower()}
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
        key: its name on its data (:meth:`~unspool.train.Trial.key`).
        number: its place in the order in which trials were added, from 1.
        data: what it was trained on.
        trial: in plain values (:meth:`~unspool.train.Trial.to_plain`).
        status: how far it is.
        result: what came of it, when done.
        message: what went wrong, when failed.
        finished_at: when it was done or failed, in UTC.

    Example:
        >>> import unspool as us
        >>> from unspool.study.store import Store
        >>> from unspool.train import DataRecord, Trial
        >>> with Store(None) as store:
        ...     keys = store.add([Trial(us.models.GCN, seed=3)], DataRecord("cora", "5e1f"))
        ...     row = store.rows()[0]
        >>> row.number, row.data.name, row.trial["seed"], row.status.name
        (1, 'cora', 3, 'WAITING')
    """

    key: str
    number: int
    data: DataRecord
    trial: dict[str, Any]
    status: Status
    result: Result | None = None
    message: str | None = None
    finished_at: str | None = None


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
        >>> numbers(Result(12, 50, 0.1, 0.9, 0.7, 0.71, Ending.ALL_EPOCHS, 0.4))
        (12, 50, 0.1, 0.9, 0.7, 0.71, 'all_epochs', 0.4)
    """
    # Trap: SQLite would store the numbers of NumPy as bytes; it has no NaN and keeps nothing in its place, and no sign of zero.
    given = [_KINDS.get(name, float)(getattr(result, name)) for name in RESULT]
    return tuple(v if isinstance(v, int | str) else None if math.isnan(v) else v + 0.0 for v in given)


def read(columns: tuple[Any, ...], alive: AbstractSet[str]) -> Row:
    """A row from its columns; ``alive`` are the workers that are. Raises :class:`DamagedRow` where a seal is broken."""
    check_seals(columns)
    key, number, data, fingerprint, score, kind, source, trial, status, worker, message, finished_at, _, _, *values = (
        columns
    )
    about = DataRecord(data, fingerprint, score, kind, None if source is None else _object(number, source))
    state = status_of(status, worker, alive)
    result = _result(number, values) if state is Status.DONE else None
    return Row(key, number, about, _trial(number, trial), state, result, message, finished_at)


def check_seals(columns: tuple[Any, ...]) -> None:
    """Raise :class:`DamagedRow` where a row is not what was written; what it says is not read."""
    (
        key,
        number,
        data,
        fingerprint,
        score,
        kind,
        source,
        trial,
        status,
        _,
        message,
        finished_at,
        made,
        ended,
        *values,
    ) = columns
    over = (message, finished_at, *values)
    whole = ended == sealed(key, status, *over) if status in ("done", "failed") else {ended, *over} == {None}
    known = status in (state.value for state in Status)
    if made != sealed(key, number, data, fingerprint, score, kind, source, trial) or not whole or not known:
        raise DamagedRow(number)


def _result(number: int, values: list[Any]) -> Result:
    held: dict[str, Any] = dict(zip(RESULT, values, strict=True))
    try:
        ending = Ending[str(held["ending"]).upper()]
    except KeyError:
        raise DamagedRow(number) from None
    given: dict[str, Any] = {name: math.nan if value is None else value for name, value in held.items()}
    given["ending"] = ending
    return Result(**given)


def _object(number: int, text: Any) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except (ValueError, TypeError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise DamagedRow(number)
    return found


def _trial(number: int, text: Any) -> dict[str, Any]:
    """A trial in plain values, as :meth:`~unspool.train.Trial.to_plain` gave it, and nothing else: anybody can write files."""
    held = _object(number, text)
    try:
        kinds = {
            str: (held["model"], held["preset"], held["code"]),
            int: (held["seed"],),
            bool: (held["normalise_rows"],),
        }
        right = all(type(value) is kind for kind, values in kinds.items() for value in values)
        right &= isinstance(held["settings"], dict) and all(_is_setting(value) for value in held["settings"].values())
        # An optimiser or an upper level of one's own is known to files by name only: whoever builds the trial again refuses it.
        named = {"optimiser": (str,), "upper": (str, type(None))}
        config = {name: value for name, value in held["config"].items() if name not in named}
        right &= set(held["config"]) == set(TrainConfig.schema)
        right &= all(type(held["config"][name]) in kinds for name, kinds in named.items())
        TrainConfig.schema.from_plain(config)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        right = False
    if not right:
        raise DamagedRow(number)
    return held


def _is_setting(value: Any, depth: int = 0) -> bool:
    if isinstance(value, list | dict):
        inner = value.values() if isinstance(value, dict) else value
        return depth < _DEEPEST and all(_is_setting(v, depth + 1) for v in inner)
    return value is None or isinstance(value, bool | int | float | str)


def status_of(status: str, worker: str | None, alive: AbstractSet[str]) -> Status:
    """How far a trial is, given who of those at work is alive.

    Example:
        >>> status_of("running", "5e", {"5e"}).name, status_of("running", "5e", set()).name
        ('RUNNING', 'WAITING')
    """
    return Status.WAITING if status == "running" and worker not in alive else Status(status)
