"""A connection to the file of a study that may cross into other processes and be used from any thread."""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from unspool.study.store.file import Access, StoreProblem, connect, sentences

#: Connections of the parent, in a forked child. Trap: closing one there could take the parent's locks or log away.
_left_behind: list[sqlite3.Connection] = []


class Connection:
    """One connection for each process, opened when first used there.

    Args:
        path: the file; None for a study in memory.
        access: for looking or for changing.

    Example:
        >>> link = Connection(None, Access.WRITE)
        >>> with link.changing() as sql:
        ...     sql.execute("SELECT count(*) FROM trial").fetchone()
        (0,)
        >>> link.close()
    """

    def __init__(self, path: Path | None, access: Access) -> None:
        self.path, self.access = path, access
        self.name = "the study in memory" if path is None else str(path)
        self.closed = False
        self._sql: sqlite3.Connection | None = None
        self._file: tuple[int, int] | None = None
        self._arrive()
        with self.using():  # whatever is wrong with the file is said now
            pass

    @property
    def at_home(self) -> bool:
        """Whether this is the process that the connection was opened in."""
        return self._pid == os.getpid()

    @contextmanager
    def using(self) -> Generator[sqlite3.Connection]:
        """The connection of this process, for one thread at a time."""
        if self.closed:
            raise StoreProblem(f"{self.name} is closed; open it again")
        if not self.at_home:
            self._arrive()
        with self._lock, sentences(self.path):
            if self._sql is None:
                self._sql = connect(self.path, self.access)
                self._file = self._place()
            yield self._sql

    @contextmanager
    def changing(self, *, durable: bool = True) -> Generator[sqlite3.Connection]:
        """The connection inside a transaction that happens as a whole or not at all.

        Args:
            durable: whether it outlives a power cut, too, and not only the end of this process; that takes a write to the disk itself.
        """
        if self.access is Access.READ:
            raise StoreProblem(f"{self.name} was opened for reading; open it with Access.WRITE to change it")
        with self.using() as sql:
            # Trap: SQLite goes on writing to a file that was removed, and at the end all is lost without a word.
            if self._place() != self._file:
                raise StoreProblem(f"{self.name} was removed or replaced while in use; put it back, or run again")
            sql.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
            sql.execute("BEGIN IMMEDIATE")
            try:
                yield sql
                sql.execute("COMMIT")
            except BaseException:
                if sql.in_transaction:
                    sql.execute("ROLLBACK")
                raise

    def close(self) -> None:
        """Close the connection of this process."""
        if self._sql is not None:
            if self.at_home:
                self._sql.close()
            else:
                _left_behind.append(self._sql)
        self._sql, self.closed = None, True

    def _arrive(self) -> None:
        """Begin anew in this process: connections and locks belong to the one that made them."""
        if self._sql is not None:
            if self.path is None:
                raise StoreProblem("a study in memory stays in its process; give the store a file")
            _left_behind.append(self._sql)
        self._sql = None
        self._lock = threading.RLock()
        self._pid = os.getpid()

    def _place(self) -> tuple[int, int] | None:
        """Which file lies at the path now."""
        if self.path is None:
            return None
        try:
            state = self.path.stat()
        except FileNotFoundError:
            return None
        return state.st_dev, state.st_ino
