"""The same graph with its nodes in another order."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from unspool.graph.adjacency import Adjacency
from unspool.graph.graph import Graph
from unspool.ops.operator import row_of_entry


def permuted(graph: Graph, order: Tensor) -> Graph:
    """The graph whose node i is ``order[i]`` here, with everything that belongs to it: A, L, B up to order and signs.

    ``permuted(graph, order)`` and ``x[order]`` are to ``graph`` and ``x`` what a renamed problem is to a problem.

    Example:
        >>> import torch, unspool as us
        >>> graph, order = us.graph.path(3), torch.tensor([1, 2, 0])
        >>> torch.equal(us.graph.permuted(graph, order).to_dense(), graph.to_dense()[order][:, order])
        True
    """
    order = order.to("cpu")
    if not torch.equal(order.sort().values, torch.arange(graph.nodes)):
        raise ValueError(f"the new order must name each of the {graph.nodes} nodes once")
    place = torch.argsort(order).to(graph.device)
    crow, col, weight = graph.adjacency.forward
    plain = graph._plain  # pyright: ignore[reportPrivateUsage]
    return replace(
        graph,
        adjacency=Adjacency.from_entries(place[row_of_entry(crow)], place[col.long()], weight, graph.nodes),
        degree=graph.degree[order],
        names=None if graph.names is None else tuple(graph.names[int(i)] for i in order),
        _plain=None if plain is None else plain[order],
        _entries=None,
    )
