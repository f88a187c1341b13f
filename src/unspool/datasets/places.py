"""Where data sets lie: the data root, the folder for processed sets, and files that are missing."""

from __future__ import annotations

import os
import sys
from pathlib import Path

Place = str | os.PathLike[str]


def cache_home() -> Path:
    """The user's cache folder for this package, by the platform's convention.

    ``$XDG_CACHE_HOME/unspool`` or ``~/.cache/unspool`` on Linux, ``~/Library/Caches/unspool`` on macOS,
    ``%LOCALAPPDATA%\\unspool`` on Windows.
    """
    chosen = os.environ.get("XDG_CACHE_HOME")
    if chosen:
        return Path(chosen) / "unspool"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "unspool"
    if sys.platform == "win32":
        local = os.environ.get("LOCALAPPDATA")
        return (Path(local) if local else Path.home() / "AppData" / "Local") / "unspool"
    return Path.home() / ".cache" / "unspool"


def data_root(root: Place | None = None) -> Path:
    """Where raw files are looked for: the argument, else ``UNSPOOL_DATA``, else ``data`` in the user's cache folder.

    Example:
        >>> data_root("/somewhere").name
        'somewhere'
    """
    if root is not None:
        return Path(root).expanduser()
    chosen = os.environ.get("UNSPOOL_DATA")
    return Path(chosen).expanduser() if chosen else cache_home() / "data"


def cache_folder(cache: Place | None = None) -> Path:
    """Where processed sets are kept: the argument, else ``processed`` in the user's cache folder."""
    return cache_home() / "processed" if cache is None else Path(cache).expanduser()


def find_folder(root: Path, choices: tuple[str, ...], marker: str) -> Path | None:
    """The first of several folders under ``root`` that holds the file ``marker``; spelling in any case is accepted."""
    for choice in choices:
        folder = root
        for part in Path(choice).parts:
            folder = _step(folder, part)
        if (folder / marker).is_file():
            return folder
    return None


def stamps(folder: Path, files: tuple[str, ...]) -> dict[str, list[int]]:
    """Size and time of last change of those files that are there: enough to notice that raw data were replaced."""
    found: dict[str, list[int]] = {}
    for name in files:
        try:
            state = (folder / name).stat()
        except OSError:
            continue
        found[name] = [state.st_size, state.st_mtime_ns]
    return found


def _step(folder: Path, part: str) -> Path:
    if (folder / part).is_dir() or not folder.is_dir():
        return folder / part
    try:
        alike = sorted(entry.name for entry in folder.iterdir() if entry.name.lower() == part.lower())
    except OSError:
        alike = []
    return folder / alike[0] if alike else folder / part
