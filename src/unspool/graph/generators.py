"""Small graphs with known spectra, and a sensor network to play with.

All take the keyword arguments of :meth:`~unspool.graph.Graph.from_edges`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from unspool.graph.graph import Graph


def path(nodes: int, **how: Any) -> Graph:
    """A line of nodes. Without loops and normalisation L has the eigenvalues 2 − 2 cos(πk/n).

    Example:
        >>> path(4).edges
        3
    """
    return _undirected(torch.stack([torch.arange(nodes - 1), torch.arange(1, nodes)]), nodes, how)


def ring(nodes: int, **how: Any) -> Graph:
    """A circle of at least three nodes. With loops, A has the eigenvalues (1 + 2 cos(2πk/n)) / 3.

    Example:
        >>> ring(5).edges
        5
    """
    if nodes < 3:
        raise ValueError(f"a ring needs at least 3 nodes, not {nodes}; use path({nodes})")
    here = torch.arange(nodes)
    return _undirected(torch.stack([here, (here + 1) % nodes]), nodes, how)


def complete(nodes: int, **how: Any) -> Graph:
    """Everyone knows everyone. Without loops L has the eigenvalues 0 and n/(n − 1) (n − 1 times).

    Example:
        >>> complete(4).edges
        6
    """
    return _undirected(torch.triu_indices(nodes, nodes, offset=1), nodes, how)


def star(nodes: int, **how: Any) -> Graph:
    """Node 0 knows everyone. Without loops L has the eigenvalues 0, 1 (n − 2 times) and 2.

    Example:
        >>> star(4).edges
        3
    """
    leaves = torch.arange(1, nodes)
    return _undirected(torch.stack([torch.zeros_like(leaves), leaves]), nodes, how)


def grid(rows: int, cols: int, **how: Any) -> Graph:
    """A rectangle of ``rows`` × ``cols`` nodes, numbered row by row, each joined to its neighbours.

    Example:
        >>> grid(2, 3).edges
        7
    """
    place = torch.arange(rows * cols).view(rows, cols)
    across = torch.stack([place[:, :-1].flatten(), place[:, 1:].flatten()])
    down = torch.stack([place[:-1].flatten(), place[1:].flatten()])
    return _undirected(torch.cat([across, down], dim=1), rows * cols, how)


def sensor(nodes: int, neighbours: int = 6, seed: int = 0, **how: Any) -> tuple[Graph, Tensor]:
    """Sensors scattered over the unit square, each joined to its nearest ones; returns the graph and the positions.

    Example:
        >>> graph, positions = sensor(50)
        >>> positions.shape
        torch.Size([50, 2])
    """
    from scipy.spatial import KDTree

    if nodes <= neighbours:
        raise ValueError(f"{nodes} sensors cannot each have {neighbours} neighbours; ask for fewer neighbours")
    positions = np.random.default_rng(seed).random((nodes, 2))
    distance, nearest = (np.asarray(a) for a in KDTree(positions).query(positions, k=neighbours + 1))
    source = np.repeat(np.arange(nodes), neighbours)
    width = float(distance[:, 1:].mean())
    weights = np.exp(-((distance[:, 1:].ravel() / width) ** 2) / 2)
    index = np.stack([nearest[:, 1:].ravel(), source])
    graph = Graph.from_edges(index, nodes=nodes, weights=weights, directed=False, **how)
    return graph, torch.as_tensor(positions, dtype=torch.get_default_dtype())


def _undirected(index: Tensor, nodes: int, how: dict[str, Any]) -> Graph:
    return Graph.from_edges(index, nodes=nodes, directed=False, **how)
