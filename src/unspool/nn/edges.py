"""Modules that look at the two ends of an edge."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn

from unspool.graph import Graph
from unspool.objective.edge_penalty import Penalty
from unspool.ops import Operator, SparseFeatures, features_of

#: How many numbers are looked at together.
_BLOCK = 1 << 22
#: Squared distances that are known, by the smoothings before them: they belong to a graph and to features, live as long as the graph, and
#: keep neither alive.
_KNOWN: weakref.WeakKeyDictionary[Graph, tuple[Any, int, dict[int, Tensor]]] = weakref.WeakKeyDictionary()
#: What a node's own features count among those of its neighbours when features are smoothed.
_OWN = 0.1


class EdgeScore(nn.Module):
    r"""A number in (−1, 1) for every edge: :math:`w_e = \tanh s(x_i, x_j)`, with s symmetric in the two ends.

    Each end passes through a layer, and s is a linear function of |u − v| and u ⊙ v. Positive edges pull their ends
    together, negative ones push them apart. The order is that of :func:`~unspool.graph.edge_list`, the rows of B.

    Args:
        features: width of X.
        hidden: width of the layer.

    Example:
        >>> import torch, unspool as us
        >>> score = us.nn.EdgeScore(4)
        >>> score(torch.randn(5, 4), us.graph.ring(5)).shape
        torch.Size([5])
    """

    def __init__(self, features: int, hidden: int = 16) -> None:
        super().__init__()
        self.layer = nn.Linear(features, hidden)
        self.score = nn.Linear(2 * hidden, 1)
        nn.init.constant_(self.score.bias, 1.0)  # begins near plain smoothness

    def forward(self, x: Tensor, graph: Graph) -> Tensor:
        """The scores, shape (edges,)."""
        i, j = graph.incidence().forward.col.long().view(-1, 2).unbind(1)  # edge_list, from what the graph keeps
        z = torch.tanh(self.layer(x))
        u, v = z[..., i, :], z[..., j, :]
        return torch.tanh(self.score(torch.cat([(u - v).abs(), u * v], dim=-1))).squeeze(-1)


class EdgeTrust(nn.Module):
    r"""How far an edge is to be believed, by what its two ends say: :math:`w_e = \rho'(\lVert \hat x_i - \hat x_j\rVert^2)`, rows at length one.

    The weight that a robust penalty :math:`\rho` gives to the difference of the features *as they came*: 1 where they agree, less where they differ, and with
    :class:`~unspool.Capped` none from its scale on. The squared distance of two rows of length one is 2 − 2 cos, so between bags of words
    that share nothing it is 2. Nothing is learnt. The order is that of :func:`~unspool.graph.edge_list`, the rows of B.

    Two nodes with few words may share none and still belong together. With ``smoothings`` they are compared by their
    neighbourhoods: features are first replaced by means over neighbours, each weighed by its cosine, so that a neighbour that says something else
    counts for little there, too.

    Args:
        penalty: ρ, such as ``us.Capped(2.0)``.
        smoothings: how often features are smoothed before they are compared.

    Example:
        >>> import torch, unspool as us
        >>> words = torch.tensor([[1.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
        >>> us.nn.EdgeTrust(us.Capped(2.0))(words, us.graph.path(3))
        tensor([1., 0.])
    """

    def __init__(self, penalty: Penalty, smoothings: int = 0) -> None:
        super().__init__()
        self.penalty, self.smoothings = penalty, smoothings

    def forward(self, features: Any, graph: Graph) -> Tensor:
        """The weights, shape (..., edges)."""
        return self.penalty.slope(unit_distances(features_of(features), graph, self.smoothings))


def unit_distances(x: Tensor | SparseFeatures, graph: Graph, smoothings: int = 0) -> Tensor:
    """Squared distances across edges, rows brought to length one; a row of zeros stays where it is.

    With ``smoothings`` the rows are, that many times, replaced by means over neighbours, before they are compared at length one.

    Computed once for the same features and graph, since no training changes them.

    Example:
        >>> import torch, unspool as us
        >>> unit_distances(torch.tensor([[2.0, 0.0], [0.0, 3.0], [0.0, 1.0]]), us.graph.path(3))
        tensor([2., 0.])
    """
    fixed = not torch.compiler.is_compiling() and not (isinstance(x, Tensor) and (x.requires_grad or x.is_inference()))
    version = x._version if fixed and isinstance(x, Tensor) else 0
    known = _KNOWN.get(graph) if fixed else None
    if known is None or known[0]() is not x or known[1] != version:
        known = (weakref.ref(x), version, {}) if fixed else None
        if known is not None:
            _KNOWN[graph] = known
    if known is not None and smoothings in known[2]:
        return known[2][smoothings]
    found = _smoothed_distances(x, graph, smoothings)
    if known is not None:
        known[2][smoothings] = found
    return found


def _smoothed_distances(x: Tensor | SparseFeatures, graph: Graph, smoothings: int) -> Tensor:
    """Each smoothing weighs neighbours by the cosine after those before it; in single precision at least, for x of half."""
    trust: list[Tensor] = []
    full = x.to(torch.float32) if x.dtype.itemsize < 4 else x
    with torch.autocast(x.device.type, enabled=False):
        found = _distances(full, graph, trust)
        for _ in range(smoothings):
            trust.append((1 - found / 2).clamp_min(0))
            found = _distances(full, graph, trust)
    return found.to(x.dtype)


def _distances(x: Tensor | SparseFeatures, graph: Graph, trust: list[Tensor]) -> Tensor:
    """‖x̂ᵢ‖² + ‖x̂ⱼ‖² − 2 cos, a few columns at a time, so that neither dense features nor their differences are ever whole in memory."""
    i, j = graph.incidence().forward.col.long().view(-1, 2).unbind(1)
    squares: Any = 0.0
    product: Any = 0.0
    for columns in _smoothed(x, _BLOCK // max(1, i.numel(), graph.nodes), trust, graph):
        squares = squares + columns.square().sum(-1)
        product = product + (columns[..., i, :] * columns[..., j, :]).sum(-1)
    length, there = _lengths(squares)
    cosine = product / (length[..., i] * length[..., j])
    return (there[..., i] + there[..., j] - 2 * cosine).clamp_min(0)


def _smoothed(x: Tensor | SparseFeatures, width: int, trust: list[Tensor], graph: Graph) -> Iterator[Tensor]:
    """Columns of the rows at length one after every smoothing; as they came where there is none, since lengths cancel."""
    if not trust:
        yield from _columns(x, width)
        return
    length, _ = _lengths(sum(columns.square().sum(-1) for columns in _columns(x, width)))
    ends = _edges_to_ends(graph, x.dtype)
    shares = [ends @ weights[..., None] for weights in trust]
    for columns in _columns(x, width):
        means = columns / length[..., None]
        for weights, share in zip(trust, shares, strict=True):
            both = ends @ (weights[..., None] * (ends.T @ means))  # the other end of every edge, and oneself as often
            means = (both + (_OWN - share) * means) / (_OWN + share)
        yield means


def _edges_to_ends(graph: Graph, dtype: torch.dtype) -> Operator:
    """Sums over the edges of every node."""
    b = graph.incidence()
    down, up = (csr._replace(val=torch.ones_like(csr.val, dtype=dtype)) for csr in (b.transpose, b.forward))
    return Operator(down, up, (b.shape[1], b.shape[0]))


def _lengths(squares: Any) -> tuple[Tensor, Tensor]:
    """Lengths of rows, 1 for those of zeros, and 1 or 0 for rows that have one."""
    return torch.where(squares > 0, squares, 1.0).sqrt(), (squares > 0).to(squares.dtype)


def _columns(x: Tensor | SparseFeatures, width: int) -> Iterator[Tensor]:
    count, width = int(x.shape[-1]), max(1, width)
    for first in range(0, count, width):
        last = min(first + width, count)
        if isinstance(x, SparseFeatures):
            pick = torch.zeros(count, last - first, dtype=x.dtype, device=x.device)
            pick[first:last] = torch.eye(last - first, dtype=x.dtype, device=x.device)
            yield x @ pick
        else:
            yield x[..., first:last]
