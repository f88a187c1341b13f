"""Writing files so that nobody ever reads half of one."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

try:
    import fcntl
except ImportError:  # Windows has no locks on folders
    fcntl = None


@contextmanager
def one_at_a_time(folder: str | os.PathLike[str]) -> Generator[None]:
    """Wait until no other process is inside this block for the same folder.

    For files that are read, changed and written again. The kernel frees the folder when a process ends, however it ends.

    Example:
        >>> import tempfile
        >>> with one_at_a_time(tempfile.mkdtemp()):
        ...     print("alone")
        alone
    """
    if fcntl is None:
        yield
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


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
