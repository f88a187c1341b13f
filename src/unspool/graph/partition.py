"""Which process has which node: parts of a graph of equal work."""

from __future__ import annotations

import importlib
from typing import Any

import torch
from torch import Tensor

from unspool.errors import IncompatibleError
from unspool.graph.graph import Graph


def contiguous(graph: Graph, parts: int) -> Tensor:
    """Nodes in their order, cut into parts of about as many entries of A each, one more counted for every node.

    Args:
        graph: the graph.
        parts: how many.

    Returns:
        The part of each node.

    Example:
        >>> import unspool as us
        >>> us.graph.contiguous(us.graph.star(6), 2)  # the hub has many entries
        tensor([0, 0, 1, 1, 1, 1])
    """
    work = graph.adjacency.forward.crow.diff().double().cpu() + 1
    before = work.cumsum(0) - work / 2  # by its middle, so that no part is empty for the sake of one node
    return (before * parts / work.sum()).long().clamp_max(parts - 1)


def metis(graph: Graph, parts: int) -> Tensor:
    """Parts that METIS makes, which few edges run between, of equal sums of degrees; ``pip install 'unspool[metis]'``.

    Without degrees as weights the part with the hubs would have several times its share of work.

    Args:
        graph: the graph; directions and weights of edges do not count.
        parts: how many.

    Returns:
        The part of each node.
    """
    try:
        pymetis: Any = importlib.import_module("pymetis")
    except ImportError:
        raise IncompatibleError(
            "METIS is not installed; pip install 'unspool[metis]', or take us.graph.contiguous (on the command line --spread rows)"
        ) from None
    if parts == 1:
        return torch.zeros(graph.nodes, dtype=torch.int64)
    w = graph.adjacency
    crow, col, row = w.forward.crow.cpu().long(), w.forward.col.cpu().long(), None
    row = torch.repeat_interleave(torch.arange(graph.nodes), crow.diff())
    if not w.symmetric:  # an edge of either direction is one
        both = torch.cat([row * graph.nodes + col, col * graph.nodes + row]).unique()
        row, col = both // graph.nodes, both % graph.nodes
    between = row != col
    row, col = row[between], col[between]
    starts = torch.zeros(graph.nodes + 1, dtype=torch.int64)
    starts[1:] = torch.bincount(row, minlength=graph.nodes).cumsum(0)
    weight = (crow.diff() + 1).tolist()
    _, found = pymetis.part_graph(parts, pymetis.CSRAdjacency(starts.numpy(), col.numpy()), vweights=weight)
    return torch.as_tensor(found, dtype=torch.int64)
