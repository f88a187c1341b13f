"""Reading what users have: edge lists checked, merged and completed before anything is computed with them."""

from __future__ import annotations

import inspect
import warnings
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from unspool.errors import IncompatibleError, InputError
from unspool.graph.adjacency import assembled
from unspool.graph.merge import Distinct, merged
from unspool.ops.operator import row_of_entry
from unspool.settings.kinds import Mismatch, Real

#: Nodes are numbered in 32 bits.
MOST_NODES = 2**31 - 1


class EdgeDirectionWarning(UserWarning):
    """Edges are listed in one direction only, or weigh differently in the two, and nobody has said what is meant."""


def read_edge_index(edge_index: Any, nodes: int | None) -> tuple[Tensor, int]:
    """A tensor of whole numbers of shape (2, edges) inside 0 ... nodes-1, where it lies, or one clear sentence."""
    try:
        index = torch.as_tensor(np.asarray(edge_index) if isinstance(edge_index, (list, tuple)) else edge_index)
    except IncompatibleError:  # data without edges say so
        raise
    except (RuntimeError, ValueError, TypeError):
        expected = "integers of shape (2, edges), sources above targets"
        raise InputError("edge_index", type(edge_index).__name__, expected) from None
    if index.numel() == 0 and index.ndim <= 2:
        index = index.reshape(2, 0).long()
    if index.ndim != 2 or index.shape[0] != 2:
        raise ValueError(
            f"edge_index has shape {tuple(index.shape)}: expected (2, edges), sources above targets; pass edge_index.T for a list of pairs"
        )
    if index.is_floating_point() or index.dtype is torch.bool or index.is_complex():
        raise TypeError(
            f"edge_index holds {str(index.dtype).removeprefix('torch.')}: node ids are integers; call edge_index.long()"
        )
    index = index.detach()
    index = index if index.dtype in (torch.int32, torch.int64) else index.long()
    low, high = _ends(index)
    nodes = int(high + 1 if nodes is None else nodes)
    if nodes < 1:
        raise ValueError("the graph is empty: it needs at least one node (pass nodes=... to count isolated ones)")
    if low < 0 or high >= nodes:
        side, edge = torch.nonzero((index < 0) | (index >= nodes))[0].tolist()
        raise ValueError(
            f"edge {edge} names node {int(index[side, edge])}, but node ids run from 0 to {nodes - 1} (nodes={nodes})"
        )
    if nodes > MOST_NODES:
        raise ValueError(
            f"a graph of {nodes} nodes: at most {MOST_NODES} can be numbered; number those that occur from 0 on"
        )
    return index, nodes


def _ends(index: Tensor) -> tuple[int, int]:
    """The smallest and the largest id; a GPU looks at 2³¹ numbers at most together."""
    ends = [part.aminmax() for side in index for part in side.split(1 << 28) if part.numel()]
    if not ends:
        return 0, -1
    return min(int(end.min) for end in ends), max(int(end.max) for end in ends)


def read_weights(weights: Any, edges: int) -> Tensor:
    """A float64 CPU tensor of shape (edges,) with finite, non-negative numbers, or one clear sentence."""
    weight = (
        torch.as_tensor(np.asarray(weights, dtype=float) if isinstance(weights, list | tuple) else weights)
        .detach()
        .cpu()
    )
    if weight.ndim == 2 and weight.shape[1] == 1:
        weight = weight[:, 0]
    if weight.shape != (edges,):
        raise ValueError(f"weights has shape {tuple(weight.shape)}, but there are {edges} edges: expected ({edges},)")
    if weight.is_complex():
        raise TypeError("weights are complex: edge weights are real numbers")
    weight = weight.double()
    bad = torch.nonzero(~torch.isfinite(weight))
    if bad.numel():
        raise ValueError(
            f"the weight of edge {int(bad[0])} is {float(weight[bad[0]])}: weights must be finite; drop the edge or repair its weight"
        )
    bad = torch.nonzero(weight < 0)
    if bad.numel():
        raise ValueError(
            f"the weight of edge {int(bad[0])} is {float(weight[bad[0]]):g}: weights must not be negative; "
            "for dissimilar neighbours give signed weights to EdgeSmoothness instead"
        )
    return weight


def notes_of(found: Distinct, weighted: bool) -> tuple[str, ...]:
    """What merging did to a list, in sentences."""
    if not found.repeated:
        return ()
    how = "their weights added" if weighted else "kept once"
    return (f"{found.repeated} edge{'s' if found.repeated > 1 else ''} listed more than once: {how}",)


def unsaid_of(found: Distinct) -> str | None:
    """How the two directions of edges differ, in a sentence for a list of which nobody has said what is meant; None where they do not.

    Example:
        >>> import torch
        >>> from unspool.graph.merge import merged
        >>> unsaid_of(merged(torch.tensor([[0, 1], [1, 2]]), None, 3, directed=False))
        '2 edges are listed in one direction only and run both ways, as the graph is not said to be directed'
    """
    reason = "as the graph is not said to be directed"
    if found.single:
        are, run = ("edge is", "runs") if found.single == 1 else ("edges are", "run")
        return f"{found.single} {are} listed in one direction only and {run} both ways, {reason}"
    if found.apart:
        weigh = "edge weighs" if found.apart == 1 else "edges weigh"
        return f"{found.apart} {weigh} differently in the two directions and the larger weight counts, {reason}"
    return None


class Listed(NamedTuple):
    """Edges as they are listed, without repeats, by source and then target, and what was done to them."""

    edges: Tensor
    weight: Tensor | None
    notes: tuple[str, ...]


def listed_once(index: Tensor, weight: Tensor | None, nodes: int) -> Listed:
    """A checked list of edges without repeats, each in its direction: int64 of shape (2, edges).

    Example:
        >>> import torch
        >>> listed_once(torch.tensor([[1, 0, 1], [0, 1, 0]]), None, 2).edges
        tensor([[0, 1],
                [1, 0]])
    """
    found = merged(index.flip(0), weight, nodes, directed=True)
    own = None if found.own_weight is None else found.own_weight
    crow, col, beside = assembled([found.rows], found.own, own)
    return Listed(torch.stack([row_of_entry(crow), col.long()]), beside, notes_of(found, weight is not None))


def tell(notes: tuple[str, ...], unsaid: str | None) -> None:
    """Warn of what was done to a list of edges and decided about its direction, at the line of the caller's own code."""
    for note in notes:
        warnings.warn(note, stacklevel=callers_level())
    if unsaid is not None:
        way = "give directed=True to keep the direction, or directed=False to say that both are meant"
        warnings.warn(f"{unsaid}; {way}", EdgeDirectionWarning, stacklevel=callers_level())


def callers_level() -> int:
    """How many frames up the first one lies that is not of this package."""
    level, frame = 1, inspect.currentframe()
    while frame is not None and str(frame.f_globals.get("__name__", "")).partition(".")[0] == "unspool":
        level, frame = level + 1, frame.f_back
    return level - 1


def check_loops(loops: float) -> None:
    """Refuse a weight of self-loops that is none; False is 0, True is 1."""
    try:
        Real(0).accept(float(loops) if isinstance(loops, bool) else loops)
    except Mismatch:
        raise InputError(
            "loops", loops, "a finite number of at least 0, the weight of self-loops (0 for none)"
        ) from None
