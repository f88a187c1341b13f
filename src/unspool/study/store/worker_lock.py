"""Who has trials in work, and whether it is still alive: a process is alive while it holds the lock on its small file.

The kernel takes a lock away in the moment in which a process ends, however it ends, and never before. So nothing has to
beat like a heart: no clock is compared, a machine that slept for a night or a process that was stopped for an hour still
holds its trials when it wakes, and one that was killed holds none. A number of a process would not do: containers that
share a folder count their processes each for itself, and numbers come back. The lock sits on the file and not on the
number, so containers on one machine see each other's.
"""

from __future__ import annotations

import atexit
import os
import platform
import secrets
import sys
import weakref
from pathlib import Path

from unspool.files import lock

#: A file that is open cannot be removed on Windows, which says as much as a lock.
_LOCKS = sys.platform != "win32"


class WorkerLock:
    """This process at work on a study: a file beside the study, locked until the process ends or lets go.

    Args:
        study: the file of the study; None for one in memory, which no other process sees.

    Example:
        >>> import tempfile, pathlib
        >>> study = pathlib.Path(tempfile.mkdtemp()) / "study.db"
        >>> me = WorkerLock(study)
        >>> is_alive(study, me.token)
        True
        >>> me.let_go()
        >>> is_alive(study, me.token)
        False
    """

    def __init__(self, study: Path | None) -> None:
        self.token = secrets.token_hex(8)
        self.study, self.pid = study, os.getpid()
        self._file: int | None = None
        if study is not None:
            path = lock_file(study, self.token)
            self._file = os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o666)
            _OURS.add(self)
            if _LOCKS:
                lock(self._file)

    def let_go(self) -> None:
        """Give up the lock and remove its file."""
        if self._file is not None and self.study is not None:
            self.forget()
            remove_stale(self.study, self.token)

    def forget(self) -> None:
        """Close the file; the lock is gone when no process has it open any more."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def __del__(self) -> None:
        # A study that was dropped without being closed must not keep its trials until the process ends.
        if getattr(self, "_file", None) is not None and not sys.is_finalizing():
            self.let_go()


_OURS: weakref.WeakSet[WorkerLock] = weakref.WeakSet()


@atexit.register
def _let_all_go() -> None:
    """Before Python takes itself apart: later there is nothing left to remove a file with."""
    for worker in list(_OURS):
        if worker.pid == os.getpid():
            worker.let_go()


def _leave_to_parent() -> None:
    for worker in list(_OURS):
        worker.forget()


# Trap: a forked child has its parent's files open, so its parent would seem to live on after it was killed.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_to_parent)


def lock_file(study: Path, token: str) -> Path:
    """Where the lock of a worker is.

    Example:
        >>> lock_file(Path("study.db"), "5e").name
        'study.db-5e.lock'
    """
    return study.with_name(f"{study.name}-{token}.lock")


def is_alive(study: Path | None, token: str) -> bool:
    """Whether a worker still holds its lock.

    Asking takes a shared lock for a moment, so any number of processes may ask at once.
    """
    if study is None:
        return True
    path = lock_file(study, token)
    if not _LOCKS:
        remove_stale(study, token)
        return path.exists()
    try:
        file = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return False
    except PermissionError:
        return True  # another user's; it is there, and that is all one can know
    try:
        lock(file, shared=True)
    except OSError:
        return True
    finally:
        os.close(file)
    return False


def remove_stale(study: Path | None, token: str) -> None:
    """Remove the file of a worker that is gone."""
    if study is not None:
        try:
            lock_file(study, token).unlink(missing_ok=True)
        except OSError:
            return  # it is in the way of nobody


def machine() -> str:
    """What tells this machine from others, and from itself before it was last started.

    Example:
        >>> machine() == machine()
        True
    """
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return platform.node()
