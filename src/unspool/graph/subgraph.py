"""``graph.subgraph(nodes)``: the graph between some nodes, by itself or as it lies in the whole."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from unspool.errors import IncompatibleError, InputError

if TYPE_CHECKING:
    from unspool.graph.graph import Graph


class Degrees(Enum):
    """Whose degrees the nodes of a subgraph have.

    ``OWN``: those of the subgraph, so it is a graph by itself, normalised anew. ``WHOLE``: those of the graph that it was cut out of, whose entries of A
    it keeps.
    """

    OWN = "own"
    WHOLE = "whole"


def subgraph(graph: Graph, nodes: Any, degrees: Any = Degrees.OWN) -> Graph:
    """The graph between some nodes, with the edges, weights and self-loops that they have here.

    With ``Degrees.OWN`` it is what is left when all other nodes go (:func:`~unspool.graph.without`), and what PyTorch Geometric's layers make of
    ``data.subgraph(nodes)``: they normalise by the degrees that they see. With ``Degrees.WHOLE`` nothing is normalised anew
    (:func:`~unspool.graph.part_of`): entries, degrees and the scale of L are those of the whole, so a network of K hops says what it says there of
    nodes all of whose neighbours within K hops are in. Batches of clusters and PyG's samplers mean the first, a look at a few nodes the second.

    Args:
        nodes: ids, each once, or a mask over all nodes. Node i of the subgraph is ``nodes[i]``, as in PyG.
        degrees: whose.

    Example:
        >>> import torch, unspool as us
        >>> graph, nodes = us.graph.star(5), torch.tensor([0, 2])
        >>> graph.subgraph(nodes).to_dense()
        tensor([[0.5000, 0.5000],
                [0.5000, 0.5000]])
        >>> whole = graph.subgraph(nodes, us.graph.Degrees.WHOLE)
        >>> torch.equal(whole.to_dense(), graph.to_dense()[nodes][:, nodes])
        True
    """
    from unspool.graph.part import alone, part_of
    from unspool.graph.spreading import SpreadGraph

    if isinstance(graph, SpreadGraph):
        raise IncompatibleError(
            "a graph that is spread over processes is not cut again; take the subgraph of the whole before"
        )
    if not isinstance(degrees, Degrees):
        raise InputError("degrees", degrees, "us.graph.Degrees.OWN or us.graph.Degrees.WHOLE")
    kept = read_nodes(nodes, graph.nodes)
    return part_of(graph, kept) if degrees is Degrees.WHOLE else alone(graph, kept)


def read_nodes(given: Any, count: int) -> Tensor:
    """Ids of some nodes, each once, from ids or a mask over all of them.

    Example:
        >>> read_nodes([True, False, True], 3)
        tensor([0, 2])
    """
    expected = "numbers of nodes, at least one, one behind the other, or a mask over all"
    try:
        nodes = torch.as_tensor(np.asarray(given) if isinstance(given, list | tuple) else given).detach().cpu()
    except (TypeError, ValueError, RuntimeError):
        raise InputError("nodes", given, expected) from None
    if nodes.dtype is torch.bool and nodes.shape == (count,):
        nodes = torch.nonzero(nodes).flatten()
    if nodes.ndim != 1 or nodes.numel() == 0 or nodes.is_floating_point() or nodes.dtype is torch.bool:
        kind = str(nodes.dtype).removeprefix("torch.")
        raise InputError("nodes", f"{kind} of shape {tuple(nodes.shape)}", expected)
    nodes = nodes.long()
    outside = nodes[(nodes < 0) | (nodes >= count)]
    if outside.numel():
        raise InputError("nodes", int(outside[0]), f"numbers of nodes, from 0 to {count - 1}")
    ordered = nodes.sort().values
    twice = ordered[1:][ordered.diff() == 0]
    if twice.numel():
        raise InputError("nodes", int(twice[0]), "every node once, and this one is there twice")
    return nodes
