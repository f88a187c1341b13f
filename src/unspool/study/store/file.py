"""The file behind a store: its tables, how it is opened, and what is said when something is wrong with it."""

from __future__ import annotations

import errno
import functools
import os
import secrets
import sqlite3
import time
from collections.abc import Generator
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime
from enum import Enum
from pathlib import Path
from typing import Any

from unspool.errors import IncompatibleError

#: Raised when the tables change, or the keys by which trials are known.
FORMAT = 3
#: How long, in seconds, to wait for a lock that another process holds; writing takes milliseconds.
PATIENCE = 30.0

# NaN is NULL to SQLite, and comes back as NaN.
_TABLES = """
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE worker (token TEXT PRIMARY KEY, machine TEXT NOT NULL, host TEXT NOT NULL, pid INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE trial (
    number INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, data TEXT NOT NULL, fingerprint TEXT NOT NULL, score TEXT NOT NULL,
    kind TEXT NOT NULL, source TEXT, trial TEXT NOT NULL, made TEXT NOT NULL, status TEXT NOT NULL, worker TEXT, message TEXT, finished_at TEXT, ended TEXT,
    epoch INTEGER, epochs INTEGER, train_loss REAL, valid_loss REAL, valid_score REAL, test_score REAL, ending TEXT, seconds REAL
);
CREATE INDEX claimed ON trial (worker) WHERE worker IS NOT NULL;
"""


class StoreProblem(IncompatibleError):
    """A study on disk cannot be read or written, in one sentence with the way out. What was finished before is kept.

    Example:
        >>> from unspool.study.store import Access, Store
        >>> Store.open("nowhere.db", Access.READ)
        Traceback (most recent call last):
            ...
        unspool.study.store.file.StoreProblem: there is no study at .../nowhere.db; check the path, or run the study first
    """


class Access(Enum):
    """``WRITE``: for the processes that train. ``READ``: to look at a study, also while it runs; keeps nobody waiting."""

    WRITE = "write"
    READ = "read"


_SAID = {
    sqlite3.SQLITE_FULL: "the disk is full, and {0} cannot grow; make room and run again: everything finished before is kept",
    sqlite3.SQLITE_BUSY: "{0} was locked by another program for too long; close whatever has it open, and run again",
    sqlite3.SQLITE_LOCKED: "{0} was locked by another program for too long; close whatever has it open, and run again",
    sqlite3.SQLITE_READONLY: "{0} cannot be written; change its permissions, or choose another file",
    sqlite3.SQLITE_PERM: "{0} cannot be opened; change its permissions, or choose another file",
    sqlite3.SQLITE_CANTOPEN: "{0} cannot be opened; change the permissions of the file and its folder, or choose another file",
    sqlite3.SQLITE_IOERR: "the disk failed under {0}, or is full; see to it and run again: everything finished before is kept",
    sqlite3.SQLITE_NOTADB: "{0} is not a study, or a damaged one; choose another file, or move it away to start again",
    sqlite3.SQLITE_CORRUPT: "{0} is damaged; restore a copy, or move it away to start again",
}


@contextmanager
def sentences(path: Path | None) -> Generator[None]:
    """Say in one sentence what SQLite or the file system object to."""
    where = "the study in memory" if path is None else str(path)
    try:
        yield
    except sqlite3.Error as problem:
        code = getattr(problem, "sqlite_errorcode", 0) & 0xFF  # the rest of it says which kind of full, busy, ...
        said = _SAID.get(code, f"{{0}} cannot be used ({problem}); choose another file, or move it away to start again")
        raise StoreProblem(said.replace("{0}", where)) from None
    except UnicodeDecodeError:  # Trap: Python fails at what SQLite says about a damaged name of a table
        raise damaged(path) from None
    except OSError as problem:
        raise StoreProblem(
            f"{where} cannot be used ({problem.strerror}); check its folder, or choose another"
        ) from None


def connect(path: Path | None, access: Access) -> sqlite3.Connection:
    """Open a study, making its tables where there are none yet.

    Example:
        >>> connect(None, Access.WRITE).execute("SELECT value FROM meta WHERE name = 'format'").fetchone()
        ('3',)
    """
    _check_place(path, access)
    end = time.monotonic() + PATIENCE
    while True:
        sql: sqlite3.Connection | None = None
        try:
            sql = _opened(path, access)
            _prepare(sql, path, access)
            return sql
        except BaseException as problem:
            if sql is not None:
                sql.close()
            # Trap: while one process changes a new file to WAL, others are told "locked" at once and not made to wait.
            code = getattr(problem, "sqlite_errorcode", 0) & 0xFF
            if code != sqlite3.SQLITE_BUSY or time.monotonic() > end:
                raise
            time.sleep(0.02)


def _check_place(path: Path | None, access: Access) -> None:
    if path is None:
        return
    if path.is_dir():
        raise StoreProblem(f"{path} is a folder; give the name of a file in it")
    if access is Access.READ and not path.exists():
        raise StoreProblem(f"there is no study at {path}; check the path, or run the study first")
    if not path.parent.is_dir():
        raise StoreProblem(f"the folder {path.parent} does not exist; make it first")


