"""Some nodes of a graph, with everything that they have in the whole."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from unspool.errors import UNSHOWN, InputError
from unspool.graph.graph import Graph
from unspool.graph.normalise import Normalisation
from unspool.ops import Operator


def part_of(graph: Graph, nodes: Tensor) -> Graph:
    """The graph between some nodes, with the entries, degrees and scale of the whole: nothing is normalised anew.

    Rows of nodes whose neighbours are all kept are those of the whole graph; rows at the border lack the neighbours outside.

    Args:
        graph: the whole.
        nodes: ids of the nodes to keep, each once; node i of the part is ``nodes[i]``.

    Example:
        >>> import torch, unspool as us
        >>> graph, nodes = us.graph.path(5), torch.tensor([1, 2, 3])
        >>> torch.equal(us.graph.part_of(graph, nodes).to_dense(), graph.to_dense()[nodes][:, nodes])
        True
    """
    kept = nodes.to("cpu")
    place = torch.full((graph.nodes,), -1, dtype=torch.int64)
    place[kept] = torch.arange(kept.numel())
    exact = _cut(graph._exact, place, kept)  # pyright: ignore[reportPrivateUsage]
    old = graph._exact_smoother  # pyright: ignore[reportPrivateUsage]
    smoother = exact if old is graph._exact else old and _cut(old, place, kept)  # pyright: ignore[reportPrivateUsage]
    names = None if graph.names is None else tuple(graph.names[int(i)] for i in kept)
    cut = replace(
        graph,
        operator=exact,
        smoother=smoother,
        degree=graph.degree[kept],
        names=names,
        _exact=exact,
        _exact_smoother=smoother,
    )
    return cut.to(graph.device, dtype=graph.dtype)


def without(graph: Graph, nodes: Any) -> Graph:
    """The graph as it would be if some nodes had never been there: their edges gone, the others normalised anew.

    Args:
        graph: the whole.
        nodes: ids of the nodes to take out; the others keep their order.

    Example:
        >>> import torch, unspool as us
        >>> shorter = us.graph.without(us.graph.path(5), [4])
        >>> torch.allclose(shorter.to_dense(), us.graph.path(4).to_dense())
        True
    """
    gone = torch.zeros(graph.nodes, dtype=torch.bool)
    gone[torch.as_tensor(nodes)] = True
    kept = torch.nonzero(~gone).flatten()
    if kept.numel() == 0:
        raise InputError("nodes", UNSHOWN, f"fewer than all {graph.nodes} nodes, as a graph needs one")
    exact = part_of(graph, kept)._exact  # pyright: ignore[reportPrivateUsage]
    row, col, degree = exact.rows(), exact.forward.col.long(), graph.degree[kept]
    weight = exact.forward.val
    if graph.normalisation is Normalisation.SYMMETRIC:
        weight = weight * (degree[row] * degree[col]).sqrt()
    elif graph.normalisation is Normalisation.RANDOM_WALK:
        weight = weight * degree[row]
    how: dict[str, Any] = {"normalise": graph.normalisation, "loops": 0.0, "directed": not graph.undirected}
    made = Graph.from_edges(torch.stack([col, row]), int(kept.numel()), weight, **how)
    names = None if graph.names is None else tuple(graph.names[int(i)] for i in kept)
    return replace(made, names=names).to(graph.device, dtype=graph.dtype)


def neighbourhood(graph: Graph, nodes: Tensor, hops: int) -> Tensor:
    """All nodes within some hops of the given ones, whichever way edges run: those first, in their order, then the others by distance.

    Args:
        graph: the whole.
        nodes: ids, each once.
        hops: how far.

    Example:
        >>> import torch, unspool as us
        >>> us.graph.neighbourhood(us.graph.path(6), torch.tensor([5]), 2)
        tensor([5, 4, 3])
    """
    exact = graph._exact  # pyright: ignore[reportPrivateUsage]
    ways = (exact.forward,) if exact.symmetric else (exact.forward, exact.transpose)
    reached = torch.zeros(graph.nodes, dtype=torch.bool)
    front = nodes.to("cpu", torch.int64)
    reached[front] = True
    found = [front]
    for _ in range(hops):
        ahead = torch.cat([csr.col[entries_of(csr.crow, front)[1]].long() for csr in ways]).unique()
        front = ahead[~reached[ahead]]
        if front.numel() == 0:
            break
        reached[front] = True
        found.append(front)
    return torch.cat(found)


def entries_of(crow: Tensor, rows: Tensor) -> tuple[Tensor, Tensor]:
    """The stored entries of some rows of a matrix: which of the rows each belongs to, and its place; other rows are not looked at.

    Example:
        >>> import torch
        >>> entries_of(torch.tensor([0, 2, 3, 6]), torch.tensor([2, 0]))
        (tensor([0, 0, 0, 1, 1]), tensor([3, 4, 5, 0, 1]))
    """
    first, count = crow[rows].long(), (crow[rows + 1] - crow[rows]).long()
    owner = torch.repeat_interleave(torch.arange(rows.numel()), count)
    before = count.cumsum(0) - count
    return owner, torch.arange(owner.numel()) - before[owner] + first[owner]


def _cut(operator: Operator, place: Tensor, kept: Tensor) -> Operator:
    row, entry = entries_of(operator.forward.crow, kept)
    col = place[operator.forward.col[entry].long()]
    inside = col >= 0
    size = (kept.numel(), kept.numel())
    return Operator.from_entries(row[inside], col[inside], operator.forward.val[entry[inside]], size)
