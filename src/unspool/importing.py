"""Things by the names that people type or that packages register: ``package.module:Class``; and where code that is not ours went wrong."""

from __future__ import annotations

import difflib
import importlib
import sysconfig
import traceback
import warnings
from collections.abc import Iterable
from importlib import metadata
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

from unspool.errors import InputError

#: Folders whose code nobody here has written.
_LIBRARIES = tuple(Path(sysconfig.get_path(name)) for name in ("stdlib", "platstdlib", "purelib", "platlib"))


def import_named(name: str, argument: str, form: str, hint: str | None = None) -> Any:
    """What ``package.module:Name`` leads to; the module is imported, so only a person may have given the name, never a file.

    Args:
        name: the name.
        argument: what it was given as, for errors.
        form: what it should look like, for errors, as in ``package.module:Class``.
        hint: where the name comes from, for errors, if nobody typed it.

    Example:
        >>> import_named("fractions:Fraction", "model", "package.module:Class").__name__
        'Fraction'
    """
    module, _, path = name.partition(":")
    if not all(part.isidentifier() for part in module.split(".")):
        raise InputError(argument, name, f"{form}, with the name of a module before the colon", hint)
    try:
        found: Any = importlib.import_module(module)
    except MemoryError:
        raise
    except (Exception, SystemExit) as problem:  # whatever a module of the user's does
        if isinstance(problem, ModuleNotFoundError) and f"{module}.".startswith(f"{problem.name}."):
            absent = f"there is no module {problem.name} here or among the installed packages"
            if module.endswith(".py"):
                absent = f"write it without .py: {module.removesuffix('.py')}:{path}"
            said = absent if hint is None else f"{absent}; {hint}"
            raise InputError(argument, name, f"{form} of something that can be imported", said) from None
        raise ImportError(f"importing {module} failed: {told(problem, module.partition('.')[0])}") from problem
    try:
        for part in path.split("."):
            found = getattr(found, part)
    except AttributeError:
        near = difflib.get_close_matches(
            path, [one for one in vars(importlib.import_module(module)) if one[:1] != "_"], n=1
        )
        meant = f"did you mean {module}:{near[0]}?" if near and hint is None else hint
        raise InputError(argument, name, f"{form}, and {module} has no {path}", meant) from None
    return found


# -- what packages register ---------------------------------------------------------------------------------------------


def entry_points(group: str) -> list[EntryPoint]:
    """What installed packages register in a group; nothing is imported. Packages whose list cannot be read are left out, with a warning.

    Example:
        >>> entry_points("unspool.nothing")
        []
    """
    try:
        return [*metadata.entry_points(group=group)]
    except Exception:  # of a file that some package brought along
        return [entry for package in metadata.distributions() for entry in _entries(package, group)]


def _entries(package: metadata.Distribution, group: str) -> list[EntryPoint]:
    try:
        return [*package.entry_points.select(group=group)]
    except Exception as problem:
        warnings.warn(
            f"what the package {_name_of(package)} registers is left out, as its entry_points.txt cannot be read "
            f"({type(problem).__name__}: {problem}); install it again",
            stacklevel=5,
        )
        return []


def broken_package(problem: BaseException) -> str | None:
    """The package whose entry_points.txt cannot be read, where this is what went wrong: torch and others read the files of all packages."""
    through = (str(frame.f_globals.get("__name__")) for frame, _ in traceback.walk_tb(problem.__traceback__))
    if not any(name.startswith("importlib.metadata") for name in through):
        return None
    for package in metadata.distributions():
        try:
            _ = package.entry_points
        except Exception:
            return _name_of(package)
    return None


def _name_of(package: metadata.Distribution | None) -> str:
    try:
        return str(getattr(package, "name", None))
    except Exception:  # without metadata it has no name
        return "?"


def only_one(entries: Iterable[EntryPoint], name: str, argument: str) -> EntryPoint:
    """The entry of a name, or one sentence where several packages register different things under it.

    Example:
        >>> one, other = EntryPoint("huber", "a.nets:Huber", "unspool.models"), EntryPoint("Huber", "b:Net", "unspool.models")
        >>> only_one([one, one], "huber", "model").value
        'a.nets:Huber'
        >>> only_one([one, other], "huber", "model")
        Traceback (most recent call last):
            ...
        unspool.errors.InputError: model='huber': expected a name of one thing, and packages register several under it; write a.nets:Huber or b:Net
    """
    values = {entry.value: entry for entry in entries}
    if len(values) > 1:
        raise InputError(
            argument,
            name,
            "a name of one thing, and packages register several under it",
            f"write {' or '.join(values)}",
        )
    return next(iter(values.values()))


def load_entry(entry: EntryPoint, argument: str, form: str) -> Any:
    """What a package registers, imported."""
    match = entry.pattern.match(entry.value)
    path = entry.value if match is None else f"{match['module']}:{match['attr'] or ''}"
    who = "" if entry.dist is None else f" by the package {_name_of(entry.dist)}"
    return import_named(path, argument, form, f"it is registered as {entry.name}{who}")


def by_name(entries: Iterable[EntryPoint]) -> dict[str, list[EntryPoint]]:
    """Entries by their names in small letters."""
    found: dict[str, list[EntryPoint]] = {}
    for entry in entries:
        found.setdefault(entry.name.lower(), []).append(entry)
    return found


def warn_taken(name: str, what: str, entries: Iterable[EntryPoint]) -> None:
    """Say that packages register something under a name of ours, which stays ours."""
    for entry in entries:
        warnings.warn(
            f"{name} is unspool's {what}; another package registers the same name for its own, which is {entry.value}",
            stacklevel=4,
        )


# -- where it went wrong ------------------------------------------------------------------------------------------------


def told(problem: BaseException, package: str | None = None) -> str:
    """What the user's own code raised, and in which of its lines.

    Args:
        problem: as it was caught.
        package: an installed package whose code counts as the user's.

    Example:
        >>> told(KeyError("boom"))
        "KeyError: 'boom'"
    """
    said = " ".join((problem.msg if isinstance(problem, SyntaxError) else str(problem)).split())
    place = own_line(problem, package)
    return type(problem).__name__ + (f": {said}" if said else "") + ("" if place is None else f" ({place})")


def own_line(problem: BaseException, package: str | None = None, *, raised: bool = False) -> str | None:
    """The innermost line of the user's own code on the way to a problem; None where there is none.

    Args:
        problem: as it was caught.
        package: an installed package whose code counts as the user's.
        raised: whether only a line counts that raised the problem itself.
    """
    if isinstance(problem, SyntaxError) and problem.filename is not None and problem.lineno is not None:
        return f"{Path(problem.filename).name}, line {problem.lineno}"
    steps = [
        (frame.f_code.co_filename, str(frame.f_globals.get("__name__")), line)
        for frame, line in traceback.walk_tb(problem.__traceback__)
    ]
    steps = [step for step in steps if not step[0].startswith("<frozen ")]
    for file, module, line in reversed(steps[-1:] if raised else steps):
        if module.partition(".")[0] == package or not _of_a_library(file):
            return f"{Path(file).name}, line {line}"
    return None


def _of_a_library(file: str) -> bool:
    path = Path(file)
    return file.startswith("<") or any(path.is_relative_to(one) for one in (Path(__file__).parent, *_LIBRARIES))
