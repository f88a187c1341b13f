"""Perturbations of the data: what a view loses, by masks that are computed from keys and counts."""

from __future__ import annotations

from abc import ABC
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from unspool.errors import IncompatibleError, InputError
from unspool.graph import Graph, Normalisation
from unspool.ops import Operator, SparseFeatures
from unspool.ops.dropout import advance, drop_entries, dropout, key
from unspool.ops.features import WeightedRows
from unspool.ops.operator import Csr
from unspool.settings.kinds import Kind, Real
from unspool.train.upper.term import accepted, shown

#: The second word of the keys of perturbations.
PLACE = 0x5EED


@dataclass(frozen=True)
class Perturbation(ABC):
    """Something that every view loses at random, anew in every epoch; in evaluation nothing is lost.

    Args:
        rate: the share that is lost, in [0, 1).
    """

    name: ClassVar[str]
    numbers: ClassVar[dict[str, Kind]] = {"rate": Real(0, 1, False, True)}

    rate: float = 0.5

    def __post_init__(self) -> None:
        object.__setattr__(self, "rate", accepted(self, "rate", self.numbers["rate"]))

    def features(self, x: Any, rate: Any, key: Tensor, count: Tensor) -> Any:
        """The features that a view sees."""
        del rate, key, count
        return x

    def graph(self, graph: Graph, rate: Any, key: Tensor, count: Tensor) -> Graph:
        """The graph that a view sees."""
        del rate, key, count
        return graph

    def check(self, task: Any) -> None:
        """Raise one sentence where the data cannot lose it."""
        del task

    def text(self) -> str:
        """As it would be typed."""
        return f"{self.name}({shown(self.rate)})"

    def __str__(self) -> str:
        return f"{type(self).__name__}({shown(self.rate)})"


@dataclass(frozen=True)
class DropNodes(Perturbation):
    """A share of the nodes lose all their features, M ⊙ X with a mask of rows; the others are scaled by 1 / (1 − rate).

    The graph stays, so a node without features is told by its neighbours what it is. What a network names as
    :attr:`~unspool.models.Model.kept_features`, such as FairGNN's group, stays too, here and under :class:`DropEntries`.

    Example:
        >>> import torch
        >>> x = DropNodes(0.5).features(torch.ones(4, 3), 0.5, key(0, PLACE, 0), torch.tensor(1))
        >>> sorted(x.sum(1).unique().tolist())
        [0.0, 6.0]
    """

    name: ClassVar[str] = "drop_nodes"

    def features(self, x: Any, rate: Any, key: Tensor, count: Tensor) -> Any:
        """The rows that are left."""
        rows = dropout(torch.ones(x.shape[-2], 1, dtype=x.dtype, device=x.device), rate, key, count)
        return WeightedRows(x, rows) if isinstance(x, SparseFeatures) else x * rows


@dataclass(frozen=True)
class DropEntries(Perturbation):
    """A share of the features' entries are lost, the others scaled by 1 / (1 − rate): dropout on the data, whatever the model drops.

    Example:
        >>> import torch
        >>> x = DropEntries(0.5).features(torch.ones(40, 30), 0.5, key(0, PLACE, 0), torch.tensor(1))
        >>> round(float(x.mean()), 1)
        1.0
    """

    name: ClassVar[str] = "drop_entries"

    def features(self, x: Any, rate: Any, key: Tensor, count: Tensor) -> Any:
        """The entries that are left."""
        if isinstance(x, SparseFeatures):
            return SparseFeatures(x.dropped(rate, key, count).operator, x.rows, x.order)
        return dropout(x, rate, key, count)


@dataclass(frozen=True)
class DropEdges(Perturbation):
    r"""A share of the edges are lost, an undirected one both ways at once, and A is normalised anew by the degrees that are left.

    Self-loops stay. Runs on graphs with symmetric or random-walk normalisation, and with networks that see the graph through A alone.

    Example:
        >>> import torch, unspool as us
        >>> ring = us.graph.ring(50)
        >>> left = DropEdges(0.5).graph(ring, 0.5, key(0, PLACE, 0), torch.tensor(1))
        >>> 15 < int((left.to_dense() > 0).sum() - 50) // 2 < 35
        True
    """

    name: ClassVar[str] = "drop_edges"

    def graph(self, graph: Graph, rate: Any, key: Tensor, count: Tensor) -> Graph:
        """The edges that are left."""
        csr = graph.operator.forward
        row, col = graph.operator.rows(), csr.col.long()
        degree = graph.degree.to(csr.val)
        scale = degree.clamp_min(1e-30)
        symmetric = graph.normalisation is Normalisation.SYMMETRIC
        raw = csr.val * ((scale[row] * scale[col]).sqrt() if symmetric else scale[row])
        kept = raw * (_fates(graph, row, col, rate, key, count) | (row == col))
        left = torch.zeros_like(degree).index_add(0, row, kept)
        inverse = torch.where(left > 0, 1 / left.clamp_min(1e-30), 0.0)
        val = kept * ((inverse[row] * inverse[col]).sqrt() if symmetric else inverse[row])
        return graph.with_operator(_operator(graph.operator, row, col, val), _LOST)

    def check(self, task: Any) -> None:
        """The graph is normalised by its degrees."""
        if task.graph.normalisation is Normalisation.NONE:
            raise IncompatibleError(
                "drop_edges needs a graph with normalised weights, and this one has none; build it with Normalisation.SYMMETRIC, or take "
                "drop_nodes"
            )


