"""The kind of a setting, inferred from its default or its type."""

from __future__ import annotations

import dataclasses
from enum import Enum
from typing import Any

from unspool.settings.kinds.compound import Anything, Instance, Listed
from unspool.settings.kinds.kind import Kind
from unspool.settings.kinds.single import EnumMember, Flag, Real, Text, Whole


def kind_of(value: Any) -> Kind | None:
    """The kind that a default belongs to; None where it does not tell.

    Example:
        >>> kind_of(0.5), kind_of(True), kind_of(None)
        (Real(low=None, high=None, low_open=False, high_open=False), Flag(), None)
    """
    if isinstance(value, Enum):
        return EnumMember(type(value))
    if isinstance(value, bool):
        return Flag()
    if isinstance(value, int):
        return Whole()
    if isinstance(value, float):
        return Real()
    return Text() if isinstance(value, str) else None


def kind_named(given: Any) -> Kind:
    """The kind that a type means: ``float``, an enum, ``[float]`` for a list, a tuple of dataclasses for their objects.

    Example:
        >>> kind_named([float]).expected
        'a list, each a finite number'
    """
    if isinstance(given, Kind):
        return given
    if isinstance(given, list) and len(given) == 1:
        return Listed(kind_named(given[0]))
    plain: dict[Any, Kind] = {bool: Flag(), int: Whole(), float: Real(), str: Text(), object: Anything()}
    if isinstance(given, type) and given in plain:
        return plain[given]
    if isinstance(given, type) and issubclass(given, Enum):
        return EnumMember(given)
    classes: Any = given if isinstance(given, tuple) else (given,)
    if all(isinstance(one, type) and dataclasses.is_dataclass(one) for one in classes):
        return Instance(classes)
    raise TypeError(f"{given!r}: a setting is a number, a truth value, text, a choice, a list or a dataclass")
