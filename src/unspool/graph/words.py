"""A graph in words, and as a small table for notebooks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from unspool.graph.normalise import Normalisation
from unspool.notebook import facts

if TYPE_CHECKING:
    from unspool.graph.graph import Graph


def described(graph: Graph) -> str:
    """Direction, normalisation, type and place.

    Example:
        >>> import unspool as us
        >>> described(us.graph.ring(4))
        'undirected, symmetric normalisation, float32, cpu'
    """
    kind = "undirected" if graph.undirected else "directed"
    how = (
        "not normalised" if graph.normalisation is Normalisation.NONE else f"{graph.normalisation.value} normalisation"
    )
    return f"{kind}, {how}, {str(graph.dtype).removeprefix('torch.')}, {graph.device}"


def html_of_graph(graph: Graph) -> str:
    """A table for notebooks.

    Example:
        >>> import unspool as us
        >>> "<th>nodes</th><td>4</td>" in html_of_graph(us.graph.ring(4))
        True
    """
    counts = [("nodes", f"{graph.nodes:,}"), ("edges", f"{graph.edges:,}"), ("kind", described(graph))]
    return facts("Graph", [*counts, ("notes", "; ".join(graph.notes))])
