"""Building a graph that is larger than the memory: edges go into buckets of rows, and every bucket is sorted by itself."""

from __future__ import annotations

import filecmp
import json
import os
import shutil
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch

from unspool.errors import DataError, InputError, mention
from unspool.files import Unsound, append, bring_down, cut, read_sealed, write_sealed
from unspool.graph.adjacency import assembled, degrees, diagonal_of
from unspool.graph.compress import Rows
from unspool.graph.edges import check_loops, notes_of, unsaid_of
from unspool.graph.folder import ARRAYS, GRAPH, write_card
from unspool.graph.merge import Distinct, distinct
from unspool.sealed_folder import PROGRESS, file_of

Array = np.ndarray[Any, Any]
#: Some edges: their sources, targets, and weights where there are any.
Chunk = tuple[Array, Array, Array | None]
#: Reads the edges from the first one on, in the same chunks every time.
Read = Callable[[], Iterable[Chunk]]

#: Bytes of memory that an entry takes while its bucket is sorted, and those that are needed whatever the graph.
PER_ENTRY, LEAST = 160, 128 << 20
#: Seconds between two notes of how far the edges are split; a build that goes on repeats no more.
EVERY = 5.0
#: 2⁸ rows are never parted.
SHIFT = 8


@dataclass(eq=False)
class Progress:
    """How far a build has come; written after every chunk and every bucket."""

    asked: dict[str, Any]
    nodes: int
    listed: int
    bounds: list[int]
    chunks: int = 0
    split: dict[str, list[int]] = field(default_factory=dict[str, list[int]])
    done: dict[str, int] = field(default_factory=dict[str, int])
    written: dict[str, int] = field(default_factory=dict[str, int])
    counts: dict[str, int] = field(default_factory=dict[str, int])


def build_graph(
    read: Read, folder: str | os.PathLike[str], *, memory: int, asked: dict[str, Any], nodes: int | None = None,
    directed: bool | None = None, loops: float = 1.0, weighted: bool = False, tell: Callable[[str], None] = lambda _: None,
) -> tuple[str, ...]:  # fmt: skip
    """Build a graph in a folder within a budget of memory; a build that was interrupted goes on where it was.

    Args:
        read: gives the edges in chunks of node ids.
        folder: where to.
        memory: bytes that may be used, beside the program itself.
        asked: what tells this build from another one: files with sizes and dates, options.
        nodes: how many nodes there are; the largest id tells when omitted.
        directed: as in :meth:`~unspool.Graph.from_edges`.
        loops: as there.
        weighted: whether chunks bring weights.
        tell: is told what is being done.

    Returns:
        What was done to the edges, as ``graph.notes``.
    """
    check_loops(loops)
    place = Path(folder)
    if (place / GRAPH.card).exists():
        raise DataError(
            str(place), "there is a graph already", f"choose another folder with {mention('path')}, or remove it"
        )
    with GRAPH.being_made(place, tell) as work:
        known = {**asked, "nodes": nodes, "directed": directed, "loops": loops, "memory": memory}
        state = _resumed(work, known)
        if state is None:
            state = _looked_through(read, known, nodes, memory, tell)
            _save(GRAPH.begin(place, ARRAYS, tell), state)
        both = directed is True
        for way in ("", "_t") if both else ("",):
            _split(read, work, state, way, both, weighted, tell)
            _sort(work, state, way, both, weighted, loops, tell)
        return _finished(place, work, state, directed, weighted)


def _looked_through(
    read: Read, known: dict[str, Any], nodes: int | None, memory: int, tell: Callable[[str], None]
) -> Progress:
    """Read all edges once: how many there are, between how many nodes, and how they are spread over the rows."""
    tell("reading the edges once to see how many there are")
    spread, listed, high = np.zeros(1, np.int64), 0, -1
    for source, target, _ in read():
        if not source.size:
            continue
        for ends in (source, target):
            high = max(high, int(ends.max()))
            if int(ends.min()) < 0:
                at = int(np.flatnonzero(ends < 0)[0])
                raise ValueError(f"edge {listed + at} names node {int(ends[at])}, but node ids count from 0")
            if nodes is not None and high >= nodes:
                at = int(np.flatnonzero(ends >= nodes)[0])
                raise ValueError(
                    f"edge {listed + at} names node {int(ends[at])}, but node ids run from 0 to {nodes - 1} (nodes={nodes})"
                )
            if high >= 2**31 - 1:
                raise ValueError(
                    f"an edge names node {high}: at most {2**31 - 1} nodes can be numbered; number those that occur from 0 on"
                )
            count = np.bincount(ends >> SHIFT)
            spread = np.pad(spread, (0, max(count.size - spread.size, 0)))
            spread[: count.size] += count
        listed += source.size
    nodes = high + 1 if nodes is None else nodes
    if nodes < 1:
        raise ValueError("the graph is empty: it needs at least one node (pass nodes=... to count isolated ones)")
    return Progress(known, nodes, listed, _bounds(spread, nodes, memory))


