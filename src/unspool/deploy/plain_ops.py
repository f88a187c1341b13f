"""The package's own operators written in those of torch, so that an exported program needs nothing but torch."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from unspool.errors import IncompatibleError

#: Terms of a solve that are written out one by one; more would make a program of many thousand operations.
MOST_TERMS = 400
#: What is left out of the series of a solve, relative to the right-hand side.
_LEFT_OUT = 1e-10


def resolvent_terms(p: float, q: float) -> list[float]:
    r"""Chebyshev coefficients of :math:`1/(p - q t)` on [-1, 1], as many as matter.

    .. math:: \frac{1}{p - q t} = \frac{1}{\sqrt{p^2 - q^2}} \Bigl(1 + 2 \sum_{k \ge 1} r^k T_k(t)\Bigr),
              \qquad r = \frac{p - \sqrt{p^2 - q^2}}{q}

    Args:
        p: must exceed the size of q.
        q: of either sign.

    Example:
        >>> terms = resolvent_terms(1.0, 0.5)
        >>> t = 0.3
        >>> abs(sum(c * math.cos(k * math.acos(t)) for k, c in enumerate(terms)) - 1 / (1 - 0.5 * t)) < 1e-9
        True
    """
    if q == 0:
        return [1 / p]
    root = math.sqrt(p * p - q * q)
    ratio = (p - root) / q
    # What is left out sums to less than 2 rⁿ / (1 − r), in units of the first coefficient.
    count = math.ceil(math.log(_LEFT_OUT * (1 - abs(ratio)) / 2) / math.log(abs(ratio)))
    if count > MOST_TERMS:
        raise IncompatibleError(
            f"the exact solve of this network needs {count} terms, and {MOST_TERMS} are the most that a file can hold; train it with a "
            "larger teleport, or unrolled"
        )
    return [1 / root, *(2 * ratio**k / root for k in range(1, count + 1))]


def plain_ops() -> dict[Any, Callable[..., Tensor]]:
    """What each operator of the package is in terms of torch's, for ``ExportedProgram.run_decompositions``.

    Rows of entries are worked out once for each matrix, however often it is multiplied with, so a table serves one program.

    Example:
        >>> sorted(op.name() for op in plain_ops())
        ['unspool::propagate', 'unspool::solve', 'unspool::spmm']
    """
    rows: dict[int, Tensor] = {}
    held: list[Tensor] = []  # an id is one tensor's as long as it lives

    def product(crow: Tensor, col: Tensor, val: Tensor, x: Tensor) -> Tensor:
        if id(crow) not in rows:
            every = torch.arange(crow.shape[0] - 1, device=crow.device)
            rows[id(crow)] = torch.repeat_interleave(every, crow.diff(), output_size=col.shape[0])
            held.append(crow)
        flat = x.reshape(x.shape[0], -1)
        terms = flat.index_select(0, col) * val.unsqueeze(1)
        summed = flat.new_zeros(crow.shape[0] - 1, flat.shape[1]).index_add(0, rows[id(crow)], terms)
        return summed.reshape(summed.shape[0], *x.shape[1:])

    def spmm(*args: Any) -> Tensor:
        crow, col, val = args[:3]
        return product(crow, col, val, args[8])

    def series(crow: Tensor, col: Tensor, val: Tensor, weighed: list[Tensor], chebyshev: bool) -> Tensor:
        """Σₖ pₖ(M) Yₖ by Horner's rule or Clenshaw's."""
        y, lagged = weighed[-1], None
        for k in reversed(range(len(weighed) - 1)):
            scale = 2.0 if chebyshev and k > 0 else 1.0
            found = scale * product(crow, col, val, y) + weighed[k]
            y, lagged = found if lagged is None else found - lagged, y if chebyshev else None
        return y

    def propagate(*args: Any) -> Tensor:
        crow, col, val = args[:3]
        x, hops, chebyshev = args[8:]
        return series(crow, col, val, [_weigh(x, c) for c in hops.unbind(0)], chebyshev)

    def solve(*args: Any) -> Tensor:
        crow, col, val, _, right, p, q, *_ = args
        return series(crow, col, val, [c * right for c in resolvent_terms(p, q)], chebyshev=True)

    ours = torch.ops.unspool
    return {ours.spmm.default: spmm, ours.propagate.default: propagate, ours.solve.default: solve}


def _weigh(x: Tensor, c: Tensor) -> Tensor:
    """X c for one hop, by blocks: c is a number (blocks,), a diagonal (blocks, features) or a matrix (blocks, in, out)."""
    if c.ndim == 3:
        return torch.bmm(x.transpose(0, 1), c).transpose(0, 1)
    return x * (c.unsqueeze(1) if c.ndim == 1 else c)
