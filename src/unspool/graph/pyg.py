"""What a graph needs of the objects of PyTorch Geometric and NetworkX, which are read by their attributes and never imported."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np
from torch import Tensor

from unspool.errors import DataError, IncompatibleError


def pyg_edges(data: Any, weight_column: int | None = None) -> tuple[Any, Any]:
    """``edge_index`` and the weights of a ``Data`` object: ``edge_weight``, else the one column of ``edge_attr``; None where there are none.

    Several columns of ``edge_attr`` are refused unless ``weight_column`` chooses one: which is the weight cannot be seen.

    Example:
        >>> import torch
        >>> from types import SimpleNamespace
        >>> data = SimpleNamespace(edge_index=torch.tensor([[0], [1]]), edge_attr=torch.tensor([[2.0, 5.0]]))
        >>> pyg_edges(data, weight_column=1)[1]
        tensor([5.])
        >>> pyg_edges(data)
        Traceback (most recent call last):
            ...
        unspool.errors.DataError: edge_attr: it has 2 columns, and it is not clear which is the weight; ...
    """
    if hasattr(data, "node_types") and hasattr(data, "edge_types"):
        raise IncompatibleError(
            f"this is a HeteroData with {len(data.node_types)} kinds of nodes and {len(data.edge_types)} of edges, and graphs here have one of "
            "each; give data.to_homogeneous(), or one kind of edges between nodes of one kind"
        )
    index = getattr(data, "edge_index", None)
    if index is None:
        raise ValueError("data has no edge_index; pass its adjacency matrix to from_scipy instead")
    return index, _weights(getattr(data, "edge_weight", None), getattr(data, "edge_attr", None), weight_column)


def network_edges(network: Any, weight: str) -> tuple[tuple[Hashable, ...], Any, list[float]]:
    """The names of a network's nodes, its edges as places among them, and their weights, 1 where they have none."""
    names = tuple(network.nodes())
    place = {name: i for i, name in enumerate(names)}
    pairs = [(place[u], place[v], float(data.get(weight, 1.0))) for u, v, data in network.edges(data=True)]
    index = np.array([[u for u, _, _ in pairs], [v for _, v, _ in pairs]], dtype=np.int64)
    return names, index, [w for _, _, w in pairs]


def _weights(weight: Any, attribute: Any, chosen: int | None) -> Any:
    columns = attribute.reshape(attribute.shape[0], -1) if isinstance(attribute, Tensor) and attribute.ndim else None
    if chosen is not None:
        if columns is None or not 0 <= chosen < columns.shape[1]:
            have = "is not there" if columns is None else f"has {columns.shape[1]} columns, which count from 0"
            raise DataError("edge_attr", f"column {chosen} was asked for, and it {have}", "name another, or none")
        return columns[:, chosen]
    if weight is not None or columns is None or columns.shape[1] == 0:
        return weight
    if columns.shape[1] > 1:
        raise DataError(
            "edge_attr",
            f"it has {columns.shape[1]} columns, and it is not clear which is the weight",
            "set data.edge_weight to one of them, or data.edge_attr = None to leave them out",
        )
    return columns[:, 0]
