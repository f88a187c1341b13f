"""The dual step of edges over all trials in one pass, on an NVIDIA GPU; see :mod:`unspool.ops.dual_step`.

Every row of the matrix has two entries, the ends of an edge. A program takes a stretch of edges and a few blocks, as in
:mod:`unspool.ops.kernels.tiles_cuda`, and sums never depend on the number of blocks.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from unspool.ops.kernels.tiles_cuda import add_pieces, ready, tiles
from unspool.ops.operator import Csr


@triton.jit
def _difference(signal, col, val, edge, known, there, spot, row):
    """Σ over the two ends of an edge: entry times signal."""
    total = tl.zeros(there.shape, dtype=tl.float32)
    for end in tl.static_range(2):
        node = tl.load(col + 2 * edge + end, mask=known, other=0).to(tl.int64)
        entry = tl.load(val + 2 * edge + end, mask=known, other=0.0)
        place = node[:, None, None] * row + spot[None]
        total += entry[:, None, None] * tl.load(signal + place, mask=there, other=0.0)
    return total


@triton.jit
def _lengths(value, far):
    """Lengths of rows, 1 for those inside the ball, and which are outside."""
    squared = tl.sum(value * value, axis=2)
    outside = squared > far * far
    return outside, tl.sqrt(tl.where(outside, squared, 1.0))


@triton.jit(do_not_specialize=["edges", "blocks", "steps", "radii", "each"])
def _forward(
    col, val, z, ahead, size, radius, out, edges, blocks, steps, radii, each,
    CUT: tl.constexpr, CHANNELS: tl.constexpr, WIDE: tl.constexpr, NODES: tl.constexpr, BLOCKS: tl.constexpr,
):  # fmt: skip
    block, channel = tl.program_id(0) * BLOCKS + tl.arange(0, BLOCKS), tl.arange(0, WIDE)
    step = tl.load(size + block // steps, mask=block < blocks, other=0.0)[None, :, None]
    far = tl.load(radius + block // radii, mask=block < blocks, other=0.0)[None, :]
    ours = (block < blocks)[:, None] & (channel < CHANNELS)[None, :]
    spot = block[:, None] * CHANNELS + channel[None, :]
    piece, row = tl.program_id(1), blocks * CHANNELS
    for begin in range(piece * each, tl.minimum((piece + 1) * each, edges), NODES):
        edge = begin + tl.arange(0, NODES).to(tl.int64)
        known = edge < edges
        there = known[:, None, None] & ours[None]
        place = edge[:, None, None] * row + spot[None]
        value = tl.load(z + place, mask=there, other=0.0)
        value += step * _difference(ahead, col, val, edge, known, there, spot, row)
        if CUT == 0:
            outside, length = _lengths(value, far)
            value *= tl.where(outside, far / length, 1.0)[:, :, None]
        else:
            value = tl.minimum(tl.maximum(value, -far[:, :, None]), far[:, :, None])
        tl.store(out + place, value, mask=there)


@triton.jit(do_not_specialize=["edges", "blocks", "steps", "radii", "each"])
def _backward(
    col, val, along, down, z, ahead, size, radius, back, partial, edges, blocks, steps, radii, each,
    CUT: tl.constexpr, ALONG: tl.constexpr, DOWN: tl.constexpr,
    CHANNELS: tl.constexpr, WIDE: tl.constexpr, NODES: tl.constexpr, BLOCKS: tl.constexpr,
):  # fmt: skip
    """The gradient of what was cut, made again from what it was made of, and piece by piece that of the radius."""
    block, channel = tl.program_id(0) * BLOCKS + tl.arange(0, BLOCKS), tl.arange(0, WIDE)
    step = tl.load(size + block // steps, mask=block < blocks, other=0.0)[None, :, None]
    far = tl.load(radius + block // radii, mask=block < blocks, other=0.0)[None, :]
    ours = (block < blocks)[:, None] & (channel < CHANNELS)[None, :]
    spot = block[:, None] * CHANNELS + channel[None, :]
    piece, row = tl.program_id(1), blocks * CHANNELS
    lean = tl.zeros([NODES, BLOCKS], dtype=tl.float32)
    for begin in range(piece * each, tl.minimum((piece + 1) * each, edges), NODES):
        edge = begin + tl.arange(0, NODES).to(tl.int64)
        known = edge < edges
        there = known[:, None, None] & ours[None]
        place = edge[:, None, None] * row + spot[None]
        value = tl.load(z + place, mask=there, other=0.0)
        value += step * _difference(ahead, col, val, edge, known, there, spot, row)
        grad = tl.zeros(there.shape, dtype=tl.float32)
        if ALONG:
            grad += tl.load(along + place, mask=there, other=0.0)
        if DOWN:
            grad += _difference(down, col, val, edge, known, there, spot, row)
        if CUT == 0:
            outside, length = _lengths(value, far)
            found = tl.where(outside, tl.sum(value * grad, axis=2) / length, 0.0)
            lean += found
            turn = found * (far / length) / length
            grad = tl.where(outside, far / length, 1.0)[:, :, None] * grad - turn[:, :, None] * value
        else:
            above, below = value > far[:, :, None], value < -far[:, :, None]
            lean += tl.sum(tl.where(above, grad, 0.0) - tl.where(below, grad, 0.0), axis=2)
            grad = tl.where(above | below, 0.0, grad)
        tl.store(back + place, grad, mask=there)
    tl.store(partial + piece.to(tl.int64) * blocks + block, tl.sum(lean, axis=0), mask=block < blocks)


def step(csr: Csr, z: Tensor, ahead: Tensor, size: Tensor, radius: Tensor, cut: int) -> Tensor:
    """Z + σ B H, cut, for signals (rows, blocks, channels) and numbers (groups of blocks,)."""
    z, ahead = ready(z), ready(ahead)
    out, walk, blocks = torch.empty_like(z), tiles(*z.shape), z.shape[1]
    with torch.cuda.device(z.device):
        _forward[walk.grid](
            csr.col, csr.val, z, ahead, size.contiguous(), radius.contiguous(), out,
            z.shape[0], blocks, blocks // size.shape[0], blocks // radius.shape[0], walk.each, CUT=cut, **walk.sizes,
        )  # fmt: skip
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
    z, ahead = ready(z), ready(ahead)
    given = [z if g is None else ready(g) for g in (along, down)]
    walk, back, blocks = tiles(*z.shape), torch.empty_like(z), z.shape[1]
    partial = z.new_empty(walk.pieces, blocks, 1)
    with torch.cuda.device(z.device):
        _backward[walk.grid](
            csr.col, csr.val, *given, z, ahead, size.contiguous(), radius.contiguous(), back, partial,
            z.shape[0], blocks, blocks // size.shape[0], blocks // radius.shape[0], walk.each,
            CUT=cut, ALONG=along is not None, DOWN=down is not None, **walk.sizes,
        )  # fmt: skip
        return back, add_pieces(partial, blocks)[:, 0]
