"""The way back of a layer with few outputs, number by number: a dozen operations an element, where tiles of the matrix units take eighty.

Signals have shape (nodes, blocks, channels). A thread keeps sums of its own rows until the piece of nodes ends, so nothing is
exchanged between threads before; pieces are added in order.
"""

from __future__ import annotations

import triton
import triton.language as tl

from unspool.ops.kernels.masks_cuda import drops, survive_in_row

#: The most outputs: a thread has a sum for each of them and each of its elements of a tile, eight in 64 channels. Measured on an H200, a whole epoch of
#: UGDGNN: 5.8 % less with 3 outputs, 3.5 with 5, 3.4 with 7, none with 8, and 1.3 % more with 15.
MOST = 7


def shape(tile: int) -> dict[str, int]:
    """The rows of a tile of so many channels, and its warps.

    Example:
        >>> shape(64)
        {'ROWS': 16, 'num_warps': 4}
    """
    return {"ROWS": max(1024 // tile, 8), "num_warps": 4}


@triton.jit(do_not_specialize=["nodes", "blocks", "views", "each", "size"])
def back(
    x, bias, rate, key, count, weight, grad, out, partial, nodes, blocks, views, each, size, WIDTH: tl.constexpr, TILE: tl.constexpr,
    OUT: tl.constexpr, BIAS: tl.constexpr, RELU: tl.constexpr, DROPS: tl.constexpr, SHIFT: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """dW = hᵀ dz, dc = Σ dz, dx = dz Wᵀ where h survived and was positive, db = Σ dx; partial sums lie as W, c, b."""
    block, piece = tl.program_id(0), tl.program_id(1)
    own = (block // views).to(tl.int64)
    col = tl.arange(0, TILE)
    wide = col < WIDTH
    b = tl.zeros([TILE], dtype=tl.float32)
    if BIAS:
        b = tl.load(bias + own * WIDTH + col, mask=wide, other=0.0)
    word, threshold, scale = drops(rate, key, count, block, DROPS)
    none, nothing = tl.zeros([ROWS, TILE], dtype=tl.float32), tl.zeros([ROWS], dtype=tl.float32)
    weights, back_w, back_c = (), (), ()
    for o in tl.static_range(OUT):
        weights += (tl.load(weight + (own * WIDTH + col) * OUT + o, mask=wide, other=0.0),)
        back_w += (none,)
        back_c += (nothing,)
    back_b = none
    for begin in range(piece * each, tl.minimum((piece + 1) * each, nodes), ROWS):
        node = begin + tl.arange(0, ROWS)
        there = (node < nodes) & (node < (piece + 1) * each)
        inside = there[:, None] & wide[None, :]
        row = node.to(tl.int64) * blocks + block
        place = row[:, None] * WIDTH + col[None, :]
        h = tl.load(x + place, mask=inside, other=0.0) + b[None, :]
        kept = inside
        if RELU:
            kept = h > 0
            h = tl.maximum(h, 0.0)
        if DROPS:
            kept = kept & survive_in_row(node, 0, word, threshold, ROWS, TILE)
            h = tl.where(kept, h * scale, 0.0)
        dh = none
        sums_w, sums_c = (), ()
        for o in tl.static_range(OUT):
            dz = tl.load(grad + row * OUT + o, mask=there, other=0.0)
            dh += dz[:, None] * weights[o][None, :]
            sums_w += (back_w[o] + h * dz[:, None],)
            sums_c += (back_c[o] + dz,)
        back_w, back_c = sums_w, sums_c
        if RELU or DROPS:
            dh = tl.where(kept, dh * scale, 0.0)
        back_b += dh
        tl.store(out + place, dh, mask=inside)
    mine = partial + (piece.to(tl.int64) * blocks + block) * size
    for o in tl.static_range(OUT):
        tl.store(mine + col * OUT + o, tl.sum(back_w[o], axis=0), mask=wide)
        if SHIFT:
            tl.store(mine + WIDTH * OUT + o, tl.sum(back_c[o], axis=0))
    if BIAS:
        tl.store(mine + WIDTH * OUT + (OUT if SHIFT else 0) + col, tl.sum(back_b, axis=0), mask=wide)
