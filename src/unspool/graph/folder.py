"""A graph in a folder: arrays that are mapped into memory, and a sealed card that is written last."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from unspool.errors import DataError
from unspool.files import Unsound, read_sealed, write_sealed
from unspool.graph.adjacency import Adjacency
from unspool.graph.compress import Rows

#: The card, whose presence says that the folder is whole.
CARD, FORMAT = "graph.json", 1
#: The arrays of a folder and what they hold; the last three are there where they are needed.
ARRAYS = {
    "degree": "<f8",
    "crow": "<i8",
    "col": "<i4",
    "weight": "<f8",
    "crow_t": "<i8",
    "col_t": "<i4",
    "weight_t": "<f8",
}
_AGAIN = "build it again with unspool graph build"


class Opened(NamedTuple):
    """What a folder holds."""

    adjacency: Adjacency
    degree: Tensor
    notes: tuple[str, ...]


def array_file(folder: Path, name: str) -> Path:
    """Where an array lies, as plain numbers without a header."""
    return folder / f"{name}.bin"


def write_card(folder: Path, loops: int, notes: tuple[str, ...]) -> None:
    """Seal a folder whose arrays are in place: their sizes and checksums, the number of loops and what was done to the edges."""
    names = [name for name in ARRAYS if array_file(folder, name).is_file()]
    arrays = {
        name: {"bytes": array_file(folder, name).stat().st_size, "sha256": _digest(folder, name)} for name in names
    }
    card = {"format": FORMAT, "what": "unspool graph", "loops": loops, "notes": notes, "arrays": arrays}
    write_sealed(folder / CARD, lambda file: file.write(json.dumps(card, indent=1).encode()))


def opened(folder: Any, check: bool = True) -> Opened:
    """The graph in a folder; a torn, changed or foreign folder is refused in one sentence.

    Args:
        folder: where.
        check: whether to compare checksums, which reads everything once.
    """
    place = Path(folder)
    card = _card(place)
    for name, known in card["arrays"].items():
        _check_array(place, name, known, check)
    degree, crow = _array(place, "degree"), _array(place, "crow")
    entries = int(crow[-1]) if crow.numel() else -1
    forward = _rows(place, crow, entries, "")
    transpose = _rows(place, _array(place, "crow_t"), entries, "_t") if "crow_t" in card["arrays"] else forward
    if degree.numel() != crow.numel() - 1 or not all(_fits(rows, entries) for rows in (forward, transpose)):
        raise DataError(str(place), "its arrays do not fit each other", _AGAIN)
    return Opened(Adjacency(forward, transpose, int(card["loops"])), degree, tuple(card["notes"]))


def _card(place: Path) -> Mapping[str, Any]:
    if not place.is_dir():
        what = "is a file, not a folder" if place.is_file() else "does not exist"
        raise FileNotFoundError(f"{place} {what}; check the path, or build a graph there with unspool graph build")
    if not (place / CARD).is_file():
        unfinished = (place / ".building").is_dir()
        what = "a graph was being built here and is not finished" if unfinished else "there is no graph in this folder"
        raise DataError(str(place), what, "run the same unspool graph build again to go on" if unfinished else _AGAIN)
    try:
        card = json.loads(read_sealed(place / CARD).read())
    except (Unsound, ValueError) as problem:
        raise DataError(str(place / CARD), f"it is damaged ({problem})", _AGAIN) from None
    if not isinstance(card, dict) or card.get("what") != "unspool graph":  # pyright: ignore[reportUnnecessaryIsInstance]
        raise DataError(str(place / CARD), "it is not the card of a graph", _AGAIN)
    if card["format"] != FORMAT:
        raise DataError(str(place / CARD), f"it has format {card['format']}, and this version reads {FORMAT}", _AGAIN)
    return card


def _check_array(place: Path, name: str, known: Mapping[str, Any], check: bool) -> None:
    file = array_file(place, name)
    if not file.is_file():
        raise DataError(str(place), f"its file {file.name} is missing", _AGAIN)
    if file.stat().st_size != known["bytes"]:
        raise DataError(
            str(file), f"it has {file.stat().st_size} bytes, not the {known['bytes']} that were written", _AGAIN
        )
    if check and _digest(place, name) != known["sha256"]:
        raise DataError(str(file), "it has changed since it was written: its checksum does not match", _AGAIN)


def _digest(folder: Path, name: str) -> str:
    with array_file(folder, name).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _array(place: Path, name: str) -> Tensor:
    file, kind = array_file(place, name), np.dtype(ARRAYS[name])
    if os.path.getsize(file) == 0:
        return torch.from_numpy(np.empty(0, kind))
    # Mode c: what somebody writes into the tensor stays in memory, and the file as it is.
    return torch.from_numpy(np.memmap(file, kind, mode="c"))


def _rows(place: Path, crow: Tensor, entries: int, suffix: str) -> Rows:
    weighted = array_file(place, f"weight{suffix}").is_file()
    weight = _array(place, f"weight{suffix}") if weighted else None
    return Rows(crow.int() if 0 <= entries < 2**31 else crow, _array(place, f"col{suffix}"), weight)


def _fits(rows: Rows, entries: int) -> bool:
    weights = entries if rows.beside is None else rows.beside.numel()
    return rows.col.numel() == weights == entries and bool((rows.crow.diff() >= 0).all()) and int(rows.crow[0]) == 0
