"""The way back through a series whose hops have masks of their own, for many trials on an NVIDIA GPU."""

from __future__ import annotations

import triton
import triton.language as tl

from unspool.ops.kernels.features_cuda import first_call, in_64, site_word, survives


@triton.jit
def each_gradient(
    sweep, coefficients, key, epoch, threshold, scale, depth, node, there, trial, trials, nodes, hops,
    CHANNELS: tl.constexpr, WIDE: tl.constexpr, ROWS: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """dz = Σ maskₖ ⊙ (Uₖ cₖᵀ) for some nodes of one trial."""
    channel = tl.arange(0, WIDE)
    inside = (channel < CHANNELS)[:, None] & (channel < CHANNELS)[None, :]
    own, first, limit = tl.load(key + trial), first_call(epoch, depth, trial), tl.load(threshold + trial)
    dz = tl.zeros([ROWS, WIDE], dtype=tl.float32)
    for k in range(hops):
        place = ((in_64(k, trial) * nodes + node[:, None]) * trials + trial) * CHANNELS + channel[None, :]
        u = tl.load(sweep + place, mask=there[:, None] & (channel < CHANNELS)[None, :], other=0.0)
        at = trial.to(tl.int64) * hops + k
        c = tl.load(
            coefficients + (at * CHANNELS + channel[None, :]) * CHANNELS + channel[:, None], mask=inside, other=0.0
        )
        kept = survives(node[:, None], channel[None, :], site_word(own, first + k), limit)
        dz += tl.where(kept, tl.dot(u, c, input_precision=PRECISION), 0.0)
    return dz * tl.load(scale + trial)


@triton.jit(do_not_specialize=["nodes", "trials", "hops", "rows_each"])
def each_backward(
    sweep, z, key, epoch, threshold, scale, depth, partial_coefficients, nodes, trials, hops, rows_each,
    CHANNELS: tl.constexpr, WIDE: tl.constexpr, ROWS: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """dcₖ = (maskₖ ⊙ z)ᵀ Uₖ for one hop of one trial, over a stretch of nodes."""
    hop, piece, trial = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    channel = tl.arange(0, WIDE)
    inside = (channel < CHANNELS)[None, :]
    word = site_word(tl.load(key + trial), first_call(epoch, depth, trial) + hop)
    limit = tl.load(threshold + trial)
    back = tl.zeros([WIDE, WIDE], dtype=tl.float32)
    for begin in range(piece * rows_each, tl.minimum((piece + 1) * rows_each, nodes), ROWS):
        node = begin + tl.arange(0, ROWS)
        there = ((node < nodes) & (node < (piece + 1) * rows_each))[:, None]
        row = node.to(tl.int64)[:, None] * trials + trial
        place = (hop.to(tl.int64) * nodes * trials + row) * CHANNELS + channel[None, :]
        u = tl.load(sweep + place, mask=there & inside, other=0.0)
        kept = survives(node[:, None], channel[None, :], word, limit)
        signal = tl.load(z + row * (2 * CHANNELS) + channel[None, :], mask=there & inside & kept, other=0.0)
        back += tl.dot(tl.trans(signal), u, input_precision=PRECISION)
    at = (piece.to(tl.int64) * trials + trial) * hops + hop
    place = (at * CHANNELS + channel[:, None]) * CHANNELS + channel[None, :]
    tl.store(partial_coefficients + place, back * tl.load(scale + trial), mask=(channel < CHANNELS)[:, None] & inside)
