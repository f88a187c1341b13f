"""Sums of signals, each weighed by a gate per node, over all trials in one pass, on an NVIDIA GPU; see :mod:`unspool.ops.gated_sum`."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from unspool.ops.kernels.tiles_cuda import add_pieces, ready, tiles


@triton.jit
def _gate(y, s, t):
    return tl.sigmoid(tl.sum(y * s[None], axis=2) + t[None, :])


@triton.jit(do_not_specialize=["nodes", "blocks", "share", "each", "pages", "page"])
def _forward(
    signals, gate, shift, out, nodes, blocks, share, each, pages, page,
    CHANNELS: tl.constexpr, WIDE: tl.constexpr, NODES: tl.constexpr, BLOCKS: tl.constexpr,
):  # fmt: skip
    block, channel = tl.program_id(0) * BLOCKS + tl.arange(0, BLOCKS), tl.arange(0, WIDE)
    ours = (block < blocks)[:, None] & (channel < CHANNELS)[None, :]
    s = tl.load(gate + (block // share)[:, None] * CHANNELS + channel[None, :], mask=ours, other=0.0)
    t = tl.load(shift + block // share, mask=block < blocks, other=0.0)
    spot = block[:, None] * CHANNELS + channel[None, :]
    piece = tl.program_id(1)
    for begin in range(piece * each, tl.minimum((piece + 1) * each, nodes), NODES):
        node = begin + tl.arange(0, NODES)
        there = (node < nodes)[:, None, None] & ours[None]
        place = node.to(tl.int64)[:, None, None] * (blocks * CHANNELS) + spot[None]
        total = tl.zeros([NODES, BLOCKS, WIDE], dtype=tl.float32)
        here = place
        for _ in range(0, pages):
            y = tl.load(signals + here, mask=there, other=0.0)
            total += _gate(y, s, t)[:, :, None] * y
            here += page
        tl.store(out + place, total, mask=there)


@triton.jit(do_not_specialize=["nodes", "blocks", "share", "each", "pages", "page"])
def _backward(
    grad, signals, gate, shift, back, partial, nodes, blocks, share, each, pages, page,
    SIGNALS: tl.constexpr, GATE: tl.constexpr, CHANNELS: tl.constexpr, WIDE: tl.constexpr, NODES: tl.constexpr, BLOCKS: tl.constexpr,
):  # fmt: skip
    """The gradients of all signals and, piece by piece, of the gate and its shift."""
    block, channel = tl.program_id(0) * BLOCKS + tl.arange(0, BLOCKS), tl.arange(0, WIDE)
    ours = (block < blocks)[:, None] & (channel < CHANNELS)[None, :]
    s = tl.load(gate + (block // share)[:, None] * CHANNELS + channel[None, :], mask=ours, other=0.0)
    t = tl.load(shift + block // share, mask=block < blocks, other=0.0)
    spot = block[:, None] * CHANNELS + channel[None, :]
    piece = tl.program_id(1)
    back_s = tl.zeros([NODES, BLOCKS, WIDE], dtype=tl.float32)
    back_t = tl.zeros([NODES, BLOCKS], dtype=tl.float32)
    for begin in range(piece * each, tl.minimum((piece + 1) * each, nodes), NODES):
        node = begin + tl.arange(0, NODES)
        there = (node < nodes)[:, None, None] & ours[None]
        here = node.to(tl.int64)[:, None, None] * (blocks * CHANNELS) + spot[None]
        g = tl.load(grad + here, mask=there, other=0.0)
        for _ in range(0, pages):
            y = tl.load(signals + here, mask=there, other=0.0)
            passed = _gate(y, s, t)
            lean = tl.sum(g * y, axis=2) * passed * (1.0 - passed)
            if SIGNALS:
                tl.store(back + here, passed[:, :, None] * g + lean[:, :, None] * s[None], mask=there)
            if GATE:
                back_s += lean[:, :, None] * y
                back_t += lean
            here += page
    if GATE:
        mine = partial + (piece.to(tl.int64) * blocks + block) * (CHANNELS + 1)
        tl.store(mine[:, None] + channel[None, :], tl.sum(back_s, axis=0), mask=ours)
        tl.store(mine + CHANNELS, tl.sum(back_t, axis=0), mask=block < blocks)


def gated_sum(signals: Tensor, gate: Tensor, shift: Tensor) -> Tensor:
    """Signals (pages, nodes, blocks, channels), a gate (channels,) and a shift for each group of blocks."""
    signals = ready(signals)
    pages, nodes, blocks, channels = signals.shape
    out, walk = signals.new_empty(nodes, blocks, channels), tiles(nodes, blocks, channels)
    with torch.cuda.device(signals.device):
        _forward[walk.grid](
            signals, gate.contiguous(), shift.contiguous(), out, nodes, blocks, blocks // shift.shape[0], walk.each,
            pages, out.numel(), **walk.sizes,
        )  # fmt: skip
    return out


def gated_sum_backward(
    grad: Tensor, signals: Tensor, gate: Tensor, shift: Tensor, wants_signals: bool, wants_gate: bool
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of the signals, of the gate and of the shift; nothing where nobody wants them."""
    grad, signals = ready(grad), ready(signals)
    pages, nodes, blocks, channels = signals.shape
    groups, walk = shift.shape[0], tiles(nodes, blocks, channels)
    back = torch.empty_like(signals) if wants_signals else signals.new_empty(0)
    partial = signals.new_empty(walk.pieces if wants_gate else 0, blocks, channels + 1)
    with torch.cuda.device(signals.device):
        _backward[walk.grid](
            grad, signals, gate.contiguous(), shift.contiguous(), back, partial, nodes, blocks, blocks // groups,
            walk.each, pages, nodes * blocks * channels, SIGNALS=wants_signals, GATE=wants_gate, **walk.sizes,
        )  # fmt: skip
        if not wants_gate:
            return back, grad.new_empty(0), grad.new_empty(0)
        lean = add_pieces(partial, groups)
    return back, lean[:, :channels].clone(), lean[:, channels].clone()
