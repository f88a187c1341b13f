"""Proximal operators of rows and entries over all trials in one pass, on an NVIDIA GPU; see :mod:`unspool.ops.pull`."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from unspool.ops.kernels.tiles_cuda import add_pieces, ready, tiles


@triton.jit
def _outside(offset, rho):
    """Rows that are farther off than the radius, and how far off they are."""
    squared = tl.sum(offset * offset, axis=2)
    outside = squared > rho * rho
    return outside, tl.sqrt(tl.where(outside, squared, 1.0))


@triton.jit(do_not_specialize=["nodes", "blocks", "share", "each"])
def _forward(
    h, centre, radius, out, nodes, blocks, share, each,
    HOW: tl.constexpr, CENTRE: tl.constexpr, CHANNELS: tl.constexpr, WIDE: tl.constexpr, NODES: tl.constexpr, BLOCKS: tl.constexpr,
):  # fmt: skip
    """HOW 0: rows towards the centre; 1: rows into the ball; 2: entries towards zero."""
    block, channel = tl.program_id(0) * BLOCKS + tl.arange(0, BLOCKS), tl.arange(0, WIDE)
    rho = tl.load(radius + block // share, mask=block < blocks, other=0.0)[None, :]
    ours = (block < blocks)[:, None] & (channel < CHANNELS)[None, :]
    spot = block[:, None] * CHANNELS + channel[None, :]
    piece = tl.program_id(1)
    for begin in range(piece * each, tl.minimum((piece + 1) * each, nodes), NODES):
        node = begin + tl.arange(0, NODES)
        there = (node < nodes)[:, None, None] & ours[None]
        place = node.to(tl.int64)[:, None, None] * (blocks * CHANNELS) + spot[None]
        value = tl.load(h + place, mask=there, other=0.0)
        if HOW == 2:
            far = rho[:, :, None]
            result = tl.maximum(value - far, 0.0) - tl.maximum(-value - far, 0.0)
        elif HOW == 1:
            outside, length = _outside(value, rho)
            result = value * tl.where(outside, rho / length, 1.0)[:, :, None]
        else:
            middle = tl.zeros([NODES, BLOCKS, WIDE], dtype=tl.float32)
            if CENTRE:
                middle = tl.load(centre + place, mask=there, other=0.0)
            offset = value - middle
            outside, length = _outside(offset, rho)
            result = middle + tl.where(outside, 1.0 - rho / length, 0.0)[:, :, None] * offset
        tl.store(out + place, result, mask=there)


@triton.jit(do_not_specialize=["nodes", "blocks", "share", "each"])
def _backward(
    grad, h, centre, radius, back, rest, partial, nodes, blocks, share, each,
    HOW: tl.constexpr, CENTRE: tl.constexpr, REST: tl.constexpr, RADIUS: tl.constexpr,
    CHANNELS: tl.constexpr, WIDE: tl.constexpr, NODES: tl.constexpr, BLOCKS: tl.constexpr,
):  # fmt: skip
    """The gradients of h, of the centre (what is left of the given one) and, piece by piece, of the radius."""
    block, channel = tl.program_id(0) * BLOCKS + tl.arange(0, BLOCKS), tl.arange(0, WIDE)
    rho = tl.load(radius + block // share, mask=block < blocks, other=0.0)[None, :]
    ours = (block < blocks)[:, None] & (channel < CHANNELS)[None, :]
    spot = block[:, None] * CHANNELS + channel[None, :]
    piece = tl.program_id(1)
    lean = tl.zeros([NODES, BLOCKS], dtype=tl.float32)
    for begin in range(piece * each, tl.minimum((piece + 1) * each, nodes), NODES):
        node = begin + tl.arange(0, NODES)
        there = (node < nodes)[:, None, None] & ours[None]
        place = node.to(tl.int64)[:, None, None] * (blocks * CHANNELS) + spot[None]
        g = tl.load(grad + place, mask=there, other=0.0)
        offset = tl.load(h + place, mask=there, other=0.0)
        if HOW == 2:
            far = rho[:, :, None]
            above, below = tl.where(offset > far, g, 0.0), tl.where(-offset > far, g, 0.0)
            moved = above + below
            if RADIUS:
                lean += tl.sum(tl.where(there, below - above, 0.0), axis=2)
        else:
            if CENTRE:
                offset -= tl.load(centre + place, mask=there, other=0.0)
            outside, length = _outside(offset, rho)
            along = tl.sum(offset * g, axis=2) / length
            turn = (along * (rho / length) / length)[:, :, None] * offset
            if HOW == 1:
                moved = tl.where(outside[:, :, None], (rho / length)[:, :, None] * g - turn, g)
            else:
                moved = tl.where(outside[:, :, None], (1.0 - rho / length)[:, :, None] * g + turn, 0.0)
                along = -along
            if RADIUS:
                lean += tl.where(outside, along, 0.0)
        tl.store(back + place, moved, mask=there)
        if REST:
            tl.store(rest + place, g - moved, mask=there)
    if RADIUS:
        tl.store(partial + piece.to(tl.int64) * blocks + block, tl.sum(lean, axis=0), mask=block < blocks)


def pull(how: int, h: Tensor, radius: Tensor, centre: Tensor | None) -> Tensor:
    """The operator on a signal (nodes, blocks, channels) with one radius for each group of blocks."""
    h = ready(h)
    middle = h if centre is None else ready(centre)
    out, walk = torch.empty_like(h), tiles(*h.shape)
    with torch.cuda.device(h.device):
        _forward[walk.grid](
            h, middle, radius.contiguous(), out, h.shape[0], h.shape[1], h.shape[1] // radius.shape[0], walk.each,
            HOW=how, CENTRE=centre is not None, **walk.sizes,
        )  # fmt: skip
    return out


def pull_backward(
    how: int, grad: Tensor, h: Tensor, radius: Tensor, centre: Tensor | None, wants_radius: bool
) -> tuple[Tensor, Tensor, Tensor | None]:
    """Gradients of h, of the radius (as nothing, where nobody wants it) and of the centre."""
    grad, h = ready(grad), ready(h)
    middle = h if centre is None else ready(centre)
    nodes, blocks, _ = h.shape
    walk, back = tiles(*h.shape), torch.empty_like(h)
    rest = None if centre is None else torch.empty_like(h)
    partial = h.new_empty(walk.pieces if wants_radius else 0, blocks, 1)
    with torch.cuda.device(h.device):
        _backward[walk.grid](
            grad, h, middle, radius.contiguous(), back, back if rest is None else rest, partial,
            nodes, blocks, blocks // radius.shape[0], walk.each,
            HOW=how, CENTRE=centre is not None, REST=centre is not None, RADIUS=wants_radius, **walk.sizes,
        )  # fmt: skip
        lean = add_pieces(partial, radius.shape[0])[:, 0] if wants_radius else h.new_empty(0)
    return back, lean, rest
