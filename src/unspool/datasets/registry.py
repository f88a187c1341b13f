"""Data sets of other packages: registered by name (entry points of the group ``unspool.datasets``), or given as ``package.module:function``.

A name that a *person* gives is imported. One that a *file* brings along is not, unless an installed package registers it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from importlib.metadata import EntryPoint
from typing import Any

from unspool.datasets.dataset import Dataset
from unspool.datasets.sources import key_named
from unspool.errors import DataError, InputError, Worded
from unspool.importing import by_name, entry_points, import_named, load_entry, only_one, told, warn_taken

#: The group of entry points in which packages register their data sets.
GROUP = "unspool.datasets"
_FORM = "package.module:function"


def registered() -> dict[str, EntryPoint]:
    """What installed packages register, by name in small letters; nothing is imported.

    The names of this package stay its own, and a name that two packages register is nobody's.
    """
    return {
        name: found[0]
        for name, found in by_name(entry_points(group=GROUP)).items()
        if key_named(name) is None and len({entry.value for entry in found}) == 1
    }


def unnamed() -> list[EntryPoint]:
    """What installed packages register under names that are taken: it is found as ``package.module:function`` alone."""
    named = [entry.value for entry in registered().values()]
    return [entry for entry in entry_points(group=GROUP) if entry.value not in named]


def is_foreign(name: str) -> bool:
    """Whether a name leads to another package; where one registers a name of ours, a warning says that it is ours.

    Example:
        >>> is_foreign("cora"), is_foreign("my_data:roads")
        (False, True)
    """
    if ":" in name:
        return True
    others = by_name(entry_points(group=GROUP)).get(name.lower(), [])
    if key_named(name) is None:
        return bool(others)
    warn_taken(name, "data set", others)
    return False


def is_registered(name: str) -> bool:
    """Whether an installed package registers a data set under this name, or as this ``package.module:function``.

    Example:
        >>> is_registered("os:system")
        False
    """
    return name in registered() or any(name == entry.value for entry in entry_points(group=GROUP))


def load_foreign(name: str) -> Dataset:
    """Call the function that a name leads to: ``package.module:function`` or a registered name."""
    others = [] if ":" in name else by_name(entry_points(group=GROUP)).get(name.lower(), [])
    make: Callable[[], Any] = (
        load_entry(only_one(others, name, "dataset"), "dataset", _FORM)
        if others
        else import_named(name, "dataset", _FORM)
    )
    if not callable(make):
        raise InputError("dataset", name, "a function that gives an unspool.datasets.Dataset")
    if not _needs_nothing(make):
        raise InputError("dataset", name, "a function that can be called without arguments")
    try:
        made = make()
    except (Worded, OSError, MemoryError):
        raise
    except (Exception, SystemExit) as problem:  # whatever a function of the user's does
        raise DataError(name, f"its function failed: {told(problem, make.__module__.partition('.')[0])}") from problem
    if not isinstance(made, Dataset):
        raise InputError(
            "dataset", name, f"a function that gives an unspool.datasets.Dataset, and it gives a {type(made).__name__}"
        )
    return made


def _needs_nothing(make: Callable[..., Any]) -> bool:
    try:
        signature = inspect.signature(make)
    except ValueError:  # written in C, and says nothing
        return True
    try:
        signature.bind()
    except TypeError:
        return False
    return True
