"""Connected components of a graph, both directions of an edge counting alike."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse
import scipy.sparse.csgraph

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
    low, high = edge_index.min(axis=0), edge_index.max(axis=0)
    off = low != high
    keys = np.unique(low[off].astype(np.int64) * nodes + high[off])
    return np.stack([keys // nodes, keys % nodes])


def sorted_edges(edge_index: Array, nodes: int) -> Array:
    """Every directed edge once, by source and then target: one order for one graph, whatever order its file has.

    Example:
        >>> import numpy as np
        >>> sorted_edges(np.array([[1, 0, 1], [0, 1, 0]]), nodes=2).tolist()
        [[0, 1], [1, 0]]
    """
    keys = np.unique(edge_index[0].astype(np.int64) * nodes + edge_index[1])
    return np.stack([keys // nodes, keys % nodes])
