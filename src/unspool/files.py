"""Writing files so that nobody ever reads half of one, or a damaged one; and one process at a time in a folder."""

from __future__ import annotations

import errno
import hashlib
import io
import os
import re
import secrets
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

#: Stands between the content of a sealed file and its checksum.
_SEAL = b"\nunspool sha256 "
#: Letters that stand for bytes of file names that are not UTF-8.
_SURROGATES = re.compile("[\ud800-\udfff]")


class Unsound(ValueError):
    """A file is not as it was written; the message is half a sentence that says why."""


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
        lock(handle, wait=True)
        yield
    finally:
        os.close(handle)  # gives the lock back


@contextmanager
def alone_in(folder: str | os.PathLike[str]) -> Generator[bool]:
    """Be the only process at work in a folder; where another one is, refuse at once.

    A file ``.unspool.lock`` is there for as long as the work takes, and is locked. The system frees the lock when a process ends,
    however it ends, so one that was killed is in nobody's way. Gives False where the file system has no locks (some network
    drives): then nobody is kept out. A network drive that has locks may still keep those of other machines to itself.

    Example:
        >>> import tempfile
        >>> folder = tempfile.mkdtemp()
        >>> with alone_in(folder) as locked, alone_in(folder):
        ...     pass
        Traceback (most recent call last):
            ...
        BlockingIOError: another run is at work in ...; wait until it has ended, or choose another folder
    """
    file = Path(folder) / ".unspool.lock"
    handle, locked = _locked(file)
    try:
        yield locked
    finally:
        if sys.platform != "win32":
            with suppress(OSError):
                file.unlink()  # Trap: while it is still ours; later it may be another's
        os.close(handle)
        if sys.platform == "win32":
            with suppress(OSError):  # fails, as it should, while another process has it open
                file.unlink()


@contextmanager
def no_empty_folder(folder: str | os.PathLike[str]) -> Generator[None]:
    """Leave no folder behind that was made for work that failed before it wrote anything.

    Example:
        >>> import tempfile
        >>> place = Path(tempfile.mkdtemp()) / "new"
        >>> with suppress(ValueError), no_empty_folder(place):
        ...     place.mkdir()
        ...     raise ValueError("nothing to write")
        >>> place.exists()
        False
    """
    made = [place for place in (Path(folder), *Path(folder).parents) if not place.exists()]
    try:
        yield
    except BaseException:
        with suppress(OSError):  # there is something in it
            for place in made:
                place.rmdir()
        raise


def _locked(file: Path) -> tuple[int, bool]:
    """Open and lock a file, at once or never; and whether there are locks here."""
    while True:
        try:
            handle = os.open(file, os.O_CREAT | os.O_RDWR | getattr(os, "O_NOFOLLOW", 0), 0o666)
        except OSError as problem:
            raise type(problem)(f"cannot write {file}: {problem.strerror}; move it away") from None
        try:
            lock(handle)
            # Trap: who had it before may have removed the file between our opening and our locking it.
            with suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(handle), os.stat(file)):
                    return handle, True
        except OSError as problem:
            if problem.errno in (errno.EACCES, errno.EAGAIN, errno.EDEADLK):
                os.close(handle)
                raise BlockingIOError(
                    f"another run is at work in {file.parent}; wait until it has ended, or choose another folder"
                ) from None
            return handle, False
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)


def lock(handle: int, *, wait: bool = False, shared: bool = False) -> None:
    """Lock an open file, at once or after waiting for it; raises :class:`OSError` where it cannot be locked.

    The system takes the lock back when the file is closed or the process ends, however it ends. Shared locks let each other in (on
    Windows there are none, and they are as the others).
    """
    if sys.platform != "win32":
        kind = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
        return fcntl.flock(handle, kind if wait else kind | fcntl.LOCK_NB)
    while True:
        try:
            return msvcrt.locking(handle, msvcrt.LK_LOCK if wait else msvcrt.LK_NBLCK, 1)
        except OSError as problem:  # waiting is given up after ten seconds
            if not wait or problem.errno != errno.EDEADLOCK:
                raise


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


