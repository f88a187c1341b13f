"""Reading what users have: edge lists checked, merged and completed before anything is computed with them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor


@dataclass(frozen=True, eq=False)
class Edges:
    """Weighted entries of W, without repeats: ``weight[e]`` flows from node ``col[e]`` into node ``row[e]``."""

    row: Tensor
    col: Tensor
    weight: Tensor
    nodes: int
    notes: tuple[str, ...] = ()


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


def merge(index: Tensor, weight: Tensor | None, nodes: int, symmetrise: bool) -> Edges:
    """Merge repeated edges and, on request, let every edge run both ways.

    A repeated edge counts once when the list is unweighted; given weights are added, and edges of weight zero dropped. Symmetrising takes the larger
    weight of the two directions, so that a list holding both directions stays as it is.
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
    row, col = unique // nodes, unique % nodes
    if symmetrise:
        both = torch.cat([unique, col * nodes + row])
        unique, place = torch.unique(both, return_inverse=True)
        larger = torch.zeros(unique.numel(), dtype=torch.float64)
        merged = larger.scatter_reduce(0, place, merged.repeat(2), reduce="amax")
        row, col = unique // nodes, unique % nodes
    return Edges(row, col, merged, nodes, notes)


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
    return Edges(torch.cat([edges.row, extra]), torch.cat([edges.col, extra]), weight, edges.nodes, edges.notes)
