"""Trials and what came of them in one SQLite file that many processes share and nothing short of a broken disk loses.

SQLite is in Python's standard library, and its file can be read while it is written. Optuna's storage was measured: with
several processes writing it takes 55 ms a trial, longer than a small trial trains.

A file serves the processes of one machine, containers included: SQLite's write-ahead log keeps its index in shared
memory. A second machine that wants to train from a file in use is refused.

>>> import unspool as us
>>> from unspool.study.trial import Result, Trial
>>> store = Store(None)
>>> keys = store.add([Trial(us.models.GCN, seed=s) for s in range(3)], data="cora", mark="5e1f")
>>> mine = store.claim(keys, 2)
>>> store.finish([(mine[0], Result(12, 50, 0.1, 0.9, 0.7, 0.71, "all epochs", 0.4))])
>>> {status.value: count for status, count in store.counts().items() if count}
{'waiting': 1, 'running': 1, 'done': 1}
>>> store.close()
"""

from __future__ import annotations

import dataclasses
import json
import math
import os
import platform
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

from unspool.study.holder import Holder, bury, is_alive, machine
from unspool.study.store_file import Access, StoreProblem, check_room, connect, now, sentences
from unspool.study.trial import Result, Trial

__all__ = ["Access", "Row", "Status", "Store", "StoreProblem"]


class Status(Enum):
    """How far a trial is. A trial whose process has died waits again."""

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


_RESULT = tuple(f.name for f in dataclasses.fields(Result))
#: Connections of a parent, in a forked child. Trap: closing one there could remove the parent's log under its hands.
_left_behind: list[sqlite3.Connection] = []


