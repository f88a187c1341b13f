"""Reading what users have: edge lists checked, merged and completed before anything is computed with them."""

from __future__ import annotations

import inspect
import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

#: Two weights of one edge that differ by less than this share of the larger are the same weight.
ROUNDING = 1e-9


class EdgeDirectionWarning(UserWarning):
    """Edges are listed in one direction only, or weigh differently in the two, and nobody has said what is meant."""


@dataclass(frozen=True, eq=False)
class Edges:
    """Weighted entries of W, without repeats: ``weight[e]`` flows from node ``col[e]`` into node ``row[e]``.

    ``notes`` tell what was done to the list, ``unsaid`` what was decided about its direction because nobody had said it.
    """

    row: Tensor
    col: Tensor
    weight: Tensor
    nodes: int
    notes: tuple[str, ...] = ()
    unsaid: str | None = None

    @property
    def remarks(self) -> tuple[str, ...]:
        """Everything that the owner of the list should know."""
        return self.notes if self.unsaid is None else (*self.notes, self.unsaid)


def read_edge_index(edge_index: Any, nodes: int | None) -> tuple[Tensor, int]:
    """An int64 CPU tensor of shape (2, edges) with ids inside 0 ... nodes-1, or one clear sentence."""
    index = torch.as_tensor(np.asarray(edge_index) if isinstance(edge_index, (list, tuple)) else edge_index)
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
    index = index.detach().cpu().long()
    if nodes is None:
        nodes = int(index.max()) + 1 if index.numel() else 0
    nodes = int(nodes)
    if nodes < 1:
        raise ValueError("the graph is empty: it needs at least one node (pass nodes=... to count isolated ones)")
    outside = torch.nonzero((index < 0) | (index >= nodes))
    if outside.numel():
        side, edge = outside[0].tolist()
        raise ValueError(
            f"edge {edge} names node {int(index[side, edge])}, but node ids run from 0 to {nodes - 1} (nodes={nodes})"
        )
    return index, nodes


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


def merge(index: Tensor, weight: Tensor | None, nodes: int) -> Edges:
    """Merge repeated edges; each keeps its direction.

    A repeated edge counts once when the list is unweighted; given weights are added, and edges of weight zero dropped.
    """
    source, target = index
    key = target * nodes + source
    unique, place, count = torch.unique(key, return_inverse=True, return_counts=True)
    repeated = int((count > 1).sum())
    notes: tuple[str, ...] = ()
    if weight is None:
        merged = torch.ones(unique.numel(), dtype=torch.float64)
    else:
        merged = torch.zeros(unique.numel(), dtype=torch.float64).index_add_(0, place, weight)
    if weight is not None:  # a weight of zero is no edge
        unique, merged = unique[merged > 0], merged[merged > 0]
    if repeated:
        how = "kept once" if weight is None else "their weights added"
        notes = (f"{repeated} edge{'s' if repeated > 1 else ''} listed more than once: {how}",)
    return Edges(unique // nodes, unique % nodes, merged, nodes, notes)


def settle(edges: Edges, directed: bool | None) -> Edges:
    """Which way edges run, by the one rule for all inputs: both ways, unless ``directed`` is true.

    The larger weight of the two directions counts, so a list that holds both stays as it is. Where that changes something and
    nobody has said whether the graph is directed, ``unsaid`` tells it.

    Example:
        >>> listed = merge(torch.tensor([[0, 1], [1, 2]]), None, 3)
        >>> settle(listed, None).unsaid
        '2 edges are listed in one direction only and run both ways, as the graph is not said to be directed'
        >>> settle(listed, False).row.numel(), settle(listed, True).row.numel()
        (4, 2)
    """
    if directed:
        return edges
    key, mirrored = edges.row * edges.nodes + edges.col, edges.col * edges.nodes + edges.row
    unique, place = torch.unique(torch.cat([key, mirrored]), return_inverse=True)
    larger = torch.zeros(unique.numel(), dtype=torch.float64)
    weight = larger.scatter_reduce(0, place, edges.weight.repeat(2), reduce="amax")
    unsaid = _one_sided(edges) if directed is None else None
    return Edges(unique // edges.nodes, unique % edges.nodes, weight, edges.nodes, edges.notes, unsaid)


def _one_sided(edges: Edges) -> str | None:
    """How the two directions of edges differ, in a sentence; None where they do not."""
    key, mirrored = edges.row * edges.nodes + edges.col, edges.col * edges.nodes + edges.row
    reason = "as the graph is not said to be directed"
    single = int((~torch.isin(mirrored, key, assume_unique=True)).sum())
    if single:
        are, run = ("edge is", "runs") if single == 1 else ("edges are", "run")
        return f"{single} {are} listed in one direction only and {run} both ways, {reason}"
    there, back = edges.weight[key.argsort()], edges.weight[mirrored.argsort()]
    apart = int(((there - back).abs() > ROUNDING * torch.maximum(there, back)).sum()) // 2
    if apart:
        weigh = "edge weighs" if apart == 1 else "edges weigh"
        return f"{apart} {weigh} differently in the two directions and the larger weight counts, {reason}"
    return None


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


def add_loops(edges: Edges, loops: float) -> Edges:
    """Give every node without a self-loop one of weight ``loops``; loops already in the data keep their weight."""
    if loops < 0 or not np.isfinite(loops):
        raise ValueError(f"loops={loops}: the weight of self-loops is a finite number of at least 0 (0 for none)")
    if loops == 0:
        return edges
    bare = torch.ones(edges.nodes, dtype=torch.bool)
    bare[edges.row[edges.row == edges.col]] = False
    extra = torch.nonzero(bare).flatten()
    weight = torch.cat([edges.weight, torch.full((extra.numel(),), float(loops), dtype=torch.float64)])
    row, col = torch.cat([edges.row, extra]), torch.cat([edges.col, extra])
    return replace(edges, row=row, col=col, weight=weight)
