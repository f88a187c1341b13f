"""Places for the nodes of a picture."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from unspool.graph import Graph, edge_list

Array = np.ndarray[Any, Any]


def place_nodes(graph: Graph, rounds: int = 80) -> Array:
    """Positions in the unit square: neighbours attract, all others repel (Fruchterman and Reingold, 1991).

    The start is random with a fixed seed, so that the same graph has the same picture. All pairs are looked at in every round: for
    graphs of up to a few thousand nodes.

    Args:
        graph: undirected.
        rounds: how often nodes move.

    Shapes:
        (nodes, 2).

    Example:
        >>> import unspool as us
        >>> place_nodes(us.graph.ring(12)).shape
        (12, 2)
    """
    count = graph.nodes
    place = np.random.default_rng(0).random((count, 2))
    source, target = edge_list(graph).numpy()
    ideal = 1 / max(1.0, float(np.sqrt(count)))
    for heat in np.linspace(0.1, 0.002, rounds):
        apart = place[:, None] - place
        squared = (apart**2).sum(-1) + 1e-9
        move = (apart * (ideal**2 / squared)[..., None]).sum(1)
        along = place[source] - place[target]
        pull = along * (np.sqrt((along**2).sum(-1, keepdims=True)) / ideal)
        np.add.at(move, source, -pull)
        np.add.at(move, target, pull)
        move -= (place - place.mean(0)) * 0.5  # what no edge holds stays in the picture
        length = np.sqrt((move**2).sum(-1, keepdims=True)) + 1e-12
        place = place + move / length * np.minimum(length, heat)
    return _in_square(place)


def _in_square(place: Array) -> Array:
    low, high = place.min(0), place.max(0)
    return (place - low) / np.where(high > low, high - low, 1.0)


def ring_places(count: int) -> Array:
    """Nodes on a circle.

    Example:
        >>> ring_places(4).round(2).tolist()
        [[1.0, 0.5], [0.5, 1.0], [0.0, 0.5], [0.5, 0.0]]
    """
    angle = torch.arange(count, dtype=torch.float64) * (2 * torch.pi / count)
    return (torch.stack([angle.cos(), angle.sin()], dim=1).numpy() + 1) / 2


def grid_places(rows: int, cols: int) -> Array:
    """Nodes in rows, the first at the top.

    Example:
        >>> grid_places(2, 2).tolist()
        [[0.0, 1.0], [1.0, 1.0], [0.0, 0.0], [1.0, 0.0]]
    """
    across, down = np.meshgrid(np.linspace(0, 1, cols), np.linspace(1, 0, rows))
    return np.stack([across.ravel(), down.ravel()], axis=1)
