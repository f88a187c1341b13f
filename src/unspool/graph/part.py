"""Some nodes of a graph, with everything that they have in the whole."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from unspool.errors import UNSHOWN, InputError
from unspool.graph.adjacency import Adjacency
from unspool.graph.graph import Graph
from unspool.graph.normalise import stays_symmetric
from unspool.ops.operator import row_of_entry


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
    kept, here = nodes.to("cpu"), nodes.to(graph.device)
    place = torch.full((graph.nodes,), -1, dtype=torch.int64, device=graph.device)
    place[here] = torch.arange(here.numel(), device=graph.device)
    cut, degree = _cut(graph.adjacency, place, here), graph.degree[kept]
    plain = graph._plain  # pyright: ignore[reportPrivateUsage]
    return replace(
        graph,
        adjacency=cut,
        degree=degree,
        symmetric=stays_symmetric(cut, degree, graph.normalisation),
        names=None if graph.names is None else tuple(graph.names[int(i)] for i in kept),
        _plain=None if plain is None else plain[kept],
        _entries=None,
    )


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
    return alone(graph, kept)


def alone(graph: Graph, kept: Tensor) -> Graph:
    """Some nodes by themselves: normalised anew, by the edges between them.

    Example:
        >>> import torch, unspool as us
        >>> torch.allclose(alone(us.graph.path(5), torch.tensor([2, 3])).to_dense(), us.graph.path(2).to_dense())
        True
    """
    crow, col, weight = part_of(graph, kept).adjacency.forward
    index = torch.stack([col.long(), row_of_entry(crow)])
    how: dict[str, Any] = {"normalise": graph.normalisation, "loops": 0.0, "directed": not graph.undirected}
    made = Graph.from_edges(index, int(kept.numel()), weight, **how)
    names = None if graph.names is None else tuple(graph.names[int(i)] for i in kept)
    made = replace(made.to(dtype=graph.dtype), names=names)
    general = graph._has_smoother and graph._no_laplacian is not None  # pyright: ignore[reportPrivateUsage]
    return made.with_general_laplacian() if general else made


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
    w = graph.adjacency
    ways = (w.forward,) if w.symmetric else (w.forward, w.transpose)
    reached = torch.zeros(graph.nodes, dtype=torch.bool, device=graph.device)
    front = nodes.to(graph.device, torch.int64)
    reached[front] = True
    found = [front]
    for _ in range(hops):
        ahead = torch.cat([rows.col[entries_of(rows.crow, front)[1]].long() for rows in ways]).unique()
        front = ahead[~reached[ahead]]
        if front.numel() == 0:
            break
        reached[front] = True
        found.append(front)
    return torch.cat(found).cpu()


def entries_of(crow: Tensor, rows: Tensor) -> tuple[Tensor, Tensor]:
    """The stored entries of some rows of a matrix: which of the rows each belongs to, and its place; other rows are not looked at.

    Example:
        >>> import torch
        >>> entries_of(torch.tensor([0, 2, 3, 6]), torch.tensor([2, 0]))
        (tensor([0, 0, 0, 1, 1]), tensor([3, 4, 5, 0, 1]))
    """
    first, count = crow[rows].long(), (crow[rows + 1] - crow[rows]).long()
    owner = torch.repeat_interleave(torch.arange(rows.numel(), device=crow.device), count)
    before = count.cumsum(0) - count
    return owner, torch.arange(owner.numel(), device=crow.device) - before[owner] + first[owner]


def _cut(w: Adjacency, place: Tensor, kept: Tensor) -> Adjacency:
    row, entry = entries_of(w.forward.crow, kept)
    col = place[w.forward.col[entry].long()]
    inside = col >= 0
    weight = w.forward.beside
    return Adjacency.from_entries(
        row[inside], col[inside], None if weight is None else weight[entry[inside]], kept.numel()
    )
