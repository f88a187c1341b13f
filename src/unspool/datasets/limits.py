"""How large a file may become when it is unpacked: a few kilobytes of zeros, compressed, can fill any memory."""

from __future__ import annotations

import gzip
import io
import os
import zipfile
from pathlib import Path

#: Gigabytes that a compressed file may unpack to, unless the variable says otherwise.
LARGEST, VARIABLE = 4.0, "UNSPOOL_LARGEST_GB"


class TooLarge(ValueError):
    """A file that unpacks to more than was allowed; the message names the way out."""


def largest() -> int:
    """The limit in bytes: :data:`LARGEST`, or what ``UNSPOOL_LARGEST_GB`` says.

    Example:
        >>> largest() == 4 * 2**30
        True
    """
    told = os.environ.get(VARIABLE)
    try:
        gigabytes = LARGEST if not told else float(told)
        return int(gigabytes * 2**30)
    except (ValueError, OverflowError):
        raise ValueError(f"{VARIABLE}={told}: expected a number of gigabytes, such as {VARIABLE}=16") from None


def check_size(path: Path, size: int) -> None:
    """Refuse what would unpack to more than the limit."""
    most = largest()
    if size > most:
        held = f"{size / 2**30:.1f}" if size < 2**60 else "very many"
        raise TooLarge(
            f"{path} unpacks to {held} GB, more than the {most / 2**30:g} GB allowed; if that is right, set {VARIABLE}="
            f"{-(-size // 2**30) if size < 2**60 else '...'}"
        )


def check_archive(path: Path, archive: zipfile.ZipFile) -> None:
    """Refuse a zip archive (``.npz`` is one) by the sizes that it declares, which ``zipfile`` never reads beyond."""
    check_size(path, sum(entry.file_size for entry in archive.infolist()))


def gunzip(path: Path) -> bytes:
    """The content of a ``.gz`` file, read no further than the limit.

    Raises ``OSError``, ``EOFError`` or ``zlib.error`` where it is damaged.
    """
    most, out = largest(), io.BytesIO()
    with gzip.open(path) as file:
        while piece := file.read(1 << 20):
            out.write(piece)
            if out.tell() > most:
                raise TooLarge(
                    f"{path} unpacks to more than the {most / 2**30:g} GB allowed; if that is right, set {VARIABLE}=..."
                )
    return out.getvalue()
