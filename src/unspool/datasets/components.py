"""Connected components of a graph, both directions of an edge counting alike."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse
import scipy.sparse.csgraph
import torch

from unspool.graph.edges import listed_once
from unspool.graph.merge import merged
from unspool.ops.operator import row_of_entry

Array = np.ndarray[Any, Any]


def largest_component(edge_index: Array, nodes: int) -> Array:
    """Ids of the nodes in the largest connected component, ascending; the first such component where several are equal.

    Example:
        >>> import numpy as np
        >>> largest_component(np.array([[0, 3, 4], [1, 4, 5]]), nodes=6).tolist()
        [3, 4, 5]
    """
    ones = np.ones(edge_index.shape[1], dtype=np.int8)
    matrix = scipy.sparse.coo_array((ones, (edge_index[0], edge_index[1])), shape=(nodes, nodes))
    _, of_node = scipy.sparse.csgraph.connected_components(matrix, directed=False)
    return np.flatnonzero(of_node == np.argmax(np.bincount(of_node)))


def distinct_edges(edge_index: Array, nodes: int) -> Array:
    """Every edge once, whichever way it runs, without self-loops: shape (2, edges), smaller id above.

    Example:
        >>> import numpy as np
        >>> distinct_edges(np.array([[0, 1, 2, 0], [1, 0, 2, 2]]), nodes=3).tolist()
        [[0, 0], [1, 2]]
    """
    rows = merged(_tensor(edge_index), None, nodes, directed=False).rows
    return torch.stack([row_of_entry(rows.crow), rows.col.long()]).numpy()


def sorted_edges(edge_index: Array, nodes: int) -> Array:
    """Every directed edge once, by source and then target: one order for one graph, whatever order its file has.

    Example:
        >>> import numpy as np
        >>> sorted_edges(np.array([[1, 0, 1], [0, 1, 0]]), nodes=2).tolist()
        [[0, 1], [1, 0]]
    """
    return listed_once(_tensor(edge_index), None, nodes).edges.numpy()


def _tensor(edge_index: Array) -> torch.Tensor:
    """The same as a tensor; arrays that cannot be written to are copied, as torch warns about them."""
    index = edge_index.astype(np.int64, copy=False)
    return torch.from_numpy(index if index.flags.writeable else index.copy())
