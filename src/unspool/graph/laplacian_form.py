"""How the Laplacian BᵀB comes from A: where there is none, and S with L = ℓ (I − S) where nothing is normalised."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from unspool.graph.adjacency import Adjacency, assembled, loops_of, row_sums
from unspool.graph.compress import Rows, blocks, rows_in, starts_of
from unspool.graph.normalise import Normalisation, stays_symmetric
from unspool.ops import Operator
from unspool.ops.operator import compressed

#: Why a graph has no incidence matrix where models put I − A in the place of its Laplacian.
NOT_NORMALISED = (
    "this graph is not normalised, so I − A, which models put in the place of its Laplacian, is not BᵀB; "
    "build it with Normalisation.SYMMETRIC"
)


class LaplacianForm(NamedTuple):
    """How L comes from A: L = scale · (I − S).

    Attributes:
        symmetric: whether A equals its transpose.
        scale: the number in that relation.
        plain: row sums of W without loops, of which S is made; None where S is A.
        why_none: why there is no L = BᵀB; None where there is.
    """

    symmetric: bool
    scale: float
    plain: Tensor | None
    why_none: str | None


def laplacian_form(w: Adjacency, degree: Tensor, how: Normalisation) -> LaplacianForm:
    """How L comes from the weights W with these degrees under a normalisation.

    Example:
        >>> import unspool as us
        >>> plain = us.graph.star(4, normalise=us.Normalisation.NONE)
        >>> laplacian_form(plain.adjacency, plain.degree, us.Normalisation.NONE).scale
        3.0
    """
    symmetric = stays_symmetric(w, degree, how)
    reason = _why_no_laplacian(w.symmetric, symmetric, degree, how)
    plain = row_sums(w.forward, loops_of(w.forward)) if how is Normalisation.NONE and reason is None else None
    return LaplacianForm(symmetric, _scale(plain), plain, reason)


def form_of_sums(undirected: bool, degree: Tensor, plain: Tensor | None, how: Normalisation) -> LaplacianForm:
    """The same from row sums of all of W alone, where A is symmetric as soon as W is: not for regular graphs under random walks.

    Args:
        undirected: whether W equals its transpose.
        degree: row sums of W.
        plain: the same without loops, where nothing is normalised and W is symmetric.
        how: the normalisation.
    """
    symmetric = undirected and how is not Normalisation.RANDOM_WALK
    reason = _why_no_laplacian(undirected, symmetric, degree, how)
    return LaplacianForm(symmetric, _scale(plain), plain, reason)


def _scale(plain: Tensor | None) -> float:
    return 1.0 if plain is None or float(plain.max()) <= 0 else float(plain.max())


def _why_no_laplacian(undirected: bool, symmetric: bool, degree: Tensor, how: Normalisation) -> str | None:
    if not undirected:
        return "this graph is directed, so no Laplacian BᵀB exists and smoothness is not defined; build it without directed=True"
    if how is Normalisation.RANDOM_WALK and not symmetric:
        return "under random-walk normalisation I − A is not symmetric, so it is not BᵀB; use Normalisation.SYMMETRIC (same eigenvalues)"
    bare = torch.nonzero(degree == 0).flatten()
    if how is not Normalisation.NONE and bare.numel():
        return (
            f"node {int(bare[0])} has no edge and no self-loop, so I − A is not BᵀB there; build the graph with loops=1"
        )
    return None


def rescaled(w: Adjacency, plain: Tensor, scale: float, dtype: torch.dtype) -> Operator:
    """S with D − W = ℓ (I − S) and the spectrum of S in [-1, 1].

    Args:
        w: symmetric weights.
        plain: their row sums, loops left out.
        scale: ℓ, the largest of them (Gershgorin: λ ≤ 2 max d).
        dtype: of the entries.
    """
    rows, diagonal = _with_diagonal(w), (1.0 - plain / scale).to(w.forward.col.device)
    value = torch.empty(rows.col.numel(), dtype=dtype, device=rows.col.device)
    for block in blocks(rows.crow):
        row, col = rows_in(rows.crow, block), rows.col[block.start : block.stop]
        weight = None if rows.beside is None else rows.beside[block.start : block.stop].double()
        share = torch.ones_like(diagonal[row]) if weight is None else weight
        value[block.start : block.stop] = torch.where(row == col, diagonal[row], share / scale)
    csr = compressed(rows.crow, rows.col, value)
    return Operator(csr, csr, (w.nodes, w.nodes))


def diagonal_entries(matrix: Operator) -> Tensor:
    """The diagonal of a sparse matrix."""
    row, val = matrix.rows(), matrix.forward.val
    own = row == matrix.forward.col.long()
    return val.new_zeros(matrix.shape[0]).index_add(0, row[own], val[own])


def _with_diagonal(w: Adjacency) -> Rows:
    """The rows of W with an entry on the diagonal for every node; what stands there counts for nothing."""
    if w.loops == w.nodes:
        return w.forward
    crow, col, weight = w.forward
    own = loops_of(w.forward)
    off = torch.cat([rows_in(crow, b) != col[b.start : b.stop] for b in blocks(crow)]) if col.numel() else col.bool()
    part = Rows(starts_of(crow.diff() - own.int()), col[off], None if weight is None else weight[off].double())
    every = torch.ones_like(own)
    rows = assembled([part], every, None if weight is None else every.double())
    return Rows(rows.crow.to(crow.dtype), rows.col, rows.beside)
