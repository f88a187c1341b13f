"""The same graph with its nodes in another order."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from unspool.graph.graph import Graph
from unspool.ops import Operator


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
    place = torch.argsort(order)
    exact = _moved(graph._exact, place)  # pyright: ignore[reportPrivateUsage]
    old = graph._exact_smoother  # pyright: ignore[reportPrivateUsage]
    smoother = exact if old is graph._exact else old and _moved(old, place)  # pyright: ignore[reportPrivateUsage]
    names = None if graph.names is None else tuple(graph.names[int(i)] for i in order)
    moved = replace(
        graph,
        operator=exact,
        smoother=smoother,
        degree=graph.degree[order],
        names=names,
        _exact=exact,
        _exact_smoother=smoother,
    )
    return moved.to(graph.device, dtype=graph.dtype)


def _moved(operator: Operator, place: Tensor) -> Operator:
    row, col = operator.rows(), operator.forward.col.long()
    return Operator.from_entries(place[row], place[col], operator.forward.val, operator.shape)
