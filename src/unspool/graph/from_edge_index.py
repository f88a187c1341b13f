"""Edge lists as graphs, made once per list: for users of PyTorch Geometric."""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np
import torch
from torch import Tensor

from unspool.graph.graph import Graph
from unspool.ops.change_detection import copies, unchanged

#: Graphs made from edge lists that are still alive, by the ids of the tensors: (references, what they held, graph).
_MADE: dict[tuple[Any, ...], tuple[tuple[Any, ...], tuple[Tensor, ...], Graph]] = {}


def graph_of(graph: Any, nodes: int, edge_weight: Any = None, dtype: torch.dtype | None = None) -> Graph:
    """A graph as it is; an ``edge_index`` normalised as GCN does, and remembered as long as the tensor lives.

    A list that was changed since, by whatever way, or is used with another number of nodes is read anew, so the answer is
    always that of the list at hand.

    Args:
        graph: a :class:`Graph`, or integers of shape (2, edges).
        nodes: how many nodes the signal has.
        edge_weight: one weight per edge, for an edge list.
        dtype: of the signal.

    Example:
        >>> import torch
        >>> edges = torch.tensor([[0, 1], [1, 0]])
        >>> graph_of(edges, 3) is graph_of(edges, 3)
        True
    """
    if isinstance(graph, Graph):
        if edge_weight is not None:
            raise TypeError("a Graph carries its own weights; give them to Graph.from_edges(edge_index, weights=...)")
        return graph
    if (
        not isinstance(graph, Tensor | np.ndarray | list | tuple)
        or getattr(graph, "layout", torch.strided) is not torch.strided
    ):
        kind = "a sparse tensor" if isinstance(graph, Tensor) else f"of type {type(graph).__name__}"
        raise TypeError(
            f"the graph is {kind}: expected a Graph (from_edges, from_pyg, from_scipy, from_networkx) or an edge_index of shape (2, edges)"
        )
    if not isinstance(graph, Tensor):
        return _read(graph, nodes, edge_weight, dtype)
    weighted = isinstance(edge_weight, Tensor)
    if edge_weight is not None and not weighted:
        return _read(graph, nodes, edge_weight, dtype)
    if weighted and edge_weight.requires_grad:
        raise TypeError("edge_weight requires gradients, but graphs hold fixed weights; detach it")
    parts = (graph, edge_weight) if weighted else (graph,)
    name = (*(id(p) for p in parts), nodes, dtype)
    known = _MADE.get(name)
    alive = known is not None and all(r() is p for r, p in zip(known[0], parts, strict=True))
    if known is not None and alive and unchanged(parts, known[1]):
        return known[2]
    with torch.inference_mode(False):  # what is remembered must be of use in training too
        kept = copies(parts)  # Trap: what is read is what is kept, even if the list changes meanwhile
        made = _read(kept[0], nodes, kept[1] if weighted else None, dtype)
    references = tuple(weakref.ref(p, lambda _: _MADE.pop(name, None)) for p in parts)
    _MADE[name] = (references, kept, made)
    return made


def _read(edges: Any, nodes: int, weights: Any, dtype: torch.dtype | None) -> Graph:
    made = Graph.from_edges(edges, nodes=nodes, weights=weights)
    return made if dtype is None else made.to(dtype)