class Store:
    """All trials of a study, their results, and who works on which.

    Safe to share: by threads, by processes through the file (also forked ones, and it can be pickled to spawned ones), and
    against being killed at any moment. Every change is on disk when its method returns.

    Args:
        path: the file, made where there is none; None keeps everything in memory, for one process.
        access: ``Access.READ`` only looks.

    Example:
        >>> import tempfile, pathlib, unspool as us
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "study.db"
        >>> with Store(path) as store:
        ...     keys = store.add([Trial(us.models.GCN)], data="cora", mark="5e1f")
        >>> with Store.open(path, Access.READ) as store:
        ...     print(store.rows()[0].status)
        Status.WAITING
    """

    def __init__(self, path: str | os.PathLike[str] | None, access: Access = Access.WRITE) -> None:
        self.path = None if path is None else Path(path).resolve()
        self.access = access
        self._pid, self._link, self._open = 0, None, True
        with self._using():  # whatever is wrong with the file is said now
            pass

    @classmethod
    def open(cls, path: str | os.PathLike[str], access: Access = Access.WRITE) -> Store:
        """The study in a file; the same as ``Store(path, access)``."""
        return cls(path, access)

    def add(self, trials: Sequence[Trial], data: str, mark: str) -> list[str]:
        """Put trials into the store, after those that are there; one that is there already stays as it is.

        Args:
            trials: in their order.
            data: the name of the dataset, for people.
            mark: its fingerprint, which goes into the keys.

        Returns:
            The key of each trial.
        """
        rows = [(trial.key(mark), data, mark, json.dumps(trial.describe())) for trial in trials]
        with self._changing() as link:
            link.executemany(
                "INSERT INTO trial (key, data, mark, described) VALUES (?, ?, ?, ?) ON CONFLICT (key) DO NOTHING", rows
            )
        return [row[0] for row in rows]

    def claim(self, keys: Sequence[str], count: int) -> list[str]:
        """Take up to ``count`` of these trials for this process: the first that nobody has and that have not ended.

        No two processes ever get the same one, and one that was killed has none.
        """
        with self._changing() as link:
            _check_known(link, keys)
            self._free_the_dead(link)
            found = link.execute(
                "SELECT trial.key FROM json_each(?) AS wanted JOIN trial ON trial.key = wanted.value "
                "WHERE trial.status = 'waiting' GROUP BY trial.key ORDER BY min(wanted.key) LIMIT ?",
                (json.dumps(list(keys)), max(0, count)),
            ).fetchall()
            if found:
                if self._holder is None:
                    self._holder = Holder(self.path)
                me = (self._holder.token, machine(), platform.node(), os.getpid())
                link.execute("INSERT INTO holder VALUES (?, ?, ?, ?) ON CONFLICT (token) DO NOTHING", me)
                change = f"UPDATE trial SET status = 'running', holder = '{me[0]}' WHERE key = ?"
                link.executemany(change, found)
        return [key for (key,) in found]

    def release(self, keys: Sequence[str]) -> None:
        """Give back trials that this process has claimed and not ended; others are left alone."""
        if self._holder is None:
            return
        change = f"UPDATE trial SET status = 'waiting', holder = NULL WHERE key = ? AND holder = '{self._holder.token}'"
        with self._changing() as link:
            link.executemany(change, [(key,) for key in keys])

    def finish(self, pairs: Sequence[tuple[str, Result]]) -> None:
        """Write results down, all or none; a trial that has one already keeps it."""
        fields = ", ".join(f"{name} = ?" for name in _RESULT)
        change = (
            f"UPDATE trial SET status = 'done', holder = NULL, message = NULL, finished_at = ?, {fields} "
            "WHERE key = ? AND status != 'done'"
        )
        time = now()
        with self._changing() as link:
            _check_known(link, [key for key, _ in pairs])
            link.executemany(change, [(time, *_numbers(result), key) for key, result in pairs])

    def fail(self, key: str, message: str) -> None:
        """Write down that a trial went wrong; it counts as ended until :meth:`retry_failed`."""
        change = "UPDATE trial SET status = 'failed', holder = NULL, message = ?, finished_at = ? WHERE key = ? AND status != 'done'"
        with self._changing() as link:
            _check_known(link, [key])
            link.execute(change, (message, now(), key))

    def retry_failed(self) -> int:
        """Let failed trials wait again; returns how many."""
        with self._changing() as link:
            return link.execute(
                "UPDATE trial SET status = 'waiting', message = NULL, finished_at = NULL WHERE status = 'failed'"
            ).rowcount

    def rows(self, data: str | None = None) -> list[Row]:
        """All trials in their order, or those on one dataset."""
        columns = f"key, number, data, described, status, holder, message, finished_at, mark, {', '.join(_RESULT)}"
        with self._using() as link:
            found = link.execute(
                f"SELECT {columns} FROM trial WHERE ?1 IS NULL OR data = ?1 ORDER BY number", (data,)
            ).fetchall()
        alive = self._alive({row[5] for row in found if row[5] is not None})
        return [_row(row, alive) for row in found]

    def counts(self, data: str | None = None) -> dict[Status, int]:
        """How many trials there are in each state."""
        with self._using() as link:
            found = link.execute(
                "SELECT status, holder, count(*) FROM trial WHERE ?1 IS NULL OR data = ?1 GROUP BY status, holder",
                (data,),
            ).fetchall()
        alive = self._alive({holder for _, holder, _ in found if holder is not None})
        counts = dict.fromkeys(Status, 0)
        for status, holder, count in found:
            counts[_status(status, holder, alive)] += count
        return counts

    def check_room(self, size: int = 1 << 20) -> None:
        """Find out before the work whether there is room for ``size`` bytes, and whether the study can be written."""
        if self.path is not None:
            with sentences(self.path):
                check_room(self.path, size)
        with self._changing() as link:
            link.execute("INSERT OR REPLACE INTO meta VALUES ('probe', '')")
            link.execute("DELETE FROM meta WHERE name = 'probe'")

    def close(self) -> None:
        """Give back what is claimed, and close the file; a second time does nothing."""
        if not self._open:
            return
        holder = self._holder if self._pid == os.getpid() else None
        if holder is not None:
            with (
                suppress(StoreProblem),
                self._changing() as link,
            ):  # when not, the next one to claim sees that we are gone
                _free(link, holder.token)
            holder.let_go()
        self._open = False
        if self._link is not None and self._pid == os.getpid():
            self._link.close()
        self._link = None

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *problem: object) -> None:
        self.close()

    def __reduce__(self) -> tuple[Any, ...]:
        if self.path is None:
            raise StoreProblem("a study in memory stays in its process; give the store a file")
        return Store, (self.path, self.access)

    @contextmanager
    def _using(self) -> Iterator[sqlite3.Connection]:
        """The connection of this process, for one thread at a time."""
        if not self._open:
            raise StoreProblem(f"{self._name} is closed; open it again")
        if self._pid != os.getpid():
            self._arrive()
        with self._lock, sentences(self.path):
            if self._link is None:
                self._link = connect(self.path, self.access)
                self._inode = None if self.path is None else self.path.stat().st_ino
            yield self._link

    def _arrive(self) -> None:
        """Begin anew in this process: connections, locks and claims belong to the one that made them."""
        if self._link is not None:
            _left_behind.append(self._link)
            if self.path is None:
                raise StoreProblem("a study in memory stays in its process; give the store a file")
        self._link: sqlite3.Connection | None = None
        self._holder: Holder | None = None
        self._lock = threading.RLock()
        self._pid = os.getpid()

    @contextmanager
    def _changing(self) -> Iterator[sqlite3.Connection]:
        """One transaction that either happens or does not."""
        if self.access is Access.READ:
            raise StoreProblem(f"{self._name} was opened for reading; open it with Access.WRITE to change it")
        with self._using() as link:
            self._check_in_place()
            link.execute("BEGIN IMMEDIATE")
            try:
                yield link
                link.execute("COMMIT")
            except BaseException:
                if link.in_transaction:
                    link.execute("ROLLBACK")
                raise

    def _check_in_place(self) -> None:
        # Trap: SQLite goes on writing to a file that was removed, and all is lost at the end without a word.
        if self.path is not None and not (self.path.exists() and self.path.stat().st_ino == self._inode):
            raise StoreProblem(f"{self.path} was removed or replaced while it was in use; put it back, or run again")

    @property
    def _name(self) -> str:
        return "the study in memory" if self.path is None else str(self.path)

    def _alive(self, tokens: set[str]) -> set[str]:
        return {token for token in tokens if is_alive(self.path, token)}

    def _free_the_dead(self, link: sqlite3.Connection) -> None:
        """Let trials wait again whose process is gone; refuse to work beside another machine."""
        mine = None if self._holder is None else self._holder.token
        for token, where, host, pid in link.execute("SELECT token, machine, host, pid FROM holder").fetchall():
            if token == mine:
                continue
            if not is_alive(self.path, token):
                _free(link, token)
                bury(self.path, token)
            elif where != machine():
                raise StoreProblem(
                    f"{self._name} is in use by process {pid} on {host}, and one file serves one machine; give this machine a file of its own"
                )


