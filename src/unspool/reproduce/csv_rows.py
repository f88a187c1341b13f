"""Dataclasses as rows of CSV files: a column for each field, enums by name, nested dataclasses side by side."""

from __future__ import annotations

import csv
import dataclasses
import functools
import io
import json
import math
import types
import typing
from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from pathlib import Path
from typing import Any, TypeVar

from unspool.files import write_whole

T = TypeVar("T")

#: Numbers that are names as well keep all their digits; others have the seven that float32 has.
_EXACT = ("lr", "weight_decay", "dropout")


def write_rows(path: Path, kind: type[T], rows: Iterable[T]) -> Path:
    """Write a file, whole or not at all.

    Example:
        >>> import tempfile
        >>> from unspool.reproduce.records import Record, example_record
        >>> file = write_rows(Path(tempfile.mkdtemp()) / "a.csv", Record, [example_record()])
        >>> file.read_text().splitlines()[1][:33]
        'table2,cora,none,0,always,GCN,pap'
    """
    places = list(_columns(kind))
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([place[-1] for place, _ in places])
    writer.writerows([_written(place[-1], _at(row, place)) for place, _ in places] for row in rows)
    write_whole(path, lambda file: file.write(text.getvalue().encode()))
    return path


def read_rows(path: Path, kind: type[T], way_out: str) -> list[T]:
    """Read a file that :func:`write_rows` wrote; one sentence where it is something else, with the way out at its end."""
    places = list(_columns(kind))
    try:
        with path.open(encoding="utf-8", newline="") as file:
            reader = csv.DictReader(file)
            known = reader.fieldnames or ()
            missing = [place[-1] for place, _ in places if place[-1] not in known]
            lines = [] if missing else list(reader)
    except (UnicodeDecodeError, csv.Error):
        raise ValueError(f"{path} is not a CSV file; {way_out}") from None
    if missing:
        raise ValueError(
            f"{path} has no column {missing[0]!r}: it is not a file of results, or one of another version; {way_out}"
        )
    made: list[T] = []
    for number, line in enumerate(lines, 2):
        if None in line.values() or None in line:
            raise ValueError(f"{path}: row {number} is cut off; {way_out}")
        try:
            made.append(_made(kind, {place: _read(hint, line[place[-1]]) for place, hint in places}))
        except (ValueError, TypeError, KeyError):
            raise ValueError(f"{path}: row {number} cannot be read; {way_out}") from None
    return made


def to_plain(row: object) -> dict[str, Any]:
    """The same fields for JSON: enums by name, nested dataclasses side by side.

    Example:
        >>> from unspool.reproduce.conditions import Condition, Factor
        >>> to_plain(Condition(Factor.EDGES, 30.0))
        {'factor': 'edges', 'amount': 30.0, 'phase': 'always'}
    """
    values = {place[-1]: _at(row, place) for place, _ in _columns(type(row))}
    return {name: value.name.lower() if isinstance(value, Enum) else value for name, value in values.items()}


# -- inside ------------------------------------------------------------------------------------------------------------


def _columns(kind: type[Any], inside: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """The path of each plain field, and its type."""
    hints = _hints(kind)
    for one in dataclasses.fields(kind):
        place, hint = (*inside, one.name), hints[one.name]
        if dataclasses.is_dataclass(hint):
            yield from _columns(typing.cast("type[Any]", hint), place)
        else:
            yield place, hint


@functools.cache
def _hints(kind: type[Any]) -> dict[str, Any]:
    return typing.get_type_hints(kind)


def _at(row: object, place: tuple[str, ...]) -> Any:
    for name in place:
        row = getattr(row, name)
    return row


def _made(kind: type[T], values: Mapping[tuple[str, ...], Any]) -> T:
    hints = _hints(kind)
    fields: dict[str, Any] = {}
    for one in dataclasses.fields(typing.cast("Any", kind)):
        if (one.name,) in values:
            fields[one.name] = values[one.name,]
        else:
            inner = {place[1:]: value for place, value in values.items() if place[0] == one.name}
            fields[one.name] = _made(hints[one.name], inner)
    return kind(**fields)


def _written(name: str, value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, Enum):
        return value.name.lower()
    if isinstance(value, Mapping):
        return json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    if isinstance(value, float) and name not in _EXACT:
        return f"{value:.7g}"
    return str(value)


def _read(hint: Any, text: str) -> Any:
    if isinstance(hint, type) and issubclass(hint, Enum):
        return hint[text.upper()]
    if typing.get_origin(hint) is types.UnionType and type(None) in typing.get_args(hint):
        return _read(typing.get_args(hint)[0], text) if text else None
    if hint is float:
        return float(text) if text else math.nan
    if hint in (str, int):
        return hint(text)
    found = json.loads(text)
    if not isinstance(found, dict | float | int):
        raise ValueError(text)
    return found
