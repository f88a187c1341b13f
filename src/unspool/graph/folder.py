"""A graph in a folder: arrays that are mapped into memory, and a sealed card that is written last."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from unspool.errors import DataError
from unspool.graph.adjacency import Adjacency
from unspool.graph.compress import Rows
from unspool.sealed_folder import FolderKind, file_of

#: How a folder with a graph is sealed, and what is said of one that is not.
GRAPH = FolderKind(
    what="unspool graph",
    card="graph.json",
    format=1,
    work=".building",
    absent="there is no graph in this folder",
    unfinished="a graph was being built here and is not finished",
    foreign="it is not the card of a graph",
    make="build a graph there with unspool graph build",
    again="build it again with unspool graph build",
    go_on="run the same unspool graph build again to go on",
)
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


class Opened(NamedTuple):
    """What a folder holds."""

    adjacency: Adjacency
    degree: Tensor
    notes: tuple[str, ...]


def write_card(folder: Path, loops: int, notes: tuple[str, ...]) -> None:
    """Seal a folder whose arrays are in place, with the number of loops and what was done to the edges."""
    names = [name for name in ARRAYS if file_of(folder, name).is_file()]
    GRAPH.seal(folder, names, loops=loops, notes=notes)


def opened(folder: Any, check: bool = True) -> Opened:
    """The graph in a folder; a torn, changed or foreign folder is refused in one sentence.

    Args:
        folder: where.
        check: whether to compare checksums, which reads everything once.
    """
    place = Path(folder)
    card = GRAPH.opened(place, check)
    if not {"degree", "crow", "col"} <= set(card["arrays"]) or not {"loops", "notes"} <= set(card):
        raise DataError(str(place / GRAPH.card), "it does not say all that a graph is made of", GRAPH.again)
    degree, crow = _array(place, "degree"), _array(place, "crow")
    entries = int(crow[-1]) if crow.numel() else -1
    forward = _rows(place, crow, entries, "")
    transpose = _rows(place, _array(place, "crow_t"), entries, "_t") if "crow_t" in card["arrays"] else forward
    if degree.numel() != crow.numel() - 1 or not all(_fits(rows, entries) for rows in (forward, transpose)):
        raise DataError(str(place), "its arrays do not fit each other", GRAPH.again)
    return Opened(Adjacency(forward, transpose, int(card["loops"])), degree, tuple(card["notes"]))


def _array(place: Path, name: str) -> Tensor:
    file, kind = file_of(place, name), np.dtype(ARRAYS[name])
    if os.path.getsize(file) == 0:
        return torch.from_numpy(np.empty(0, kind))
    # Mode c: what somebody writes into the tensor stays in memory, and the file as it is.
    return torch.from_numpy(np.memmap(file, kind, mode="c"))


def _rows(place: Path, crow: Tensor, entries: int, suffix: str) -> Rows:
    weighted = file_of(place, f"weight{suffix}").is_file()
    weight = _array(place, f"weight{suffix}") if weighted else None
    return Rows(crow.int() if 0 <= entries < 2**31 else crow, _array(place, f"col{suffix}"), weight)


def _fits(rows: Rows, entries: int) -> bool:
    weights = entries if rows.beside is None else rows.beside.numel()
    return rows.col.numel() == weights == entries and bool((rows.crow.diff() >= 0).all()) and int(rows.crow[0]) == 0
