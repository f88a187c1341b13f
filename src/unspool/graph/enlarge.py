"""New nodes in a graph: what it would be had they always been there, as a whole or around them alone."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import torch
from torch import Tensor

from unspool.errors import UNSHOWN, IncompatibleError, InputError
from unspool.graph.adjacency import Adjacency
from unspool.graph.compress import blocks, rows_in
from unspool.graph.edges import check_loops, notes_of, read_edge_index, read_weights, tell
from unspool.graph.graph import Graph
from unspool.graph.laplacian_form import LaplacianForm, form_of_sums, laplacian_form
from unspool.graph.merge import merged
from unspool.graph.normalise import Normalisation, stays_symmetric
from unspool.graph.part import entries_of, neighbourhood
from unspool.graph.spreading import SpreadGraph
from unspool.ops.operator import row_of_entry


@dataclass(frozen=True, eq=False)
class NewEdges:
    """How new nodes are joined to a graph of n nodes: the first new node is number n, the next n + 1.

    Edges run as those of the graph do: both ways, or as they are listed where it is directed (sources above targets). Each has a new node at
    one end or at both; what is listed more than once counts as in :meth:`Graph.from_edges`.

    Args:
        edges: integers of shape (2, edges).
        weights: one non-negative number per edge; ones when omitted.
        loops: the weight of the self-loop that a new node gets where it has none; when omitted, that of the old nodes, which must then be the same
            for all.

    Example:
        >>> import unspool as us
        >>> us.graph.enlarged(us.graph.path(3), 1, us.graph.NewEdges([[3], [0]])).edges
        3
    """

    edges: Any
    weights: Any = None
    loops: float | None = None

    @staticmethod
    def read(given: Any) -> NewEdges:
        """As it is, or made of a list of edges."""
        return given if isinstance(given, NewEdges) else NewEdges(given)


def enlarged(graph: Graph, nodes: Any, edges: Any) -> Graph:
    """The graph with new nodes behind its own: what :meth:`Graph.from_edges` makes of all edges together, degrees of old nodes included.

    Args:
        graph: the old graph.
        nodes: how many new nodes there are.
        edges: :class:`NewEdges`, or a list of edges.

    Example:
        >>> import torch, unspool as us
        >>> longer = us.graph.enlarged(us.graph.path(3), 2, torch.tensor([[2, 3], [3, 4]]))
        >>> torch.allclose(longer.to_dense(), us.graph.path(5).to_dense())
        True
    """
    joint = joined(graph, nodes, edges)
    every = torch.arange(graph.nodes)
    w, degree = _weights(graph, joint, every), joint.degree(graph.degree, every)
    return _made(graph, w, degree, laplacian_form(w, degree, graph.normalisation))


def around_new(graph: Graph, nodes: Any, edges: Any, hops: int) -> tuple[Graph, Tensor]:
    """The part of :func:`enlarged` within some hops of the new nodes, with its entries and degrees, and which old nodes it holds.

    New nodes stand behind the old ones. Nothing else of the graph is read but degrees.

    Args:
        graph, nodes, edges: as in :func:`enlarged`.
        hops: how far.

    Example:
        >>> import unspool as us
        >>> part, old = us.graph.around_new(us.graph.path(9), 1, [[9], [8]], hops=2)
        >>> part.nodes, old
        (3, tensor([7, 8]))
    """
    joint = joined(graph, nodes, edges)
    if graph.normalisation is Normalisation.RANDOM_WALK and graph.symmetric:  # whether A stays symmetric, all edges say
        whole = enlarged(graph, nodes, edges)
        return whole, torch.arange(graph.nodes)
    near = neighbourhood(graph, joint.touched, hops - 1).sort().values if hops else joint.touched[:0]
    every = torch.arange(graph.nodes)
    plain = graph._plain  # pyright: ignore[reportPrivateUsage]
    plain = None if plain is None else joint.degree(plain, every, loops=False)
    form = form_of_sums(graph.undirected, joint.degree(graph.degree, every), plain, graph.normalisation)
    here = torch.cat([near, torch.arange(graph.nodes, graph.nodes + nodes)])
    if form.plain is not None:
        form = form._replace(plain=form.plain[here])
    return _made(graph, _weights(graph, joint, near), joint.degree(graph.degree, near), form), near


class Joined(NamedTuple):
    """The entries of W that new nodes bring: rows and columns count the old nodes that they touch first, then the new ones."""

    touched: Tensor
    new: int
    row: Tensor
    col: Tensor
    weight: Tensor | None

    def degree(self, old: Tensor, kept: Tensor, loops: bool = True) -> Tensor:
        """Row sums of the enlarged W, of some old nodes (sorted) and all new ones, from those of the old graph."""
        weight = torch.ones(self.row.numel(), dtype=torch.float64) if self.weight is None else self.weight
        weight = weight if loops else torch.where(self.row == self.col, 0.0, weight)
        more = torch.zeros(self.touched.numel() + self.new, dtype=torch.float64).index_add_(0, self.row, weight)
        place, inside = _places(kept, self.touched)
        found = old[kept].index_add(0, place[inside], more[: self.touched.numel()][inside])
        return torch.cat([found, more[self.touched.numel() :]])


def joined(graph: Graph, nodes: Any, edges: Any) -> Joined:
    """New edges, checked and merged, with the loops of new nodes."""
    if not isinstance(nodes, int) or nodes < 1:
        raise InputError("nodes", nodes, "how many new nodes there are, at least 1")
    if isinstance(graph, SpreadGraph):
        raise IncompatibleError(
            "new nodes are joined to a whole graph, and this one is spread over processes; give the whole"
        )
    given = NewEdges.read(edges)
    index, _ = read_edge_index(given.edges, graph.nodes + nodes)
    index = index.cpu().long()
    _check_new(index, graph.nodes)
    weight = None if given.weights is None else read_weights(given.weights, index.shape[1])
    if weight is None and graph.adjacency.forward.beside is not None:
        weight = torch.ones(index.shape[1], dtype=torch.float64)
    loops = loop_weight(graph) if given.loops is None else given.loops
    check_loops(loops)
    old = index < graph.nodes
    touched = index[old].unique()
    local = torch.where(old, torch.searchsorted(touched, index), index - graph.nodes + touched.numel())
    found = merged(local, weight, touched.numel() + nodes, not graph.undirected)
    tell(notes_of(found, weight is not None), None)
    w = Adjacency.from_distinct(found, 0.0, not graph.undirected).forward
    bare = torch.nonzero(~found.own[touched.numel() :]).flatten() + touched.numel() if loops else touched[:0]
    row, col = torch.cat([row_of_entry(w.crow), bare]), torch.cat([w.col.long(), bare])
    if w.beside is None and loops in (0, 1):
        return Joined(touched, nodes, row, col, None)
    value = torch.ones(w.col.numel(), dtype=torch.float64) if w.beside is None else w.beside.double()
    return Joined(
        touched, nodes, row, col, torch.cat([value, torch.full((bare.numel(),), float(loops), dtype=torch.float64)])
    )


def loop_weight(graph: Graph) -> float:
    """The weight of the self-loop that every node of a graph has; 0 where some have none.

    Example:
        >>> import unspool as us
        >>> loop_weight(us.graph.path(3)), loop_weight(us.Graph.from_edges([[0], [1]], loops=0.5, directed=False))
        (1.0, 0.5)
    """
    w = graph.adjacency
    if w.loops < w.nodes:
        return 0.0
    crow, col, weight = w.forward
    if weight is None:
        return 1.0
    seen = [weight[b.start : b.stop][rows_in(crow, b) == col[b.start : b.stop]] for b in blocks(crow)]
    own = torch.cat(seen).double().unique()
    if own.numel() > 1:
        raise InputError(
            "loops", UNSHOWN, "the weight of a new node's self-loop, as those of the old nodes differ",
            "give NewEdges(..., loops=1.0), or what Graph.from_edges was given",
        )  # fmt: skip
    return float(own)


def _check_new(index: Tensor, old: int) -> None:
    bad = torch.nonzero((index < old).all(0)).flatten()
    if bad.numel():
        source, target = index[:, bad[0]].tolist()
        raise InputError(
            "edges", UNSHOWN,
            f"new nodes at one end of each edge, and edge {int(bad[0])} joins {source} and {target}, which the graph has already",
            f"new nodes are numbered from {old} on; edges between old nodes belong into the graph",
        )  # fmt: skip


def _weights(graph: Graph, joint: Joined, kept: Tensor) -> Adjacency:
    """The enlarged W between some old nodes (sorted) and all new ones."""
    rows, here = graph.adjacency.forward, kept.to(graph.device)
    row, entry = entries_of(rows.crow, here)
    col, inside = _places(here, rows.col[entry].long())
    place, known = _places(kept, joint.touched)
    place = torch.cat([torch.where(known, place, -1), torch.arange(joint.new) + kept.numel()])
    both = (place[joint.row] >= 0) & (place[joint.col] >= 0)
    ends = [torch.cat([a[inside], place[b][both].to(here.device)]) for a, b in ((row, joint.row), (col, joint.col))]
    weight = _beside(rows.beside, entry[inside], joint.weight, both)
    return Adjacency.from_entries(ends[0], ends[1], weight, kept.numel() + joint.new)


def _beside(old: Tensor | None, entry: Tensor, new: Tensor | None, both: Tensor) -> Tensor | None:
    if old is None and new is None:
        return None
    first = torch.ones(entry.numel(), dtype=torch.float64, device=entry.device) if old is None else old[entry].double()
    second = torch.ones(int(both.sum()), dtype=torch.float64) if new is None else new[both]
    return torch.cat([first, second.to(first.device)])


def _places(kept: Tensor, ids: Tensor) -> tuple[Tensor, Tensor]:
    """Where ids stand among sorted ones, and whether they do."""
    if kept.numel() == 0:
        return torch.zeros_like(ids), torch.zeros_like(ids, dtype=torch.bool)
    place = torch.searchsorted(kept, ids).clamp(max=kept.numel() - 1)
    return place, kept[place] == ids


def _made(graph: Graph, w: Adjacency, degree: Tensor, form: LaplacianForm) -> Graph:
    changes: dict[str, Any] = {}
    general = graph._has_smoother and graph._no_laplacian is not None  # pyright: ignore[reportPrivateUsage]
    if not general:
        held = form.why_none is None
        changes = {"scale": form.scale, "_plain": form.plain, "_has_smoother": held, "_no_laplacian": form.why_none}
    symmetric = stays_symmetric(w, degree, graph.normalisation)
    return replace(graph, adjacency=w, degree=degree, symmetric=symmetric, names=None, _entries=None, **changes)
