"""Scores back from plain values: a file may say anything, so every field is looked at."""

from __future__ import annotations

import dataclasses
import math
import types
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from unspool.errors import DataError

T = TypeVar("T")


def from_plain(kind: type[T], plain: Any) -> T:
    """A dataclass of numbers, texts, tuples and other such dataclasses, back from what ``dataclasses.asdict`` and JSON made of it.

    Entries that are missing take their defaults; entries that are not known are left aside, as later versions may write more.

    Args:
        kind: the dataclass.
        plain: what a file holds.

    Example:
        >>> from unspool.evaluate import Bin
        >>> from_plain(Bin, {"low": 0.9, "high": 1.0, "nodes": 4, "confidence": 0.95, "accuracy": 0.75}).nodes
        4
        >>> from_plain(Bin, {"low": 0.9, "high": "<b>", "nodes": 4})
        Traceback (most recent call last):
            ...
        unspool.errors.DataError: high: expected a finite number, found '<b>'
    """
    if not isinstance(plain, Mapping):
        raise DataError(kind.__name__, f"expected a record, found {_short(plain)}")
    hints, fields = get_type_hints(kind), dataclasses.fields(kind)  # type: ignore[arg-type]
    given: dict[str, Any] = {}
    for field in fields:
        if field.name in plain:
            given[field.name] = _read(field.name, hints[field.name], plain[field.name])
        elif field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING:
            raise DataError(kind.__name__, f"the entry {field.name} is missing")
    return kind(**given)


def _read(name: str, kind: Any, value: Any) -> Any:
    if get_origin(kind) in (Union, types.UnionType):
        options = get_args(kind)
        if value is None and type(None) in options:
            return None
        return _read(name, next(one for one in options if one is not type(None)), value)
    if get_origin(kind) is tuple:
        if not isinstance(value, Sequence) or isinstance(value, str):
            raise DataError(name, f"expected a list, found {_short(value)}")
        parts = get_args(kind)
        if len(parts) == 2 and parts[1] is Ellipsis:
            return tuple(_read(name, parts[0], one) for one in value)
        if len(parts) != len(value):
            raise DataError(name, f"expected {len(parts)} entries, found {_short(value)}")
        return tuple(_read(name, part, one) for part, one in zip(parts, value, strict=True))
    if dataclasses.is_dataclass(kind):
        return from_plain(kind, value)  # type: ignore[arg-type]
    return _simple(name, kind, value)


def _simple(name: str, kind: Any, value: Any) -> Any:
    if isinstance(kind, type) and issubclass(kind, Enum):
        known = {one.name.lower(): one for one in kind}
        if isinstance(value, str) and value in known:
            return known[value]
        raise DataError(name, f"expected one of {', '.join(known)}, found {_short(value)}")
    if kind is str and isinstance(value, str):
        return value
    whole = isinstance(value, int) and not isinstance(value, bool)
    if kind is int and whole and abs(value) < 2**63:
        return value
    if kind is float and (whole or isinstance(value, float)) and abs(value) < 1e300 and math.isfinite(value):
        return float(value)
    expected = {str: "text", int: "a whole number", float: "a finite number"}
    raise DataError(name, f"expected {expected[kind]}, found {_short(value)}")


def to_plain(value: Any) -> Any:
    """A dataclass of scores as JSON can hold it; numbers that are not finite become None, choices their names.

    Example:
        >>> from unspool.evaluate import Bin
        >>> to_plain(Bin(0.9, 1.0, 0))["confidence"] is None
        True
    """
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: to_plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, tuple | list):
        return [to_plain(one) for one in value]
    if isinstance(value, Enum):
        return value.name.lower()
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:39]}…"
