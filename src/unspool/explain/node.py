"""Nodes by number or by name, their neighbours, and how far away others are."""

from __future__ import annotations

import difflib
import operator as whole
from collections.abc import Hashable, Sequence
from typing import Any

import torch
from torch import Tensor

from unspool.graph import Graph
from unspool.ops import Operator


def find_node(node: Any, nodes: int, names: Sequence[Hashable] | None = None) -> int:
    """The place of a node, 0 ... nodes − 1.

    A whole number is a place. Text is looked up among the names first; where it is none of them it may be a place written
    out, unless the names are numbers themselves, so that a mistyped name never becomes another node.

    Args:
        node: a whole number, or a name.
        nodes: how many nodes there are.
        names: their names in order, where they have any.

    Example:
        >>> find_node("bob", 3, ("ada", "bob", "cem")), find_node("2", 3), find_node(1, 3)
        (1, 2, 1)
        >>> find_node("bop", 3, ("ada", "bob", "cem"))
        Traceback (most recent call last):
            ...
        ValueError: no node is called 'bop'; the nearest name is 'bob'
    """
    if isinstance(node, str):
        return _by_text(node, nodes, names)
    try:
        place = whole.index(node)
    except TypeError:
        if names is not None and node in names:
            return names.index(node)
        raise ValueError(f"there is no node {node!r}: give a whole number from 0 to {nodes - 1}, or a name") from None
    if isinstance(node, bool) or not 0 <= place < nodes:
        raise ValueError(f"there is no node {node}: nodes are counted from 0 to {nodes - 1}")
    return place


def find_nodes(given: Sequence[Any], nodes: int, names: Sequence[Hashable] | None = None) -> Tensor:
    """The places of many nodes, as :func:`find_node` finds each.

    Example:
        >>> find_nodes(["cem", "ada", "cem"], 3, ("ada", "bob", "cem"))
        tensor([2, 0, 2])
    """
    known: dict[Any, int] = {} if names is None else {str(name): place for place, name in enumerate(names)}
    places = [known[one] if isinstance(one, str) and one in known else find_node(one, nodes, names) for one in given]
    return torch.tensor(places, dtype=torch.int64)


def _by_text(text: str, nodes: int, names: Sequence[Hashable] | None) -> int:
    called = [] if names is None else [str(name) for name in names]
    if text in called:
        return called.index(text)
    if text.isdecimal() and not any(name.isdecimal() for name in called):
        return find_node(int(text), nodes)
    if not called:
        raise ValueError(f"no node is called {text!r}: nodes have no names here, only numbers from 0 to {nodes - 1}")
    near = difflib.get_close_matches(text, called, n=3, cutoff=0.5)
    if near:
        words = "the nearest name is" if len(near) == 1 else "the nearest names are"
        hint = f"{words} {', '.join(map(repr, near))}"
    else:
        hint = f"names look like {', '.join(map(repr, called[:3]))}"
    raise ValueError(f"no node is called {text!r}; {hint}")


def row_of(operator: Operator, node: int) -> tuple[Tensor, Tensor]:
    """The columns and entries of one row of A: whom a node sees, and how strongly."""
    crow, col, val = operator.forward[:3]
    first, last = int(crow[node]), int(crow[node + 1])
    return col[first:last].long(), val[first:last]


def distances(operator: Operator, node: int, wanted: Tensor) -> Tensor:
    """How many edges lie between a node and others that it sees, by the shortest way; −1 where there is no way.

    Looks no further than the farthest wanted node: every edge is met at most once.
    """
    crow, col = operator.forward.crow.cpu().long(), operator.forward.col.cpu()
    far = torch.full((operator.shape[0],), -1, dtype=torch.int64)
    asked = torch.zeros(operator.shape[0], dtype=torch.bool)
    asked[wanted] = True
    frontier, step = torch.tensor([node]), 0
    far[node] = 0
    missing = int(asked.sum()) - int(asked[node])
    while missing > 0 and frontier.numel():
        step += 1
        first, count = crow[frontier], crow[frontier + 1] - crow[frontier]
        entries = torch.repeat_interleave(first - (count.cumsum(0) - count), count) + torch.arange(int(count.sum()))
        frontier = torch.unique(col[entries].long())
        frontier = frontier[far[frontier] < 0]
        far[frontier] = step
        missing -= int(asked[frontier].sum())
    return far[wanted]


def cut_off(graph: Graph, node: int) -> Graph:
    """The graph of one node alone: every edge cut, its self-loop kept.

    Example:
        >>> import unspool as us
        >>> cut_off(us.graph.ring(5), 2).to_dense()
        tensor([[1.]])
    """
    from unspool.graph import Normalisation

    seen, value = row_of(graph.operator, node)
    loop = float(value[seen == node].sum())
    if graph.normalisation is not Normalisation.NONE:
        loop *= float(graph.degree[node])
    index = torch.zeros(2, 1 if loop > 0 else 0, dtype=torch.int64)
    weights = [loop] if loop > 0 else None
    made = Graph.from_edges(index, nodes=1, weights=weights, normalise=graph.normalisation, loops=0.0)
    return made.to(graph.device, dtype=graph.dtype)
