"""Trials and what came of them in one SQLite file that many processes share and nothing short of a broken disk loses.

SQLite is in Python's standard library, and its file can be read while it is written. Optuna's storage was measured: with
several processes writing it takes 55 ms a trial, longer than a small trial trains.

A file serves the processes of one machine, containers included: SQLite's write-ahead log keeps its index in shared
memory. A second machine that wants to train from a file in use is refused.

>>> import unspool as us
>>> from unspool.train import DataRecord, Ending, Result, Trial
>>> store = Store(None)
>>> keys = store.add([Trial(us.models.GCN, seed=s) for s in range(3)], DataRecord("cora", "5e1f"))
>>> mine = store.claim(keys, 2)
>>> store.finish([(mine[0], Result(12, 50, 0.1, 0.9, 0.7, 0.71, Ending.ALL_EPOCHS, 0.4))])
>>> {status.value: count for status, count in store.counts().items() if count}
{'waiting': 1, 'running': 1, 'done': 1}
>>> store.close()
"""

from __future__ import annotations

import json
import os
import platform
import sqlite3
from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from unspool.study.store.connection import Connection
from unspool.study.store.file import Access, StoreProblem, check_disk_space, damaged, now
from unspool.study.store.row import (
    COLUMNS,
    RESULT,
    WORKER,
    DamagedRow,
    Row,
    Status,
    check_seals,
    numbers,
    read,
    sealed,
    status_of,
)
from unspool.study.store.tally import QUESTION, RECENT, Glance, Tally, tallied
from unspool.study.store.worker_lock import WorkerLock, is_alive, machine, remove_stale
from unspool.train import DataRecord, Result, Trial

__all__ = ["Access", "Row", "Status", "Store", "StoreProblem"]


