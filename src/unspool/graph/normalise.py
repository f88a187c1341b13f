"""How raw edge weights become the operator A."""

from __future__ import annotations

from enum import Enum

import torch
from torch import Tensor

from unspool.graph.adjacency import Adjacency
from unspool.graph.compress import Block, Rows, blocks, rows_in
from unspool.ops import Operator
from unspool.ops.operator import Csr, compressed


class Normalisation(Enum):
    """What is done to the weights W with their degrees d (the row sums of W, self-loops included).

    ``SYMMETRIC``: A = D^(-1/2) W D^(-1/2), the paper's choice. ``RANDOM_WALK``: A = D^(-1) W, whose rows sum to one.
    ``NONE``: A = W.

    Example:
        >>> import torch, unspool as us
        >>> path = us.graph.path(3, normalise=us.Normalisation.RANDOM_WALK)
        >>> path.to_dense().sum(dim=1)
        tensor([1., 1., 1.])
    """

    SYMMETRIC = "symmetric"
    RANDOM_WALK = "random-walk"
    NONE = "none"


def check_normalisation(how: object) -> None:
    """Refuse what says in another way how A is made."""
    if not isinstance(how, Normalisation):
        raise TypeError(f"normalise={how!r}: expected Normalisation.SYMMETRIC, RANDOM_WALK or NONE")


def operator_of(w: Adjacency, degree: Tensor, how: Normalisation, dtype: torch.dtype) -> Operator:
    """A as an operator on the device of W: computed in float64 and rounded once; nodes without any edge get zeros, not infinities."""
    forward = compressed(w.forward.crow, w.forward.col, _values(w.forward, degree, how, dtype, turned=False))
    if w.symmetric and (how is not Normalisation.RANDOM_WALK or stays_symmetric(w, degree, how)):
        return Operator(forward, forward, (w.nodes, w.nodes))
    values = _values(w.transpose, degree, how, dtype, turned=True)
    transpose = Csr(forward.crow, forward.col, values, forward.hubs) if w.symmetric else None
    if transpose is None:
        transpose = compressed(w.transpose.crow, w.transpose.col, values)
    return Operator(forward, transpose, (w.nodes, w.nodes))


def stays_symmetric(w: Adjacency, degree: Tensor, how: Normalisation) -> bool:
    """Whether A equals its transpose, bit for bit in float64."""
    if not w.symmetric or how is not Normalisation.RANDOM_WALK:
        return w.symmetric
    crow, col, weight = w.forward
    inverse = inverse_of(degree).to(col.device)
    for block in blocks(crow):
        row, to = rows_in(crow, block), col[block.start : block.stop].long()
        share = 1.0 if weight is None else weight[block.start : block.stop].double()
        if not torch.equal(inverse[row] * share, inverse[to] * share):
            return False
    return True


def _values(rows: Rows, degree: Tensor, how: Normalisation, dtype: torch.dtype, turned: bool) -> Tensor:
    """The entries of A, or of its transpose, block by block."""
    factor = factor_of(degree, how).to(rows.col.device)
    out = torch.empty(rows.col.numel(), dtype=dtype, device=rows.col.device)
    for block in blocks(rows.crow):
        out[block.start : block.stop] = block_values(rows, block, factor, how, turned)
    return out


def factor_of(degree: Tensor, how: Normalisation) -> Tensor:
    """What the rows of W are multiplied by, and under symmetric normalisation its columns: one float64 for each node."""
    if how is Normalisation.NONE:
        return torch.empty(0, dtype=torch.float64)
    inverse = inverse_of(degree)
    return inverse if how is Normalisation.RANDOM_WALK else inverse.sqrt()


def block_values(rows: Rows, block: Block, factor: Tensor, how: Normalisation, turned: bool = False) -> Tensor:
    """The entries of A, or of its transpose, in a block of rows of W, in float64."""
    weight = None if rows.beside is None else rows.beside[block.start : block.stop].double()
    if how is Normalisation.NONE:
        count = block.stop - block.start
        return torch.ones(count, dtype=torch.float64, device=rows.col.device) if weight is None else weight
    row, col = rows_in(rows.crow, block), rows.col[block.start : block.stop].long()
    one_sided = how is Normalisation.RANDOM_WALK
    # The order of the products keeps A exactly symmetric in floating point.
    value = factor[col if turned else row] if one_sided else factor[row] * factor[col]
    return value if weight is None else weight * value


def inverse_of(degree: Tensor) -> Tensor:
    """1 / d, and 0 where d is."""
    return torch.where(degree > 0, 1.0 / degree, torch.zeros_like(degree))