_LOST = (
    "edges are dropped here, and the network looks at the graph's own incidence matrix B, which is that of all edges; perturb with "
    "DropNodes in the place of DropEdges"
)


def perturbation_key(seed: int | Tensor, place: int, device: torch.device | str | None = None) -> Tensor:
    """The key of perturbation number ``place`` of a trial.

    Args:
        seed: of the trial.
        place: its place in the sum, from 0.
        device: where masks are made.

    Example:
        >>> int(perturbation_key(3, 0)) == int(perturbation_key(3, 1))
        False
    """
    return key(seed, PLACE, place, device)


def view_key(key: Tensor, view: int | Tensor) -> Tensor:
    """The key of a view: in view 0 the key itself, so that one view has the masks it would have without views.

    Example:
        >>> import torch
        >>> from unspool.ops.dropout import key as key_of
        >>> k = key_of(0, 1, 2)
        >>> view_key(k, torch.arange(3)).tolist() == [int(k), int(advance(k, 1)), int(advance(k, 2))]
        True
    """
    if not isinstance(view, Tensor):
        return advance(key, view) if view else key
    return torch.where(view == 0, key, advance(key, view))


def with_columns(seen: Any, x: Any, columns: Sequence[int]) -> Any:
    """The features that a view sees, with some columns as they were.

    Args:
        seen: what is left of x.
        x: the features.
        columns: their numbers, from 0; a network names them by :attr:`unspool.models.Model.kept_features`.

    Example:
        >>> import torch
        >>> with_columns(torch.zeros(2, 3), torch.ones(2, 3), (1,))
        tensor([[0., 1., 0.],
                [0., 1., 0.]])
    """
    if seen is x or len(columns) == 0:
        return seen
    last = x.shape[-1] - 1
    for column in columns:
        if not 0 <= column <= last:
            raise InputError("kept_features", tuple(columns), f"numbers of features, from 0 to {last}")
    if not isinstance(seen, SparseFeatures):
        return torch.where(_among(torch.arange(last + 1, device=x.device), columns), x, seen)
    a, b = seen.operator.forward, seen.operator.transpose
    val = torch.where(_among(a.col, columns), x.values, a.val)
    forward, transpose = Csr(a.crow, a.col, val, a.hubs), Csr(b.crow, b.col, val.index_select(0, seen.order), b.hubs)
    return SparseFeatures(Operator(forward, transpose, seen.operator.shape), seen.rows, seen.order)


def _among(numbers: Tensor, columns: Sequence[int]) -> Tensor:
    found = numbers == columns[0]
    for column in columns[1:]:
        found = found | (numbers == column)
    return found


def _fates(graph: Graph, row: Tensor, col: Tensor, rate: Any, key: Tensor, count: Tensor) -> Tensor:
    """Which entries of A survive; both directions of an undirected edge have one fate, by its smaller and its larger end."""
    if graph.undirected:
        row, col = torch.minimum(row, col), torch.maximum(row, col)
    ones = torch.ones(row.shape, dtype=torch.float32, device=row.device)
    return drop_entries(row.int(), col.int(), ones, rate, key, count) > 0


def _operator(like: Operator, row: Tensor, col: Tensor, val: Tensor) -> Operator:
    """A with other entries: one copy where it is symmetric."""
    a, b = like.forward, like.transpose
    forward = Csr(a.crow, a.col, val, a.hubs)
    if like.symmetric:
        return Operator(forward, forward, like.shape)
    order = torch.argsort(col * like.shape[0] + row)
    return Operator(forward, Csr(b.crow, b.col, val.index_select(0, order), b.hubs), like.shape)
