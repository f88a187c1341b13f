"""A score split over hops and nodes: exactly where the network is linear, to first order where it is not."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum
from typing import Any

import torch
from torch import Tensor

from unspool.explain.score import Head, Readout
from unspool.graph import Graph
from unspool.ops import Basis, Operator
from unspool.ops.solve import shifted_solve
from unspool.spectral.linear_form import Hops, Minimiser

#: So many terms of the Neumann series of an exact minimiser are told apart; the others are one last line.
SERIES = 10


class Method(Enum):
    """How a score was split.

    ``EXACT``: the network is linear in the encoded features, and the parts sum to the score. ``FIRST_ORDER``: gradient ×
    input; what is missing from the sum is the remainder.
    """

    EXACT = "exact"
    FIRST_ORDER = "first order"


@dataclass(frozen=True, eq=False)
class Split:
    r"""Who contributed how much to a score.

    For a linear network and a linear decoder with weight w, the contribution of hop k and node j to the score of node i is
    :math:`p_k(A)_{ij}\, z_j C_k w`, where z are the encoded features; for the others that of node j is
    :math:`\langle \partial s/\partial z_j, z_j\rangle`.

    Attributes:
        nodes: the nodes that contribute, ascending, shape (reached,); the explained one is among them.
        total: the contribution of each, shape (reached,), float64.
        by_hop: the same by hop, shape (hops, reached), or None where there are no hops to tell apart.
        hops: a name for each hop.
        slope: the derivative of the score by the node's own encoded features, shape (features,).
        fidelity: the part of the node's own features that passed no entry of A (see
            :class:`~unspool.explain.Parts`), or None.
        bias: what the decoder adds whatever the features.
        method: whether all this is exact.
        note: half a sentence on why it is not, or what the hops are.
    """

    nodes: Tensor
    total: Tensor
    by_hop: Tensor | None
    hops: tuple[str, ...]
    slope: Tensor
    fidelity: float | None
    bias: float
    method: Method
    note: str = ""


def split_polynomial(z: Tensor, operator: Operator, node: int, found: Hops, head: Head) -> Split:
    """Σₖ pₖ(A) Z cₖ, one row of it: as many sparse products with a single column as there are hops."""
    c, w = found.coefficients, head.weight
    directions = w[:, None] * c if c.ndim == 1 else (c * w).T if c.ndim == 2 else (c @ w).T
    rows = _rows(operator, node, c.shape[0], found.basis)
    powers = found.basis is Basis.POWERS
    at_zero = torch.tensor([float(k == 0) if powers else math.cos(k * math.pi / 2) for k in range(c.shape[0])])
    note = "" if powers else "hop k is the Chebyshev polynomial Tₖ(A), which reaches nodes up to k edges away"
    return _joined(z, node, rows, directions, at_zero.to(torch.float64), head.bias, None, note)


def split_minimiser(z: Tensor, graph: Graph, node: int, found: Minimiser, head: Head) -> Split | None:
    r"""−R (P + λQ)⁻¹ with numbers: one solve for the row, and its Neumann series :math:`\sum_k q^k S^k` told apart by k.

    None for matrices on channels, whose row is one of matrices.
    """
    stencil = found.stencil
    if not stencil.plain or any(isinstance(t, Tensor) for t in stencil.maps):
        return None
    own, smooth, given = (float(t) for t in (stencil.h, stencil.lh, stencil.x))
    pull = smooth * graph.scale
    whole, operator = own + pull, graph.require_laplacian()
    if whole <= abs(pull) or not operator.symmetric:
        return None
    start = torch.zeros(graph.nodes, 1, dtype=torch.float64)
    start[node] = 1.0
    row = shifted_solve(operator, -given * start, whole, pull, 1e-12)[:, 0]
    terms = [
        (place, value * (-given / whole * (pull / whole) ** k))
        for k, (place, value) in enumerate(_rows(operator, node, SERIES + 1, Basis.POWERS))
    ]
    for place, value in terms:
        row[place] -= value
    rest = torch.nonzero(row).flatten()
    at_zero = torch.zeros(SERIES + 2, dtype=torch.float64)
    at_zero[0] = -given / whole
    # The fidelity is z_i w (−R)/(P + Q): in `_joined` the first direction is the plain w, so the factor stands in at_zero.
    directions = head.weight[:, None].expand(-1, SERIES + 2)
    note = "hop k is the k-th term of the minimiser's Neumann series"
    return _joined(z, node, [*terms, (rest, row[rest])], directions, at_zero, head.bias, f"> {SERIES}", note)


def split_gradient(
    z: Tensor, graph: Graph, node: int, propagation: Any, p_pos: Any, score: Readout, head: Head | None, reason: str
) -> Split:
    """Gradient × input by ordinary backpropagation: exact for linear networks (reason is empty), else to first order."""
    leaf = z.detach().clone().requires_grad_()
    with torch.enable_grad():
        value = score.of(p_pos(propagation(leaf, graph))[node])
        (slope,) = torch.autograd.grad(value, leaf, allow_unused=True, materialize_grads=True)
    slope, plain = (t.detach().to("cpu", torch.float64) for t in (slope, leaf))
    seen = (slope != 0).any(1)
    seen[node] = True
    nodes = torch.nonzero(seen).flatten()
    total = (slope[nodes] * plain[nodes]).sum(1)
    linear = reason == "" and head is not None
    bias = head.bias if head is not None and linear else 0.0
    method = Method.EXACT if linear else Method.FIRST_ORDER
    return Split(nodes, total, None, (), slope[node], None, bias, method, reason)


# -- inside ------------------------------------------------------------------------------------------------------------

#: The entries of a row that are not zero: where, and what.
_Row = tuple[Tensor, Tensor]


def _rows(operator: Operator, node: int, count: int, basis: Basis) -> list[_Row]:
    """Row ``node`` of p₀(A), p₁(A), ..., by products of Aᵀ with one column; only what is not zero is kept."""
    back, now = operator.T, torch.zeros(operator.shape[0], 1, dtype=torch.float64)
    now[node] = 1.0
    before, rows = now, []
    for k in range(count):
        place = torch.nonzero(now[:, 0]).flatten()
        rows.append((place, now[place, 0]))
        if k + 1 < count:
            ahead = back @ now
            if basis is Basis.CHEBYSHEV and k > 0:
                ahead = 2 * ahead - before
            before, now = now, ahead
    return rows


def _joined(
    z: Tensor,
    node: int,
    rows: list[_Row],
    directions: Tensor,
    at_zero: Tensor,
    bias: float,
    last: str | None,
    note: str,
) -> Split:
    """Contributions out of rows of the graph, shape (hops, nodes), and directions on channels, shape (features, hops)."""
    nodes = torch.unique(torch.cat([place for place, _ in rows]))
    reach = torch.zeros(len(rows), nodes.numel(), dtype=torch.float64)
    for k, (place, value) in enumerate(rows):
        reach[k, torch.searchsorted(nodes, place)] = value
    features = z[nodes.to(z.device)].to("cpu", torch.float64)
    by_hop = reach * (features @ directions).T
    own = int(torch.searchsorted(nodes, torch.tensor(node)))
    names = [str(k) for k in range(len(rows))]
    hops = (*names[:-1], names[-1] if last is None else last)
    fidelity = float(features[own] @ (directions @ at_zero))
    slope = directions @ reach[:, own]
    return Split(nodes, by_hop.sum(0), by_hop, hops, slope, fidelity, bias, Method.EXACT, note)