def _bounds(spread: Array, nodes: int, memory: int) -> list[int]:
    """Where buckets of rows begin, so that none takes more than the memory; the last bound is the number of nodes."""
    most = (memory - LEAST - 16 * nodes) // PER_ENTRY
    pieces = -(-nodes // (1 << SHIFT))
    spread = np.pad(spread, (0, max(pieces - spread.size, 0)))[:pieces] + (1 << SHIFT)
    if most < int(spread.max()):
        least = LEAST + 16 * nodes + PER_ENTRY * int(spread.max())
        raise InputError(
            "memory",
            f"{memory / 2**30:.3g}GB",
            f"at least {least / 2**30 + 0.0005:.3f}GB for this graph of {nodes} nodes",
        )
    bounds, filled = [0], 0
    for piece, count in enumerate(spread.tolist()):
        if filled and filled + count > most:
            bounds.append(piece << SHIFT)
            filled = 0
        filled += count
    return [*bounds, nodes]


def _split(
    read: Read, work: Path, state: Progress, way: str, directed: bool, weighted: bool, tell: Callable[[str], None]
) -> None:
    """Write every edge into the bucket of its row: once, or both ways where edges run so."""
    if way in state.done:
        return
    buckets = len(state.bounds) - 1
    sizes = state.split.get(way)
    if sizes is None or state.asked.get("way") != way:
        state.asked["way"], state.chunks, sizes = way, 0, [0] * buckets
    _cut_back(work, way, sizes, weighted)
    noted, touched = time.monotonic(), set[Path]()
    tell(f"sorting {state.listed:,} edges into {buckets} bucket{'s'[: buckets > 1]}")
    for number, (source, target, held) in enumerate(read()):
        if number < state.chunks:
            continue
        weight = held
        row, col = (source, target) if way else (target, source)
        keys = (row.astype(np.int64) << 32) | (col.astype(np.int64) << 1)
        if not directed:
            off = row != col
            back = (col[off].astype(np.int64) << 32) | (row[off].astype(np.int64) << 1) | 1
            weight = None if held is None else np.concatenate([held, held[off]])
            keys = np.concatenate([keys, back])
        bucket = np.searchsorted(np.array(state.bounds[1:-1], dtype=np.int64), keys >> 32, side="right")
        order = np.argsort(bucket, kind="stable")
        ends = np.cumsum(np.bincount(bucket, minlength=buckets))
        for b in np.flatnonzero(np.diff(ends, prepend=0)).tolist():
            mine = order[ends[b - 1] if b else 0 : ends[b]]
            values = (
                {"keys": keys[mine]}
                if weight is None
                else {"keys": keys[mine], "weights": weight[mine].astype(np.float64)}
            )
            for name, written in values.items():
                touched.add(work / f"{name}{way}-{b}")
                append(work / f"{name}{way}-{b}", written)
            sizes[b] += mine.size
        state.chunks, state.split[way] = number + 1, sizes
        if time.monotonic() - noted > EVERY:
            bring_down(touched)
            _save(work, state)
            noted = time.monotonic()
    bring_down(touched)
    state.done[way], state.split[way] = 0, sizes
    _save(work, state)


def _sort(
    work: Path, state: Progress, way: str, directed: bool, weighted: bool, loops: float, tell: Callable[[str], None]
) -> None:
    """Sort and merge bucket by bucket, and append its rows to the arrays."""
    names = [f"{name}{way}" for name in ("col", "count", "weight")] + ([] if way else ["degree"])
    for name in names:
        cut(work / name, state.written.get(name, 0))
    for b in range(state.done[way], len(state.bounds) - 1):
        tell(f"bucket {b + 1} of {len(state.bounds) - 1}")
        first, last = state.bounds[b], state.bounds[b + 1]
        found = _bucket(work, way, b, first, last, state.split[way][b], directed, weighted)
        diagonal, own = diagonal_of(found, loops)
        rows = assembled([found.rows], diagonal, own, first)
        arrays = {f"col{way}": rows.col, f"count{way}": rows.crow.diff()}
        if rows.beside is not None:
            arrays[f"weight{way}"] = rows.beside
        if not way:
            arrays["degree"] = degrees(rows, found.own, loops, first)
            for name in ("repeated", "single", "apart"):
                state.counts[name] = state.counts.get(name, 0) + getattr(found, name)
            state.counts["loops"] = state.counts.get("loops", 0) + int(diagonal.sum())
        for name, values in arrays.items():
            append(work / name, values.numpy())
            bring_down({work / name})
            state.written[name] = (work / name).stat().st_size
        state.done[way] = b + 1
        _save(work, state)
        for name in ("keys", "weights"):
            (work / f"{name}{way}-{b}").unlink(missing_ok=True)


def _bucket(work: Path, way: str, b: int, first: int, last: int, size: int, directed: bool, weighted: bool) -> Distinct:
    """The distinct entries of the rows of one bucket."""
    file = work / f"keys{way}-{b}"
    held = np.fromfile(file, np.int64) if file.exists() else np.empty(0, np.int64)
    if held.size != size:
        raise DataError(str(file), "it is not as it was written", f"remove the folder {work.parent} and build again")
    key, order = torch.sort(torch.from_numpy(held), stable=True)
    marks = torch.arange(first, last + 1, dtype=torch.int64) << 32
    side = (key & 1).to(torch.int8)
    crow, col = torch.searchsorted(key, marks), ((key & 0xFFFFFFFF) >> 1).int()
    back = torch.from_numpy((held & 1).astype(bool))
    del key
    if not weighted:
        return distinct(
            Rows(crow, col, None if directed else side), None, None if directed else back, first, not directed
        )
    file = work / f"weights{way}-{b}"
    weight = torch.from_numpy(np.fromfile(file) if file.exists() else np.empty(0))
    if weight.numel() != size:
        raise DataError(str(file), "it is not as it was written", f"remove the folder {work.parent} and build again")
    return distinct(Rows(crow, col, order), weight, None if directed else back, first, not directed)


def _finished(place: Path, work: Path, state: Progress, directed: bool | None, weighted: bool) -> tuple[str, ...]:
    """Put the arrays in place, and seal the folder last."""
    for way in ("", "_t") if directed else ("",):
        count = np.fromfile(work / f"count{way}", np.int64)
        crow = np.zeros(state.nodes + 1, np.int64)
        np.cumsum(count, out=crow[1:])
        (work / f"crow{way}").unlink(missing_ok=True)
        append(work / f"crow{way}", crow)
        bring_down({work / f"crow{way}"})
    if directed and all(_same(work / name, work / f"{name}_t") for name in ("crow", "col", "weight")):
        for name in ("crow_t", "col_t", "weight_t"):
            (work / name).unlink(missing_ok=True)
    for name in ("degree", "crow", "col", "weight", "crow_t", "col_t", "weight_t"):
        if (work / name).exists():
            os.replace(work / name, file_of(place, name))
    counted = Distinct(
        Rows(*[torch.empty(0)] * 3), torch.empty(0), None, *(state.counts[n] for n in ("repeated", "single", "apart"))
    )
    unsaid = unsaid_of(counted) if directed is None else None
    notes = (*notes_of(counted, weighted), *(() if unsaid is None else (unsaid,)))
    write_card(place, state.counts["loops"], notes)
    shutil.rmtree(work)
    return notes


def _save(work: Path, state: Progress) -> None:
    write_sealed(work / PROGRESS, lambda file: file.write(json.dumps(state.__dict__).encode()))


def _resumed(work: Path, known: dict[str, Any]) -> Progress | None:
    """How far a build of the same edges has come; None where there is none, or where what it left is of no use."""
    try:
        state = Progress(**json.loads(read_sealed(work / PROGRESS).read()))
    except (Unsound, ValueError, TypeError):
        return None
    asked = {name: value for name, value in state.asked.items() if name != "way"}
    return state if asked == json.loads(json.dumps(known)) else None


def _cut_back(work: Path, way: str, sizes: list[int], weighted: bool) -> None:
    """Take back what was written into the buckets after the last note of it."""
    for b, size in enumerate(sizes):
        cut(work / f"keys{way}-{b}", 8 * size)
        if weighted:
            cut(work / f"weights{way}-{b}", 8 * size)


def _same(one: Path, other: Path) -> bool:
    if one.exists() and other.exists():
        return filecmp.cmp(one, other, shallow=False)
    return one.exists() == other.exists()
