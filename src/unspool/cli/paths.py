"""Where results go and modules come from."""

from __future__ import annotations

import secrets
import sys
from pathlib import Path

from unspool.files import write_whole


def check_folder(folder: Path, option: str = "--out") -> None:
    """Make a folder if need be, and see that a file can be written into it; ``option`` is how it was said."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe = folder / f".probe-{secrets.token_hex(8)}"  # nobody else's
        write_whole(probe, lambda file: file.write(b"?"))
        probe.unlink()
    except OSError as problem:
        reason = str(problem).rpartition(": ")[2] if problem.strerror is None else problem.strerror
        raise OSError(f"cannot write into {folder}: {reason}; choose another place with {option}") from problem


def look_here(name: str) -> None:
    """Let ``package.module:Class``, which a person has typed, be found in the current folder, too."""
    if ":" in name and str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
