"""A polynomial of the graph in which every hop has a signal of its own."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from unspool.ops.operator import HasOperator
from unspool.ops.polynomial import Basis
from unspool.ops.spmm import spmm
from unspool.ops.spread_operator import SpreadOperator, spread_gather


def gather(graph: HasOperator, pages: Sequence[Tensor], basis: Basis = Basis.POWERS) -> Tensor:
    r"""Bring signals in from as far as their number says: :math:`\sum_k A^k Y_k`.

    By Horner's rule, or Clenshaw's for Chebyshev polynomials of A: as many sparse products as the degree, which keep nothing
    for the backward pass. :func:`~unspool.ops.polynomial.propagate` is the case Yₖ = X cₖ.

    Args:
        graph: a ``Graph`` (or any square :class:`~unspool.ops.operator.Operator`).
        pages: Y₀ ... Y_K, each of shape (..., nodes, features).
        basis: powers of A, or Chebyshev polynomials of A.

    Example:
        >>> import torch, unspool as us
        >>> here, there = torch.tensor([[9.0], [0.0], [0.0], [0.0]]), torch.tensor([[0.0], [0.0], [3.0], [0.0]])
        >>> gather(us.graph.ring(4), [here, there]).flatten()
        tensor([9., 1., 1., 1.])
    """
    chebyshev, operator = basis is Basis.CHEBYSHEV, graph.operator
    if isinstance(operator, SpreadOperator) and pages[0].ndim == 2:
        return spread_gather(operator, torch.stack(list(pages), 1), chebyshev)
    y, lagged = pages[-1], None
    for k in reversed(range(len(pages) - 1)):
        moved = spmm(graph, y)
        now = pages[k] + (2 * moved if chebyshev and k > 0 else moved)
        if lagged is not None:
            now = now - lagged
        y, lagged = now, y if chebyshev else None
    return y