def _free(link: sqlite3.Connection, token: str) -> None:
    link.execute("UPDATE trial SET status = 'waiting', holder = NULL WHERE holder = ?", (token,))
    link.execute("DELETE FROM holder WHERE token = ?", (token,))


def _check_known(link: sqlite3.Connection, keys: Sequence[str]) -> None:
    missing = link.execute(
        "SELECT value FROM json_each(?) WHERE value NOT IN (SELECT key FROM trial) LIMIT 1", (json.dumps(list(keys)),)
    ).fetchone()
    if missing is not None:
        raise ValueError(f"the study has no trial {missing[0]!r}; add it first")


def _numbers(result: Result) -> tuple[Any, ...]:
    """A result as columns. Trap: SQLite would store NumPy's numbers as bytes."""
    kinds = {"epoch": int, "epochs": int, "reason": str}
    return tuple(kinds.get(name, float)(getattr(result, name)) for name in _RESULT)


def _row(row: tuple[Any, ...], alive: set[str]) -> Row:
    key, number, data, described, status, holder, message, finished_at, mark, *numbers = row
    state = _status(status, holder, alive)
    result = Result(*(math.nan if v is None else v for v in numbers)) if state is Status.DONE else None
    return Row(key, number, data, json.loads(described), state, result, message, finished_at, mark)


def _status(status: str, holder: str | None, alive: set[str]) -> Status:
    return Status.WAITING if holder is not None and holder not in alive else Status(status)
