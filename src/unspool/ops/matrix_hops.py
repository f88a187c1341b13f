"""Narrow signals with matrices as hop coefficients: all hops side by side, so that channels are mixed once and not per hop.

A product of a thousand rows with a matrix of seven columns takes BLAS as long as one with seventy. So X c₀ ... X c_K are one
product, and so are both gradients of a sweep; the hops between move whole rows. This needs room for K + 1 signals while it
runs, and keeps none of it. It is used where that room is a part of the cache.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor
from torch.nn import functional

from unspool.ops.kernels import HasStep, step_for
from unspool.ops.operator import Csr
from unspool.ops.padded_matmul import round_width

#: Widths are multiples of this: sparse products of eight columns are no slower than of five.
_ROUND = 8


def memory_needed(x: Tensor, hops: Tensor) -> int:
    """The bytes that one block needs."""
    return x.shape[0] * hops.shape[0] * _rounded(hops.shape[-1]) * x.element_size()


def series(csr: Csr, x: Tensor, hops: Tensor, chebyshev: bool, limit: int) -> Tensor:
    """Σₖ pₖ(M) X cₖ for X of shape (nodes, blocks, in) and matrices (hops, blocks, in, out)."""
    out, mixing = hops.shape[3], _mixing(hops)
    result = x.new_empty(x.shape[0], x.shape[1], out)
    for some in _parts(x, hops, limit):
        bases = x.new_empty(x.shape[0], some.stop - some.start, hops.shape[0], _rounded(out))
        for i, block in enumerate(range(some.start, some.stop)):
            torch.mm(x[:, block], mixing[block], out=bases[:, i].view(x.shape[0], -1))
        result[:, some] = clenshaw(csr, bases, chebyshev)[..., :out]
    return result


def clenshaw(csr: Csr | HasStep, bases: Tensor, chebyshev: bool) -> Tensor:
    """Σₖ pₖ(M) Yₖ for Y of shape (nodes, blocks, hops, width)."""
    step = step_for(bases, csr)
    y, lagged, spare = bases[:, :, -1].clone(memory_format=torch.contiguous_format), None, None
    for k in reversed(range(bases.shape[2] - 1)):
        now = torch.empty_like(y) if spare is None else spare
        now.copy_(bases[:, :, k])
        scale = 2.0 if chebyshev and k > 0 else 1.0
        step(csr, _flat(y), _flat(now), scale, _flat(now), None, None if lagged is None else _flat(lagged))
        y, lagged, spare = (now, y, lagged) if chebyshev else (now, None, y)
    return y


def sweep(
    csr_t: Csr, g: Tensor, x: Tensor, hops: Tensor, chebyshev: bool, want_dx: bool, limit: int
) -> tuple[Tensor, Tensor]:
    """Both gradients of :func:`series`."""
    nodes, inner, out = x.shape[0], x.shape[2], hops.shape[3]
    mixing = _mixing(hops).transpose(1, 2)
    mixing = functional.pad(mixing, (0, round_width(inner, x) - inner)) if want_dx else mixing
    dx = x.new_empty(x.shape if want_dx else 0)
    dhops = torch.empty_like(hops, memory_format=torch.contiguous_format)
    for some in _parts(x, hops, limit):
        walked = walk(csr_t, functional.pad(g[:, some], (0, _rounded(out) - out)), hops.shape[0], chebyshev)
        for i, block in enumerate(range(some.start, some.stop)):
            each = walked[:, i].view(nodes, -1)
            if want_dx:
                dx[:, block] = torch.mm(each, mixing[block])[:, :inner]
            found = torch.mm(x[:, block].T, each).view(inner, hops.shape[0], -1)
            dhops[:, block] = found[..., :out].transpose(0, 1)
    return dx, dhops


def walk(csr_t: Csr | HasStep, start: Tensor, hops: int, chebyshev: bool) -> Tensor:
    """Uₖ = pₖ(Mᵀ) G for all k, shape (nodes, blocks, hops, width)."""
    step = step_for(start, csr_t)
    u, lagged, spare = start.contiguous(), None, None
    first = u
    walked = u.new_empty(u.shape[0], u.shape[1], hops, u.shape[2])
    walked[:, :, 0] = u
    for k in range(1, hops):
        now = torch.empty_like(u) if spare is None or spare is first else spare  # the first may be the caller's
        scale = 2.0 if chebyshev and k > 1 else 1.0
        step(csr_t, _flat(u), _flat(now), scale, None, None, None if lagged is None else _flat(lagged))
        u, lagged, spare = (now, u, lagged) if chebyshev else (now, None, u)
        walked[:, :, k] = u
    return walked


def _mixing(hops: Tensor) -> Tensor:
    """All matrices of a block in one, shape (blocks, in, hops · width)."""
    wide = functional.pad(hops, (0, _rounded(hops.shape[3]) - hops.shape[3]))
    return wide.permute(1, 2, 0, 3).reshape(hops.shape[1], hops.shape[2], -1)


def _parts(x: Tensor, hops: Tensor, limit: int) -> Iterator[slice]:
    """Blocks that fit into the limit together."""
    many = max(limit // max(memory_needed(x, hops), 1), 1)
    for first in range(0, x.shape[1], many):
        yield slice(first, min(first + many, x.shape[1]))


def _rounded(width: int) -> int:
    return -(-width // _ROUND) * _ROUND


def _flat(x: Tensor) -> Tensor:
    return x.view(x.shape[0], x.shape[1] * x.shape[2])