class Store:
    """All trials of a study, their results, and who works on which.

    Safe to share: by threads, by processes through the file (forked ones too, and it can be pickled to spawned ones), and
    against being killed at any moment. Every change is on disk when its method returns.

    Args:
        path: the file, made where there is none; None keeps everything in memory, for one process.
        access: ``Access.READ`` only looks.

    Example:
        >>> import tempfile, pathlib, unspool as us
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "study.db"
        >>> with Store(path) as store:
        ...     keys = store.add([Trial(us.models.GCN)], DataRecord("cora", "5e1f"))
        >>> with Store.open(path, Access.READ) as store:
        ...     print(store.rows()[0].status)
        Status.WAITING
    """

    def __init__(self, path: str | os.PathLike[str] | None, access: Access = Access.WRITE) -> None:
        self.path = None if path is None else Path(path).resolve()
        self.access = access
        self._connection = Connection(self.path, access)
        self._lock: WorkerLock | None = None
        self._who: tuple[str, int] | None = None  # who claims, where that is not this process
        if access is Access.WRITE and self.path is not None:
            self.rows()  # a row that is damaged is found before the work, and not after it

    @classmethod
    def open(cls, path: str | os.PathLike[str], access: Access = Access.WRITE) -> Store:
        """The study in a file; the same as ``Store(path, access)``."""
        return cls(path, access)

    def add(self, trials: Sequence[Trial], data: DataRecord) -> list[str]:
        """Put trials into the store, after those that are there; one that is there already stays as it is.

        Args:
            trials: in their order.
            data: what they are trained on; its fingerprint goes into the keys.

        Returns:
            The key of each trial.

        Example:
            >>> import unspool as us
            >>> with Store(None) as store:
            ...     trials = [Trial(us.models.GCN, seed=s) for s in (0, 1)]
            ...     store.add(trials, DataRecord("cora", "5e1f")) == store.add(trials, DataRecord("cora", "5e1f")), len(store.rows())
            (True, 2)
        """
        keys = [trial.key(data.fingerprint) for trial in trials]
        rows = {key: json.dumps(trial.to_plain()) for key, trial in zip(keys, trials, strict=True)}
        source = None if data.source is None else json.dumps(dict(data.source))
        about = (data.name, data.fingerprint, data.score, data.kind, source)
        ask = "SELECT key FROM trial WHERE key IN (SELECT value FROM json_each(?))"
        change = (
            "INSERT INTO trial (key, number, data, fingerprint, score, kind, source, trial, made, status) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, 'waiting')"
        )
        with self._connection.changing() as sql:
            known = {key for (key,) in sql.execute(ask, [json.dumps(keys)])}
            (last,) = sql.execute("SELECT coalesce(max(number), 0) FROM trial").fetchone()
            new = enumerate(((key, text) for key, text in rows.items() if key not in known), last + 1)
            told = [(key, number, *about, text) for number, (key, text) in new]
            sql.executemany(change, [(*one, sealed(*one)) for one in told])
        return keys

    def claim(self, keys: Sequence[str], count: int) -> list[str]:
        """Take up to ``count`` of these trials for this process: the first that nobody has and that have not ended.

        No two processes ever get the same one, and one that was killed has none.
        """
        # A claim that a power cut takes away is one of a process that is gone.
        with self._connection.changing(durable=False) as sql:
            _check_known(sql, keys)
            self._free_the_dead(sql)
            found = sql.execute(
                "SELECT trial.key FROM json_each(?) AS wanted JOIN trial ON trial.key = wanted.value "
                "WHERE trial.status = 'waiting' GROUP BY trial.key ORDER BY min(wanted.key) LIMIT ?",
                (json.dumps(list(keys)), max(0, count)),
            ).fetchall()
            if found:
                me = self._enter(sql)
                sql.executemany(
                    "UPDATE trial SET status = 'running', worker = ? WHERE key = ?", [(me, key) for (key,) in found]
                )
        return [key for (key,) in found]

    def release(self, keys: Sequence[str]) -> None:
        """Give back trials that this process has claimed and not ended; others are left alone."""
        me = self._token
        if me is not None:
            change = "UPDATE trial SET status = 'waiting', worker = NULL WHERE key = ? AND worker = ?"
            with self._connection.changing(durable=False) as sql:
                sql.executemany(change, [(key, me) for key in keys])

    def finish(self, pairs: Sequence[tuple[str, Result]], *, durable: bool = True) -> None:
        """Write results down, all or none; a trial that has one already keeps it.

        Args:
            pairs: keys and results.
            durable: whether a power cut right afterwards leaves them; otherwise :meth:`sync` sees to that, for many at once.
        """
        fields = ", ".join(f"{name} = ?" for name in RESULT)
        change = (
            f"UPDATE trial SET status = 'done', worker = NULL, message = NULL, ended = ?, finished_at = ?, {fields} "
            "WHERE key = ? AND status != 'done'"
        )
        time = now()
        found = [(key, (time, *numbers(result))) for key, result in pairs]
        with self._connection.changing(durable=durable) as sql:
            _check_known(sql, [key for key, _ in pairs])
            sql.executemany(change, [(sealed(key, "done", None, *values), *values, key) for key, values in found])

    def sync(self) -> None:
        """Return when all that was written before outlives a power cut; others may write meanwhile, from other threads too."""
        if self.path is not None:
            # Trap: SQLite keeps no lock on this file; opening and closing the study itself would let go of the locks of this process.
            with suppress(FileNotFoundError), Path(f"{self.path}-wal").open("rb+") as log:
                os.fsync(log.fileno())

    def fail(self, key: str, message: str) -> None:
        """Write down that a trial went wrong; it counts as ended until :meth:`retry_failed`."""
        change = (
            "UPDATE trial SET status = 'failed', worker = NULL, ended = ?, message = ?, finished_at = ? "
            "WHERE key = ? AND status != 'done'"
        )
        told = (message, now())
        with self._connection.changing() as sql:
            _check_known(sql, [key])
            sql.execute(change, (sealed(key, "failed", *told, *(None for _ in RESULT)), *told, key))

    def retry_failed(self) -> int:
        """Let failed trials wait again; returns how many.

        Example:
            >>> import unspool as us
            >>> with Store(None) as store:
            ...     (key,) = store.add([Trial(us.models.GCN)], DataRecord("cora", "5e1f"))
            ...     store.fail(key, "out of memory")
            ...     store.claim([key], 1), store.retry_failed(), store.claim([key], 1) == [key]
            ([], 1, True)
        """
        with self._connection.changing() as sql:
            change = "UPDATE trial SET status = 'waiting', ended = NULL, message = NULL, finished_at = NULL WHERE status = 'failed'"
            return sql.execute(change).rowcount

    def rows(self, data: str | None = None, *, failed: bool = False) -> list[Row]:
        """All trials in their order, or those on one dataset, or those that failed."""
        with self._connection.using() as sql:
            question = (
                f"SELECT {COLUMNS} FROM trial WHERE (:data IS NULL OR data = :data) AND (NOT :failed OR status = 'failed') "
                "ORDER BY number"
            )
            found = sql.execute(question, {"data": data, "failed": failed}).fetchall()
        alive = self._alive(row[WORKER] for row in found)
        try:
            return [read(row, alive) for row in found]
        except DamagedRow as problem:
            raise damaged(self.path, problem) from None

    def check(self) -> None:
        """Raise where a row is not what was written; a tenth of the work of reading them all."""
        with self._connection.using() as sql:
            try:
                for row in sql.execute(f"SELECT {COLUMNS} FROM trial"):
                    check_seals(row)
            except DamagedRow as problem:
                raise damaged(self.path, problem) from None

    def tally(self) -> Tally:
        """How many trials are how far, and how fast they end: a tenth of a second for a hundred thousand."""
        now = datetime.now(UTC)
        since = (now - timedelta(seconds=RECENT)).isoformat(timespec="seconds")
        with self._connection.using() as sql:
            found = sql.execute(QUESTION, [since]).fetchall()
        alive = self._alive(worker for _, _, worker, *_ in found)
        try:
            return tallied(found, alive, now)
        except (ValueError, TypeError):
            raise damaged(self.path) from None

    def glances(self) -> list[Glance]:
        """The keys of all trials, how far they are, and the best of their numbers; what they are is not read."""
        with self._connection.using() as sql:
            found = sql.execute("SELECT key, status, worker, valid_score, epochs FROM trial ORDER BY number").fetchall()
        alive = self._alive(worker for _, _, worker, *_ in found)
        try:
            return [Glance(key, status_of(status, worker, alive), *rest) for key, status, worker, *rest in found]
        except ValueError:
            raise damaged(self.path) from None

    def counts(self, data: str | None = None) -> dict[Status, int]:
        """How many trials there are in each state."""
        with self._connection.using() as sql:
            question = (
                "SELECT status, worker, count(*) FROM trial WHERE :data IS NULL OR data = :data GROUP BY status, worker"
            )
            found = sql.execute(question, {"data": data}).fetchall()
        alive = self._alive(worker for _, worker, _ in found)
        counts = dict.fromkeys(Status, 0)
        try:
            for status, worker, count in found:
                counts[status_of(status, worker, alive)] += count
        except ValueError:
            raise damaged(self.path) from None
        return counts

    def workers(self) -> list[tuple[str, int, int]]:
        """Machine, process and number of trials of everybody who is training now.

        Example:
            >>> import os, unspool as us
            >>> with Store(None) as store:
            ...     keys = store.add([Trial(us.models.GCN)], DataRecord("cora", "5e1f"))
            ...     _ = store.claim(keys, 1)
            ...     [(pid == os.getpid(), many) for _, pid, many in store.workers()]
            [(True, 1)]
        """
        question = (
            "SELECT worker.token, worker.host, worker.pid, count(*) FROM worker JOIN trial ON trial.worker = worker.token "
            "WHERE trial.status = 'running' GROUP BY worker.token ORDER BY worker.host, worker.pid"
        )
        with self._connection.using() as sql:
            found = sql.execute(question).fetchall()
        alive = self._alive(token for token, *_ in found)
        return [(host, pid, many) for token, host, pid, many in found if token in alive]

    def check_disk_space(self, size: int = 1 << 20) -> None:
        """Find out before the work whether there is room for ``size`` bytes, and whether the study can be written.

        A trial takes about a kilobyte.
        """
        with self._connection.changing() as sql:
            sql.execute("INSERT OR REPLACE INTO meta VALUES ('probe', '')")
            sql.execute("DELETE FROM meta WHERE name = 'probe'")
        if self.path is not None:
            check_disk_space(self.path, size)

    def for_worker(self, host: str, pid: int) -> Store:
        """The same store for somebody elsewhere, who claims under a name of their own; :meth:`leave` gives back what they hold.

        Args:
            host: their machine, for people.
            pid: their process there.

        Example:
            >>> import unspool as us
            >>> with Store(None) as store:
            ...     keys = store.add([Trial(us.models.GCN, seed=s) for s in range(3)], DataRecord("cora", "5e1f"))
            ...     far = store.for_worker("far", 7)
            ...     held = far.claim(keys, 2)
            ...     print(store.workers(), len(store.claim(keys, 3)))
            ...     far.leave()
            ...     print(len(store.claim(keys, 3)))
            [('far', 7, 2)] 1
            2
        """
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        other._lock, other._who = None, (host, pid)
        return other

    def close(self) -> None:
        """Give back what is claimed, and close the file; a second time does nothing."""
        self.leave()
        self._connection.close()

    def leave(self) -> None:
        """Give back all that is claimed; the store stays open."""
        me = self._token
        if me is not None and self._lock is not None and not self._connection.closed:
            # Where it cannot be written, the next process that claims sees that this one has gone.
            with suppress(StoreProblem), self._connection.changing(durable=False) as sql:
                _free(sql, me)
            self._lock.let_go()
        self._lock = None

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *problem: object) -> None:
        self.close()

    def __reduce__(self) -> tuple[Any, ...]:
        if self.path is None:
            raise StoreProblem("a study in memory stays in its process; give the store a file")
        return Store, (self.path, self.access)

    @property
    def _token(self) -> str | None:
        """The name under which this process claims; None before it has claimed anything."""
        return None if self._lock is None or self._lock.pid != os.getpid() else self._lock.token

    def _enter(self, sql: sqlite3.Connection) -> str:
        """List this process among those at work."""
        if self._lock is None or self._token is None:
            self._lock = WorkerLock(self.path)
        who = (platform.node(), self._lock.pid) if self._who is None else self._who
        told = (self._lock.token, machine(), *who)
        sql.execute("INSERT INTO worker VALUES (?, ?, ?, ?) ON CONFLICT (token) DO NOTHING", told)
        return self._lock.token

    def _alive(self, tokens: Iterable[str | None]) -> set[str]:
        return {token for token in set(tokens) if token is not None and is_alive(self.path, token)}

    def _free_the_dead(self, sql: sqlite3.Connection) -> None:
        """Let trials wait again whose process is gone; refuse to work beside another machine."""
        me, here = self._token, machine()
        for token, where, host, pid in sql.execute("SELECT token, machine, host, pid FROM worker").fetchall():
            if token == me:
                continue
            if not is_alive(self.path, token):
                _free(sql, token)
                remove_stale(self.path, token)
            elif where != here:
                raise StoreProblem(
                    f"{self.path} is in use by process {pid} on {host}, and one file serves one machine; give this machine its own file"
                )


def _free(sql: sqlite3.Connection, token: str) -> None:
    sql.execute("UPDATE trial SET status = 'waiting', worker = NULL WHERE worker = ?", (token,))
    sql.execute("DELETE FROM worker WHERE token = ?", (token,))


def _check_known(sql: sqlite3.Connection, keys: Sequence[str]) -> None:
    question = "SELECT value FROM json_each(?) WHERE value NOT IN (SELECT key FROM trial) LIMIT 1"
    missing = sql.execute(question, (json.dumps(list(keys)),)).fetchone()
    if missing is not None:
        raise ValueError(f"the study has no trial {missing[0]!r}; add it first")
