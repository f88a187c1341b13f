"""Missing entries of a signal: which there are, whether they can be filled in, and which may be hidden for a test."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse.csgraph
import torch
from torch import Tensor

from unspool.errors import DataError
from unspool.graph import Graph

Array = np.ndarray[Any, Any]


def observed(x: Tensor) -> Tensor | None:
    """True where an entry is a number; None if all are.

    Example:
        >>> import torch
        >>> observed(torch.tensor([[1.0], [float("nan")]])).tolist(), observed(torch.ones(2, 1))
        ([[True], [False]], None)
    """
    seen = ~torch.isnan(x)
    return None if bool(seen.all()) else seen


def components(graph: Graph) -> Array:
    """The number of every node's connected component."""
    return scipy.sparse.csgraph.connected_components(graph.to_scipy(), directed=False)[1]


def check_fillable(
    seen: Tensor, graph: Graph, columns: Sequence[str] | None = None, names: Sequence[Any] | None = None
) -> None:
    """Refuse signals with a component that has no value to fill it in from; columns and nodes are called by their names, where they have any."""
    names = graph.names if names is None else names
    of_node, there = components(graph), seen.numpy()
    for column in range(there.shape[1]):
        known = np.bincount(of_node, weights=there[:, column])
        if not (known == 0).any():
            continue
        lost = int(np.argmax(known[of_node] == 0))
        size = int((of_node == of_node[lost]).sum())
        called = column if columns is None else repr(columns[column])
        where = "" if there.shape[1] == 1 else f"column {called} of "
        node = f"node {lost if names is None else names[lost]}"
        what = f"{node}, which has no neighbours" if size == 1 else f"the {size} nodes that hang together with {node}"
        raise DataError(
            "", f"{where}the signal has no value at {what}, so there is nothing to fill it in from",
            "give one value there, or remove these nodes",
        )  # fmt: skip


def folds(seen: Tensor, graph: Graph, many: int, random: np.random.Generator) -> list[Tensor]:
    """The nodes with values in random parts of about equal size, each to be hidden once for a test.

    One node of every component stays in none of them for every column, so that something is left to fill in from.

    Returns:
        True at the nodes of a part, each of shape (nodes,); parts without nodes are left out.
    """
    of_node, there = components(graph), seen.numpy()
    order = random.permutation(np.flatnonzero(there.any(axis=1)))
    kept = np.zeros(len(there), dtype=bool)
    for column in range(there.shape[1]):
        with_value = order[there[order, column]]
        _, first = np.unique(of_node[with_value], return_index=True)
        kept[with_value[first]] = True
    parts = np.array_split(order[~kept[order]], many)
    return [torch.from_numpy(np.isin(np.arange(len(there)), part)) for part in parts if len(part)]
