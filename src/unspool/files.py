"""Writing files so that nobody ever reads half of one."""

from __future__ import annotations

import errno
import os
import secrets
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl


@contextmanager
def one_at_a_time(folder: str | os.PathLike[str]) -> Generator[None]:
    """Wait until no other process is inside this block for the same folder.

    For files that are read, changed and written again. A small file ``.lock`` in the folder is locked; the system frees it when a
    process ends, however it ends.

    Example:
        >>> import tempfile
        >>> with one_at_a_time(tempfile.mkdtemp()):
        ...     print("alone")
        alone
    """
    file = Path(folder) / ".lock"
    try:
        handle = os.open(file, os.O_CREAT | os.O_RDWR, 0o666)
    except OSError as problem:
        raise type(problem)(f"cannot write {file}: {problem.strerror}") from None
    try:
        _lock(handle)
        yield
    finally:
        os.close(handle)  # gives the lock back


def _lock(handle: int) -> None:
    """Wait for the lock."""
    if sys.platform == "win32":
        while True:
            try:  # gives up after ten seconds
                return msvcrt.locking(handle, msvcrt.LK_LOCK, 1)
            except OSError as problem:
                if problem.errno != errno.EDEADLOCK:
                    raise
    return fcntl.flock(handle, fcntl.LOCK_EX)


def write_whole(path: str | os.PathLike[str], write: Callable[[IO[bytes]], Any]) -> None:
    """Let ``write`` fill a temporary file beside the target, then put it in place in one move.

    An interrupted write, a full disk or an error leaves the old file as it was, and no temporary one behind.

    Example:
        >>> import tempfile, pathlib
        >>> file = pathlib.Path(tempfile.mkdtemp()) / "note.txt"
        >>> write_whole(file, lambda f: f.write(b"done"))
        >>> file.read_text()
        'done'
    """
    target = Path(path)
    if not target.parent.is_dir():
        raise FileNotFoundError(f"the folder {target.parent} does not exist; make it first")
    if target.is_dir():
        raise IsADirectoryError(f"{target} is a folder; give the name of a file in it")
    temporary = target.parent / f".{target.name}.{secrets.token_hex(8)}"
    try:  # not mkstemp, whose files nobody else may read
        handle = os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666)
    except OSError as problem:
        raise type(problem)(f"cannot write {target}: {problem.strerror}") from None
    try:
        with os.fdopen(handle, "wb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
