"""What the denoiser changed at a node: its features, its prediction, and its share of the objective."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from unspool.explain.node import row_of
from unspool.graph import Graph, Normalisation
from unspool.objective import Fidelity, Given, Ridge, RowSparseFidelity, Smoothness
from unspool.objective.channel import rank
from unspool.ops import SparseFeatures
from unspool.unrolling import Unrolled


@dataclass(frozen=True, eq=False)
class Change:
    """A node's encoded features before the denoiser and after it, and its outputs with all edges cut.

    Attributes:
        before: z, what the encoder makes of the node's own features, shape (channels,), float64.
        after: h, what the denoiser makes of z and the graph.
        alone: the outputs of the same network on the node alone, all its edges cut (its self-loop stays); None for
            networks with numbers of their own per node or edge, which run on no other graph.

    Example:
        >>> import torch
        >>> change = Change(torch.tensor([3.0, 0.0]), torch.tensor([0.0, 4.0]), torch.zeros(2))
        >>> change.distance, change.cosine
        (5.0, 0.0)
    """

    before: Tensor
    after: Tensor
    alone: Tensor | None

    @property
    def comparable(self) -> bool:
        """Whether both have the same channels; layers that change the width leave nothing to compare."""
        return self.before.shape == self.after.shape

    @property
    def distance(self) -> float | None:
        """‖h − z‖."""
        return float(torch.linalg.vector_norm(self.after - self.before)) if self.comparable else None

    @property
    def cosine(self) -> float | None:
        """The cosine of the angle between z and h; None where one of them is zero."""
        if not self.comparable:
            return None
        size = float(torch.linalg.vector_norm(self.before)) * float(torch.linalg.vector_norm(self.after))
        return float(self.before @ self.after) / size if size > 0 else None


@dataclass(frozen=True)
class TermShare:
    """One node's share of one term of the objective, before the denoiser (at H = Z) and after it.

    Shares of all nodes sum to the term: ‖hᵢ − zᵢ‖² times the weight for a fidelity, and for smoothness half of each of the
    node's edges.
    """

    term: str
    before: float
    after: float


def term_shares(propagation: Any, z: Tensor, h: Tensor, graph: Graph, node: int) -> tuple[TermShare, ...]:
    r"""The node's share of each term, where the objective is a sum of plain terms with known numbers; else nothing.

    Smoothness of a node: :math:`\tfrac\beta2\sum_{j\ne i} W_{ij}\lVert h_i/\sqrt{d_i} - h_j/\sqrt{d_j}\rVert^2`.
    """
    if not isinstance(propagation, Unrolled) or z.shape != h.shape or propagation.objective.per_layer:
        return ()
    given = Given(z, graph, propagation.values(1))
    found: list[TermShare] = []
    for term in propagation.objective.terms:
        plain = isinstance(term, Fidelity | Smoothness | Ridge | RowSparseFidelity)
        if not plain or not _is_one(getattr(term, "metric", None), given):
            return ()
        if isinstance(term, Smoothness) and not (graph.undirected and graph.normalisation is Normalisation.SYMMETRIC):
            return ()
        weight = float(given[term.weight])  # type: ignore[attr-defined]
        values = [weight * _at_node(term, signal, z, graph, node) for signal in (z, h)]
        found.append(TermShare(term.formula(), *values))
    return tuple(found)


def _is_one(metric: Any, given: Given) -> bool:
    if metric is None:
        return True
    value = given[metric]
    return rank(value) == 0 and float(value) == 1.0


def _at_node(term: Any, h: Tensor, z: Tensor, graph: Graph, node: int) -> float:
    row = h[node].to("cpu", torch.float64)
    if isinstance(term, Ridge):
        return float(row.square().sum())
    offset = row - z[node].to("cpu", torch.float64)
    if isinstance(term, Fidelity):
        return float(offset.square().sum())
    if isinstance(term, RowSparseFidelity):
        return float(torch.linalg.vector_norm(offset))
    seen, value = row_of(graph.operator, node)
    kept = seen != node
    seen, value = seen[kept], value[kept].to("cpu", torch.float64)
    others = h[seen].to("cpu", torch.float64)
    mine, theirs = graph.degree[node].sqrt(), graph.degree[seen.cpu()].sqrt()
    gaps = (row / mine - others / theirs[:, None]).square().sum(1)  # degrees of nodes with edges are positive
    return 0.5 * float((value * mine * theirs * gaps).sum())


@dataclass(frozen=True, eq=False)
class Features:
    """The raw features of a node behind its own contribution to the score: gradient × input through the encoder.

    Attributes:
        columns: which features, those that are not zero, ascending, shape (features,).
        values: what the node has there.
        shares: the contribution of each. They sum to the node's own contribution, less ``rest``.
        rest: what comes from the encoder's biases.
        names: the features' names, or their numbers.
    """

    columns: Tensor
    values: Tensor
    shares: Tensor
    rest: float
    names: tuple[str, ...]

    def largest(self, count: int) -> list[int]:
        """Places of the largest shares by size, in ``columns``."""
        return torch.argsort(self.shares.abs(), descending=True, stable=True)[:count].tolist()


def feature_shares(
    p_pre: Any, x: Tensor | SparseFeatures, node: int, z: Tensor, slope: Tensor, names: Any = None
) -> Features | None:
    """Send the score's slope back through the encoder; None where the encoder looks at more than the node's own row."""
    row = raw_row(x, node)
    like = z[node]
    leaf = row.detach().clone().to(like.device, like.dtype)[None].requires_grad_()
    with torch.enable_grad():
        encoded = p_pre(leaf)
        size = float(torch.linalg.vector_norm(like)) + 1.0
        if encoded.shape != (1, *like.shape) or float((encoded[0].detach() - like).abs().max()) > 1e-4 * size:
            return None
        (grad,) = torch.autograd.grad((encoded[0] * slope.to(like.device, like.dtype)).sum(), leaf)
    share, plain = (t[0].detach().to("cpu", torch.float64) for t in (grad * leaf, leaf))
    columns = torch.nonzero(plain).flatten()
    own = float(like.detach().to("cpu", torch.float64) @ slope)
    called = tuple(str(int(c)) if names is None else str(names[int(c)]) for c in columns)
    return Features(columns, plain[columns], share[columns], own - float(share.sum()), called)


def raw_row(x: Tensor | SparseFeatures, node: int) -> Tensor:
    """One node's features as a plain vector."""
    if not isinstance(x, SparseFeatures):
        return x[node]
    columns, values = row_of(x.operator, node)
    row = torch.zeros(x.shape[1], dtype=x.dtype, device=x.device)
    row[columns] = values
    return row
