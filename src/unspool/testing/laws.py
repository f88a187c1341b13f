"""What every law needs: a small setting, and one way to say that a law is broken."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from unspool.errors import IncompatibleError
from unspool.graph import Graph, grid


class LawBroken(AssertionError):
    """A part does not keep a law of its kind; the message names the law and the size of the violation."""


def require(ok: bool, sentence: str) -> None:
    """Raise :class:`LawBroken` with the sentence unless ok."""
    if not ok:
        raise LawBroken(sentence)


def run_on(name: str, run: Callable[[], Tensor], graph: Graph, chosen: bool) -> Tensor:
    """The result of a part on a graph; where it does not fit the one of twelve nodes, because nobody chose another, a sentence says so."""
    try:
        return run()
    except (RuntimeError, IndexError) as problem:
        if chosen:
            raise
        first = str(problem).splitlines()[0]
        raise IncompatibleError(
            f"{name} does not run on the graph of {graph.nodes} nodes that it is tried on ({first}); if it belongs to one graph, give that: graph=..."
        ) from problem


def small_graph() -> Graph:
    """A weighted undirected graph of twelve nodes with self-loops, in float64."""
    plain = grid(3, 4, loops=0).to(torch.float64)
    row, col = plain.operator.rows(), plain.operator.forward.col.long()
    weights = 0.5 + ((row * col) % 5).double() / 2  # symmetric in row and col
    return Graph.from_edges(torch.stack([col, row]), nodes=12, weights=weights).to(torch.float64)


def random_signal(graph: Graph, features: int, generator: torch.Generator) -> Tensor:
    """Standard normal numbers of shape (nodes, features)."""
    return torch.randn(graph.nodes, features, dtype=torch.float64, generator=generator)


def relative(a: Tensor, b: Tensor) -> float:
    """‖a − b‖ / max(‖b‖, 1)."""
    a, b = a.detach(), b.detach()
    return float(torch.linalg.vector_norm(a - b)) / max(float(torch.linalg.vector_norm(b)), 1.0)
