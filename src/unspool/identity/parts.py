"""What things are made of, with names and in an order that is the same in every process."""

from __future__ import annotations

import functools
import types
from collections.abc import Iterable, Mapping
from typing import Any


def module_outside(package: str, module: Any) -> Any:
    """The module that a name belongs to; none for names of ours, which may move between modules without becoming others."""
    return "" if package == "unspool" else module


def numbered(things: Iterable[Any]) -> list[tuple[str, Any]]:
    """Things with their places for names.

    Example:
        >>> numbered("ab")
        [('0', 'a'), ('1', 'b')]
    """
    return [(str(k), thing) for k, thing in enumerate(things)]


def ordered(held: Mapping[Any, Any]) -> list[tuple[str, Any]]:
    """What is held under names, in the order of the names.

    Example:
        >>> ordered({"b": 1, "a": 2})
        [('a', 2), ('b', 1)]
    """
    return sorted(((str(name), value) for name, value in held.items()), key=lambda pair: pair[0])


def without_caches(thing: Any, state: Mapping[Any, Any]) -> dict[Any, Any]:
    """A state without what was computed from the rest of it when somebody asked."""
    kind = type(thing)
    return {k: v for k, v in state.items() if not isinstance(getattr(kind, str(k), None), functools.cached_property)}


def cells(function: types.FunctionType) -> list[Any]:
    """What a function holds of the functions around it."""
    found: list[Any] = []
    for cell in function.__closure__ or ():
        try:
            found.append(cell.cell_contents)
        except ValueError:
            found.append("nothing yet")
    return found
