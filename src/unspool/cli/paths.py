"""Where results go and modules come from."""

from __future__ import annotations

import importlib.util
import secrets
import sys
from pathlib import Path

from unspool.cli.terminal import echo
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
    """Let ``package.module:Class``, which a person has typed, be found in the current folder, too.

    It comes last, so that no file in it takes the place of an installed package that is imported later. One that has the name of a
    package is not found, and a note says so.
    """
    if ":" not in name:
        return
    here = Path.cwd()
    if str(here) not in sys.path:
        sys.path.append(str(here))
    top = name.partition(":")[0].partition(".")[0]
    mine = next((file for file in (here / f"{top}.py", here / top / "__init__.py") if file.is_file()), None)
    if mine is None or not top.isidentifier():
        return
    try:
        found = importlib.util.find_spec(top)
    except (ImportError, ValueError):  # a module that was made by hand
        return
    origin = None if found is None else found.origin
    if origin is not None and Path(origin).resolve() != mine.resolve():
        echo(
            f"{top} is the installed package {origin}, and not {mine.relative_to(here)} here; rename yours to use it",
            err=True,
        )