def append(path: Path, values: Any) -> None:
    """Write the memory of an array, whose numbers lie one behind the other, behind what a file holds.

    Example:
        >>> import array, tempfile
        >>> file = Path(tempfile.mkdtemp()) / "numbers.bin"
        >>> for numbers in ([1, 2], [3]):
        ...     append(file, array.array("b", numbers))
        >>> file.read_bytes()
        b'\\x01\\x02\\x03'
    """
    with path.open("ab") as held:
        held.write(values)


def cut(path: Path, size: int) -> None:
    """Take back what a file holds beyond a size."""
    if path.exists() and path.stat().st_size > size:
        os.truncate(path, size)


def bring_down(paths: set[Path]) -> None:
    """Bring what was written into some files down to the disk, before it is noted; the set is emptied."""
    for path in paths:
        with path.open("rb") as held:
            os.fsync(held.fileno())
    paths.clear()


def remove_leftovers(folder: str | os.PathLike[str], names: str) -> None:
    """Remove what killed processes were writing: temporary files of :func:`write_whole`, and nothing else.

    Args:
        folder: where.
        names: the names that were to be written, as a regular expression.

    Example:
        >>> import tempfile, pathlib
        >>> folder = pathlib.Path(tempfile.mkdtemp())
        >>> for name in (".note.txt.0123456789abcdef", ".note.txt.mine", "note.txt"):
        ...     _ = (folder / name).write_text("")
        >>> remove_leftovers(folder, r"note\\.txt")
        >>> sorted(path.name for path in folder.iterdir())
        ['.note.txt.mine', 'note.txt']
    """
    ours = re.compile(rf"\.(?:{names})\.[0-9a-f]{{16}}")
    for path in Path(folder).iterdir():
        if ours.fullmatch(path.name) and path.is_file() and not path.is_symlink():
            path.unlink()


def write_sealed(path: str | os.PathLike[str], write: Callable[[IO[bytes]], Any]) -> None:
    """As :func:`write_whole`, with a checksum behind what ``write`` writes, for :func:`read_sealed` to compare.

    Example:
        >>> import tempfile, pathlib
        >>> file = pathlib.Path(tempfile.mkdtemp()) / "note.txt"
        >>> write_sealed(file, lambda f: f.write(b"done"))
        >>> read_sealed(file).read()
        b'done'
    """
    held = io.BytesIO()
    write(held)
    content = held.getbuffer()
    seal = _SEAL + hashlib.sha256(content).hexdigest().encode() + b"\n"
    write_whole(path, lambda file: (file.write(content), file.write(seal)))


def read_sealed(path: str | os.PathLike[str]) -> IO[bytes]:
    """What :func:`write_sealed` wrote, or :class:`Unsound` where as much as a bit of it has changed.

    Example:
        >>> import tempfile, pathlib
        >>> file = pathlib.Path(tempfile.mkdtemp()) / "note.txt"
        >>> _ = file.write_bytes(b"done")
        >>> read_sealed(file)
        Traceback (most recent call last):
            ...
        unspool.files.Unsound: it carries no checksum
    """
    if not Path(path).is_file():  # Trap: a pipe would be waited for without end
        raise Unsound("it is not a file")
    content = Path(path).read_bytes()
    cut = len(content) - len(_SEAL) - 65
    if cut < 0 or content[cut : cut + len(_SEAL)] != _SEAL:
        raise Unsound("it carries no checksum")
    held = memoryview(content)[:cut]
    if content[cut + len(_SEAL) :] != hashlib.sha256(held).hexdigest().encode() + b"\n":
        raise Unsound("its checksum does not match")
    return io.BytesIO(held)


def utf8(text: str) -> str:
    """The same text in letters that every file and terminal takes: bytes of file names that are not UTF-8 become ``\\udcff``.

    In JSON that is the letter itself again.

    Example:
        >>> print(utf8("caf\\udce9"))
        caf\\udce9
    """
    return _SURROGATES.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
