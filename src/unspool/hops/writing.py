"""Writing Aᵏ X: slab by slab of columns through the graph, then put together row by row."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from unspool.errors import DataError, InputError, mention
from unspool.files import Unsound, append, bring_down, cut, read_sealed, write_sealed, write_whole
from unspool.graph import Graph
from unspool.graph.pattern import walk_on
from unspool.graph.subgraph import read_nodes
from unspool.hops.budget import check_space, slabs_of
from unspool.hops.columns import Columns, columns_of
from unspool.hops.facts import NodeFacts
from unspool.hops.folder import FACTS, HOPS, KINDS, NODES, STORED, about_graph, read_folder
from unspool.ops.stored_hops import StoredHops
from unspool.sealed_folder import PROGRESS, file_of
from unspool.settings.kinds import Mismatch, Real, Whole

Array = np.ndarray[Any, Any]

#: Seconds between two notes of how far the file is put together.
EVERY = 5.0
#: Bytes of rows that are handled together.
PIECE = 32 << 20
#: What is written where nothing is said.
MEMORY = 2 << 30
#: Seconds between two lines about hops of a slab.
PAUSE = 2.0


@dataclass(eq=False)
class Progress:
    """How far the writing has come; noted after every slab, and now and then while the file is put together."""

    asked: dict[str, Any]
    slabs: int = 0
    rows: int = 0


@dataclass(frozen=True, eq=False)
class Plan:
    """What is to be written.

    Attributes:
        graph, columns, depth: Aᵏ of what, up to which k.
        dtype: of the signals, and of what is stored.
        nodes: at which nodes; None for all.
        slabs: the columns that go through the graph together.
        tell: is told what is being done.
    """

    graph: Graph
    columns: Columns
    depth: int
    dtype: torch.dtype
    nodes: Tensor | None
    slabs: list[tuple[int, int]]
    tell: Callable[[str], None]
    kind: np.dtype[Any] = field(init=False)

    def __post_init__(self) -> None:
        kind = next(name for name, dtype in KINDS.items() if dtype is self.dtype)
        object.__setattr__(self, "kind", np.dtype(kind))

    @property
    def rows(self) -> int:
        """How many nodes are stored."""
        return self.graph.nodes if self.nodes is None else int(self.nodes.numel())

    @property
    def row(self) -> int:
        """Bytes of a row."""
        return (self.depth + 1) * self.columns.shape[1] * self.kind.itemsize


def write(
    graph: Graph, x: Any, depth: int, out: str | os.PathLike[str], *, nodes: Any = None, memory: int = MEMORY,
    facts: NodeFacts | None = None, dtype: torch.dtype | None = None, feature_columns: Sequence[str] | None = None,
    drop_columns: Sequence[str] = (), tell: Callable[[str], None] = lambda _: None,
) -> StoredHops:  # fmt: skip
    """Write Aᵏ X, k = 0 ... K, for some nodes of a graph into a folder, within a budget of memory.

    Columns are independent of each other, so they go through the graph in slabs: as many together as fit, all hops of a slab at a time. A is
    never there as a whole; the numbers are those of ``graph @ x`` again and again, in the type of the graph, to the bit where torch
    multiplies by MKL. The file is put together row by row afterwards, so that a node has its hops in one place. What was interrupted goes on
    behind the last slab, and a folder counts when all of it is written.

    Args:
        graph: the graph, in memory or opened from a folder.
        x: features of all nodes: a ``.npy`` file, which is mapped, another file that holds features, an array, a tensor, sparse features, or
            columns that are made as they are asked for (:class:`~unspool.hops.Columns`).
        depth: K.
        out: the folder.
        nodes: ids of the nodes whose hops are kept, each once, in this order; all when omitted.
        memory: bytes that arrays may take where the graph lives, beside what the caller holds.
        facts: what is known of the nodes of the graph: labels, a split, names.
        dtype: of the signals and of what is stored, that of the graph when omitted; ``torch.bfloat16`` takes half of it, on graphs without
            weights, with sums in float32.
        feature_columns, drop_columns: columns to take and to leave out, where ``x`` is a file with a table.
        tell: is told what is being done.

    Example:
        >>> import tempfile, torch, unspool as us
        >>> graph, x = us.graph.grid(4, 5), torch.randn(20, 3)
        >>> write(graph, x, depth=2, out=tempfile.mkdtemp() + "/hops", nodes=[3, 7])
        StoredHops(rows=2, features=3, depth=2, float32, cpu)
    """
    try:
        depth = Whole(1).accept(depth)
    except Mismatch:
        raise InputError("depth", depth, Whole(1).expected) from None
    _check(graph, facts, memory)
    columns = columns_of(x, feature_columns, drop_columns)
    chosen = None if nodes is None else read_nodes(nodes, graph.nodes)
    if columns.shape[0] != graph.nodes:
        raise InputError("features", columns.shape[0], f"a row for each of the {graph.nodes} nodes of the graph")
    known = facts if facts is None or chosen is None else facts.at(chosen)
    kind = _checked_type(dtype, graph)
    slabs = slabs_of(graph, columns.shape[1], graph.nodes if chosen is None else int(chosen.numel()), memory, kind)
    plan = Plan(graph, columns, depth, kind, chosen, slabs, tell)
    place = Path(out)
    if (place / HOPS.card).exists():
        raise DataError(
            str(place), "there are hops already", f"choose another folder with {mention('path')}, or remove it"
        )
    with HOPS.being_made(place, tell) as work, torch.no_grad():
        state = _begun(place, work, plan)
        check_space(place, plan.rows * plan.row, sum(file.stat().st_size for file in work.iterdir()))
        try:
            _write_slabs(plan, work, state)
        except InputError:  # of the features: corrected ones are others
            (work / PROGRESS).unlink(missing_ok=True)
            raise
        _put_together(plan, place, work, state)
        _finish(plan, place, work, known)
    return read_folder(place, check=False)


def _check(graph: Any, facts: Any, memory: Any) -> None:
    """Refuse what is not meant for these arguments, and facts of other nodes."""
    if not isinstance(graph, Graph):
        raise InputError("graph", type(graph).__name__, "a us.Graph", "open a folder with us.Graph.open")
    if facts is not None and not isinstance(facts, NodeFacts):
        raise InputError(
            "facts", type(facts).__name__, "us.hops.NodeFacts", "make them with NodeFacts.read or NodeFacts.of"
        )
    if facts is not None and facts.labels.numel() != graph.nodes:
        raise InputError(
            "facts", f"those of {facts.labels.numel()} nodes", f"those of the {graph.nodes} nodes of the graph"
        )
    try:
        Real().accept(memory)
    except Mismatch:
        raise InputError("memory", memory, "a number of bytes, such as 2 << 30") from None


def _checked_type(given: torch.dtype | None, graph: Graph) -> torch.dtype:
    if given is None or given in (torch.bfloat16, graph.dtype):
        return graph.dtype if given is None else given
    short = str(graph.dtype).removeprefix("torch.")
    raise InputError("dtype", str(given), f"torch.{short}, as the graph has, or torch.bfloat16")


def _begun(place: Path, work: Path, plan: Plan) -> Progress:
    """How far unfinished work has come: nowhere, where it was other work. Nothing is noted before there is something to go on with."""
    asked = json.loads(json.dumps({
        "graph": [about_graph(plan.graph), _mark(plan.graph)], "features": plan.columns.mark, "depth": plan.depth, "slabs": plan.slabs,
        "dtype": plan.kind.str, "nodes": None if plan.nodes is None else hashlib.sha256(plan.nodes.numpy().data).hexdigest(),
    }))  # fmt: skip
    try:
        state = Progress(**json.loads(read_sealed(work / PROGRESS).read()))
    except (Unsound, ValueError, TypeError):
        state = None
    if state is None or state.asked != asked:
        HOPS.begin(place, (STORED, NODES, FACTS), plan.tell)
        state = Progress(asked)
    return state


def _mark(graph: Graph) -> str:
    """A name for the matrix A of a graph, which is read once."""
    w, made = graph.adjacency.forward, graph._entries  # pyright: ignore[reportPrivateUsage]
    parts = [w.crow, w.col, w.beside, graph.degree, None if made is None else made.forward.val]
    held = hashlib.sha256()
    for part in parts:
        if part is None:
            held.update(b"none;")
            continue
        held.update(f"{part.dtype} {part.numel()};".encode())
        for piece in part.split(1 << 22):
            held.update(piece.detach().cpu().contiguous().numpy().data)
    return held.hexdigest()


def _write_slabs(plan: Plan, work: Path, state: Progress) -> None:
    """All hops of one slab after the other, each in a file of its own: (rows, columns of the slab)."""
    if state.slabs == len(plan.slabs):
        return
    graph, began = plan.graph, time.monotonic()
    walk, first_done = walk_on(graph, plan.dtype), state.slabs
    widest, said = _widest(plan), began
    room = [torch.empty(graph.nodes * widest, dtype=plan.dtype, device=graph.device) for _ in range(2)]
    for number in range(state.slabs, len(plan.slabs)):
        first, last = plan.slabs[number]
        y, other = (one[: graph.nodes * (last - first)].view(graph.nodes, -1) for one in room)
        left = (time.monotonic() - began) / max(number - first_done, 1) * (len(plan.slabs) - number)
        about = f", about {left:.0f} s left" if number > first_done else ""
        plan.tell(f"slab {number + 1} of {len(plan.slabs)}: features {first} to {last - 1}{about}")
        plan.columns.read(first, y)
        files = {work / f"slab{number}-hop{hop}" for hop in range(plan.depth + 1)}
        _write_signal(work / f"slab{number}-hop0", plan, y.__getitem__)
        walk.begin(y)
        for hop in range(1, plan.depth + 1):
            if time.monotonic() - said > PAUSE:
                plan.tell(f"slab {number + 1} of {len(plan.slabs)}, hop {hop} of {plan.depth}")
                said = time.monotonic()
            walk.step(y, other)
            y, other = other, y
            _write_signal(work / f"slab{number}-hop{hop}", plan, partial(walk.signal, y))
        bring_down(files)
        state.slabs = number + 1
        _save(work, state)


def _write_signal(file: Path, plan: Plan, at: Callable[[Tensor | slice], Tensor]) -> None:
    """The wanted rows of a signal, some at a time."""
    file.unlink(missing_ok=True)  # of a slab that was not finished
    many, device = max(PIECE // max(_widest(plan) * plan.kind.itemsize, 1), 1), plan.graph.device
    for first in range(0, plan.rows, many):
        rows = slice(first, min(first + many, plan.rows))
        held = at(rows if plan.nodes is None else plan.nodes[rows].to(device)).contiguous().cpu()
        append(file, (held.view(torch.int16) if held.dtype is torch.bfloat16 else held).numpy())


def _widest(plan: Plan) -> int:
    return max(last - first for first, last in plan.slabs)


def _put_together(plan: Plan, place: Path, work: Path, state: Progress) -> None:
    """The rows: of every node all hops, of every hop all features."""
    target, row, many = work / STORED, plan.row, plan.depth + 1
    if state.rows == plan.rows:
        return
    cut(target, state.rows * row)
    plan.tell(f"putting {plan.rows:,} rows together")
    noted, rows = time.monotonic(), max(PIECE // row, 1)
    while state.rows < plan.rows:
        first, last = state.rows, min(state.rows + rows, plan.rows)
        block = np.empty((last - first, many, plan.columns.shape[1]), plan.kind)
        for number, (start, stop) in enumerate(plan.slabs):
            for hop in range(many):
                block[:, hop, start:stop] = _piece(plan, work / f"slab{number}-hop{hop}", first, last, stop - start)
        append(target, block)
        state.rows = last
        if time.monotonic() - noted > EVERY:
            bring_down({target})
            _save(work, state)
            noted = time.monotonic()
    bring_down({target})
    _save(work, state)


def _piece(plan: Plan, file: Path, first: int, last: int, width: int) -> Array:
    """Some rows of one hop of one slab."""
    whole = plan.rows * width * plan.kind.itemsize
    if not file.is_file() or file.stat().st_size != whole:
        raise DataError(str(file), "it is not as it was written", f"remove the folder {file.parent} and write again")
    found = np.fromfile(file, plan.kind, (last - first) * width, offset=first * width * plan.kind.itemsize)
    return found.reshape(last - first, width)


def _finish(plan: Plan, place: Path, work: Path, facts: NodeFacts | None) -> None:
    """Put the files in place, and seal the folder last."""
    names = [STORED]
    if (work / STORED).exists():  # else it is in place already
        os.replace(work / STORED, file_of(place, STORED))
    if plan.nodes is not None:
        write_whole(file_of(place, NODES), lambda file: file.write(plan.nodes.numpy().astype("<i8")))  # pyright: ignore
        names.append(NODES)
    if facts is not None:
        write_whole(file_of(place, FACTS), lambda file: file.write(facts.packed()))
        names.append(FACTS)
    plan.tell("adding up checksums")
    shape = [plan.rows, plan.depth + 1, plan.columns.shape[1]]
    HOPS.seal(place, names, shape=shape, dtype=plan.kind.str, graph=about_graph(plan.graph))
    shutil.rmtree(work)


def _save(work: Path, state: Progress) -> None:
    write_sealed(work / PROGRESS, lambda file: file.write(json.dumps(state.__dict__).encode()))