def damaged(path: Path | None, number: Any = None) -> StoreProblem:
    """What is said of a study, or of one of its trials, that is not what was written."""
    what = f"{path}" if number is None else f"trial {number} in {'the study in memory' if path is None else path}"
    return StoreProblem(f"{what} is damaged; restore a copy, or move it away to start again")


def _opened(path: Path | None, access: Access) -> sqlite3.Connection:
    # The store has a lock of its own, so that any thread may call it.
    how: dict[str, Any] = {"timeout": PATIENCE, "isolation_level": None, "check_same_thread": False}
    if path is None:
        return sqlite3.connect(":memory:", **how)
    if access is Access.WRITE:
        return sqlite3.connect(f"{path.as_uri()}?mode=rwc", uri=True, **how)
    sql = sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True, **how)
    try:
        sql.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except sqlite3.OperationalError as problem:
        # Readers need two files beside the study, which they cannot make in a folder of someone else's. Where no writer
        # has left anything in them, the study alone tells everything.
        waiting = Path(f"{path}-wal")
        refused = problem.sqlite_errorcode & 0xFF in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY)
        sql.close()
        if not refused or (waiting.exists() and waiting.stat().st_size):
            raise
        sql = sqlite3.connect(f"{path.as_uri()}?mode=ro&immutable=1", uri=True, **how)
    except BaseException:
        sql.close()
        raise
    return sql


def _prepare(sql: sqlite3.Connection, path: Path | None, access: Access) -> None:
    """See that it is ours and whole; only then change anything."""
    sql.execute("PRAGMA cell_size_check = ON")
    sql.execute("PRAGMA trusted_schema = OFF")
    tables = {name for (name,) in sql.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    if access is Access.READ and not tables:
        raise StoreProblem(f"{path} is empty; run the study first")
    if tables and not {"meta", "worker", "trial"} <= tables:
        raise StoreProblem(f"{path} belongs to another program; choose another file")
    if tables:
        _check_format(sql, path)
    if access is Access.WRITE:
        sql.execute("PRAGMA journal_mode = WAL")
        # FULL: a result that was reported done outlives a power cut. It costs 0.3 to 2.4 ms a commit; without, 0.02 ms. Claims do without.
        sql.execute("PRAGMA synchronous = FULL")
    if not tables:
        _make(sql)


def _check_format(sql: sqlite3.Connection, path: Path | None) -> None:
    told = dict(sql.execute("SELECT name, value FROM meta").fetchall())
    if "format" not in told:
        raise damaged(path)
    if told["format"] != str(FORMAT):
        raise StoreProblem(
            f"{path} has format {told['format']} and this version reads format {FORMAT}, where trials have other keys; run the study "
            f"again in another file, or read it with the unspool that wrote it ({told.get('version')})"
        )
    # A file that was cut off opens well, and fails when the missing part is wanted: after hours, perhaps. And a row that only the
    # index knows, or only the table, would silently be left out.
    (state,) = sql.execute("PRAGMA integrity_check(1)").fetchone()
    if state != "ok" or _schema(sql) != _expected():
        raise damaged(path)


def _schema(sql: sqlite3.Connection) -> list[Any]:
    return sql.execute("SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY type, name").fetchall()


@functools.cache
def _expected() -> list[Any]:
    """The tables as they are made."""
    with closing(sqlite3.connect(":memory:")) as sql:
        sql.executescript(_TABLES)
        return _schema(sql)


def _make(sql: sqlite3.Connection) -> None:
    from unspool import __version__

    sql.execute("BEGIN IMMEDIATE")
    if not sql.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:  # or another process was faster
        for statement in _TABLES.split(";"):
            sql.execute(statement)
        facts = {"format": str(FORMAT), "version": __version__, "created": now()}
        sql.executemany("INSERT INTO meta VALUES (?, ?)", facts.items())
    sql.execute("COMMIT")


def now() -> str:
    """The time, for files.

    Example:
        >>> now().endswith("+00:00")
        True
    """
    return datetime.now(UTC).isoformat(timespec="seconds")


def check_disk_space(path: Path, size: int) -> None:
    """Write ``size`` bytes beside a file and remove them again, so that a full disk or a quota speaks before the work."""
    probe = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        with probe.open("xb") as file:
            for start in range(0, size, 1 << 20):
                file.write(os.urandom(min(1 << 20, size - start)))  # zeros take no room on disks that compress
            file.flush()
            os.fsync(file.fileno())
    except OSError as problem:
        full = problem.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
        what = (
            f"has no room for {size:,} bytes more; make room there"
            if full
            else "cannot be written; change its permissions"
        )
        raise StoreProblem(f"{path.parent} {what}, or choose another folder ({problem.strerror})") from None
    finally:
        with suppress(OSError):
            probe.unlink(missing_ok=True)
