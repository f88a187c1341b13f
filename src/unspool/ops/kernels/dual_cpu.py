"""The dual step of edges on the CPU: pieces of the edges that stay in the cache; see :mod:`unspool.ops.dual_step`."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from unspool.ops.column_pieces import cache_bytes
from unspool.ops.kernels import cpu
from unspool.ops.operator import Csr

#: Rows of a piece: several tensors of that height have a place in the cache.
_SHARE = 16


def step(csr: Csr, z: Tensor, ahead: Tensor, size: Tensor, radius: Tensor, cut: int) -> Tensor:
    """Z + σ B H, cut, for signals (rows, blocks, channels) and numbers (groups of blocks,)."""
    out, (signal, scale) = torch.empty_like(z), _scaled(ahead, size)
    far = _column(radius, z.shape[1])
    for first, last, part in _pieces(csr, z):
        rows = out[first:last]
        _differences(part, signal, rows, scale, z[first:last])
        if cut == 0:
            rows.mul_(_shrunk(rows, far)[1])
        else:
            torch.clamp(rows, -far, far, out=rows)
    return out


def step_backward(
    csr: Csr,
    along: Tensor | None,
    down: Tensor | None,
    z: Tensor,
    ahead: Tensor,
    size: Tensor,
    radius: Tensor,
    cut: int,
) -> tuple[Tensor, Tensor]:
    """The gradient of what is cut, from those of the new Z and of Bᵀ Z, and that of the radius, block by block."""
    back, (signal, scale) = torch.empty_like(z), _scaled(ahead, size)
    far = _column(radius, z.shape[1])
    lean = z.new_zeros(z.shape[1])
    scratch = z.new_empty(2, _rows(z), *z.shape[1:])
    for first, last, part in _pieces(csr, z):
        (value, product), grad = scratch[:, : last - first], back[first:last]
        _differences(part, signal, value, scale, z[first:last])
        given = None if along is None else along[first:last]
        if down is None:
            assert given is not None
            grad.copy_(given)
        else:
            _differences(part, down, grad, 1.0, given)
        if cut == 0:
            length, factor, outside = _shrunk(value, far)
            found = torch.mul(value, grad, out=product).sum(-1, keepdim=True)
            found = torch.where(outside, found / length, 0.0)
            lean += found.sum((0, 2))
            grad.mul_(factor).addcmul_(value, found * far / (length * length), value=-1.0)
        else:
            above, below = value > far, value < -far
            lean += (grad * (above.to(grad.dtype) - below.to(grad.dtype))).sum((0, 2))
            grad.masked_fill_(above | below, 0.0)
    return back, lean


def _shrunk(rows: Tensor, far: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Lengths of rows (1 for those inside the ball), what cuts them to the radius, and whether they are outside."""
    length = torch.linalg.vector_norm(rows, dim=-1, keepdim=True)
    outside = length > far
    length = torch.where(outside, length, 1.0)
    return length, torch.where(outside, far / length, 1.0), outside


def _differences(csr: Csr, signal: Tensor, out: Tensor, scale: float, base: Tensor | None) -> None:
    flat = None if base is None else base.flatten(1)
    cpu.step(csr, signal.flatten(1), out.view(out.shape[0], -1), scale, flat, None, None)


def _scaled(ahead: Tensor, size: Tensor) -> tuple[Tensor, float]:
    """The signal and the number that its differences are multiplied with."""
    return (ahead, float(size)) if size.shape[0] == 1 else (ahead * _column(size, ahead.shape[1]), 1.0)


def _column(number: Tensor, blocks: int) -> Tensor:
    return number[:, None].expand(-1, blocks // number.shape[0]).reshape(-1, 1)


def _rows(z: Tensor) -> int:
    """How many edges a piece has."""
    return min(max(cache_bytes() // _SHARE // (z.shape[1] * z.shape[2] * z.element_size()), 64), z.shape[0])


def _pieces(csr: Csr, z: Tensor) -> Iterator[tuple[int, int, Csr]]:
    """Some rows of the matrix after others."""
    rows = _rows(z)
    for first in range(0, z.shape[0], rows):
        last = min(first + rows, z.shape[0])
        start, stop = int(csr.crow[first]), int(csr.crow[last])
        crow = (csr.crow[first : last + 1] - start).to(csr.col.dtype)
        yield first, last, Csr(crow, csr.col[start:stop], csr.val[start:stop], csr.hubs)
