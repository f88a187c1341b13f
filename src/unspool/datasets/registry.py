"""Data sets of other packages: registered by name (entry points of the group ``unspool.datasets``), or given as ``package.module:function``.

A name that a *person* gives is imported. One that a *file* brings along is not, unless an installed package registers it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from unspool.datasets.dataset import Dataset
from unspool.errors import InputError
from unspool.importing import import_named

#: The group of entry points in which packages register their data sets.
GROUP = "unspool.datasets"


def registered() -> dict[str, EntryPoint]:
    """What installed packages register, by name in small letters; nothing is imported."""
    return {entry.name.lower(): entry for entry in entry_points(group=GROUP)}


def is_foreign(name: str) -> bool:
    """Whether a name leads to another package.

    Example:
        >>> is_foreign("cora"), is_foreign("my_data:roads")
        (False, True)
    """
    return ":" in name or name.lower() in registered()


def is_registered(name: str) -> bool:
    """Whether an installed package registers a data set under this name, or as this ``package.module:function``.

    Example:
        >>> is_registered("os:system")
        False
    """
    return any(name in (entry.name, entry.value) for entry in registered().values())


def load_foreign(name: str) -> Dataset:
    """Call the function that a name leads to: ``package.module:function`` or a registered name."""
    entry = registered().get(name.lower())
    make: Callable[[], Any] = (
        entry.load() if entry is not None else import_named(name, "dataset", "package.module:function")
    )
    if not callable(make):
        raise InputError("dataset", name, "a function that gives an unspool.datasets.Dataset")
    if not _needs_nothing(make):
        raise InputError("dataset", name, "a function that can be called without arguments")
    made = make()
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
