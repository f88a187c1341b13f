"""One hop and one matrix per block on an NVIDIA GPU: the rows that a hop brings go into the matrix units at once.

Signals have shape (nodes, blocks, channels), matrices (groups, in, out), shared by blocks in a row, numbers (blocks,). Rows of the graph are taken in the order
of their lengths, so that the rows of a tile end together.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from unspool.ops.kernels import product_cuda
from unspool.ops.kernels.product_cuda import Drop, Tuned, thinned


class Rows(NamedTuple):
    """A sparse matrix in compressed rows, and its rows in the order of their lengths, long ones first."""

    crow: Tensor
    col: Tensor
    val: Tensor
    order: Tensor


#: Rows of a tile, warps of a program, and entries of a row in flight.
FORWARD, BACKWARD = Tuned(64, 4, 3), Tuned(32, 4, 3)


@triton.jit
def _gathered(
    crow, col, val, h, row, there, block, blocks, WIDTH: tl.constexpr, TILE: tl.constexpr, ROWS: tl.constexpr, STAGES: tl.constexpr,
    UNROLL: tl.constexpr,
):  # fmt: skip
    """Σ A[row, s] h[s] for some rows of one block, entry after entry."""
    i = tl.arange(0, TILE)
    first = tl.load(crow + row, mask=there, other=0)
    length = tl.load(crow + row + 1, mask=there, other=0) - first
    total = tl.zeros([ROWS, TILE], dtype=tl.float32)
    for n in tl.range(0, tl.max(length, axis=0), num_stages=STAGES, loop_unroll_factor=UNROLL):
        on = n < length
        source = tl.load(col + first + n, mask=on, other=0)
        factor = tl.load(val + first + n, mask=on, other=0.0)
        place = (source.to(tl.int64) * blocks + block)[:, None] * WIDTH + i[None, :]
        total += factor[:, None] * tl.load(h + place, mask=on[:, None] & (i < WIDTH)[None, :], other=0.0)
    return total


@triton.jit(do_not_specialize=["nodes", "blocks", "share", "tiles"])
def _forward(
    crow, col, val, order, h, base, weight, hop, give, y, out, rate, key, count, nodes, blocks, share, tiles,
    INSIDE: tl.constexpr, OUTSIDE: tl.constexpr, IN: tl.constexpr, OUT: tl.constexpr, ROWS: tl.constexpr, RELU: tl.constexpr,
    DROP: tl.constexpr, KEEP: tl.constexpr, PRECISION: tl.constexpr, STAGES: tl.constexpr, UNROLL: tl.constexpr,
):  # fmt: skip
    """Some tiles of one block: Y = hop A h + give base, kept where it is needed again; then Y T, ReLU, dropout."""
    block, piece = tl.program_id(1), tl.program_id(0)
    i, j = tl.arange(0, IN), tl.arange(0, OUT)
    place = ((block // share).to(tl.int64) * INSIDE + i[:, None]) * OUTSIDE + j[None, :]
    w = tl.load(weight + place, mask=(i < INSIDE)[:, None] & (j < OUTSIDE)[None, :], other=0.0)
    a, b = tl.load(hop + block), tl.load(give + block)
    for tile in tl.range(piece, tiles, tl.num_programs(0), num_stages=1):
        number = tile * ROWS + tl.arange(0, ROWS)
        there = number < nodes
        row = tl.load(order + number, mask=there, other=0)
        at = (row.to(tl.int64) * blocks + block)[:, None]
        here = there[:, None] & (i < INSIDE)[None, :]
        moved = _gathered(crow, col, val, h, row, there, block, blocks, INSIDE, IN, ROWS, STAGES, UNROLL)
        moved = a * moved + b * tl.load(base + at * INSIDE + i[None, :], mask=here, other=0.0)
        if KEEP:
            tl.store(y + at * INSIDE + i[None, :], moved, mask=here)
        z = tl.dot(moved, w, input_precision=PRECISION)
        if RELU:
            z = tl.where(z <= 0, 0.0, z)  # a NaN stays one
        if DROP:
            z = thinned(z, row, j, rate, key, count, block)
        tl.store(out + at * OUTSIDE + j[None, :], z, mask=there[:, None] & (j < OUTSIDE)[None, :])


@triton.jit(do_not_specialize=["nodes", "blocks", "tiles"])
def _moved(
    crow, col, val, order, h, hop, out, nodes, blocks, tiles, WIDTH: tl.constexpr, TILE: tl.constexpr, ROWS: tl.constexpr,
    STAGES: tl.constexpr, UNROLL: tl.constexpr,
):  # fmt: skip
    """One tile of one block: hop A h."""
    tile, block = tl.program_id(0), tl.program_id(1)
    number = tile * ROWS + tl.arange(0, ROWS)
    there = number < nodes
    row = tl.load(order + number, mask=there, other=0)
    i = tl.arange(0, TILE)
    total = _gathered(crow, col, val, h, row, there, block, blocks, WIDTH, TILE, ROWS, STAGES, UNROLL)
    place = (row.to(tl.int64) * blocks + block)[:, None] * WIDTH + i[None, :]
    tl.store(out + place, total * tl.load(hop + block), mask=there[:, None] & (i < WIDTH)[None, :])


def forward(
    a: Rows, h: Tensor, base: Tensor, weight: Tensor, hop: Tensor, give: Tensor, relu: bool, drop: Drop | None, keep: bool,
    tuned: Tuned = FORWARD,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """(D(ReLU(Y T)), Y) with Y = hop A h + give base; Y is empty unless it is to be kept."""
    nodes, blocks, inside = base.shape
    out = h.new_empty(nodes, blocks, weight.shape[2])
    y = h.new_empty(base.shape if keep else 0)
    if out.numel() == 0:
        return out, y
    tiles = triton.cdiv(nodes, tuned.rows)
    with torch.cuda.device(h.device):
        _forward[(min(tiles, 2 * product_cuda.PIECES), blocks)](
            *a, h, base, weight, hop, give, y, out, *(drop or (h, h, h)), nodes, blocks, blocks // weight.shape[0], tiles,
            **product_cuda.shape(inside, weight.shape[2]), ROWS=tuned.rows, RELU=relu, DROP=drop is not None, KEEP=keep,
            PRECISION=product_cuda.PRECISION, **tuned.loop, **tuned.launch,
        )  # fmt: skip
    return out, y


def moved(a: Rows, h: Tensor, hop: Tensor, tuned: Tuned = BACKWARD) -> Tensor:
    """hop A h for every block."""
    nodes, blocks, width = a.crow.numel() - 1, h.shape[1], h.shape[2]
    out = h.new_empty(nodes, blocks, width)
    if out.numel():
        tiles = triton.cdiv(nodes, tuned.rows)
        tile = max(triton.next_power_of_2(width), 16)
        with torch.cuda.device(h.device):
            _moved[(tiles, blocks)](
                *a, h, hop, out, nodes, blocks, tiles, WIDTH=width, TILE=tile, ROWS=tuned.rows, **tuned.loop, **tuned.launch,
            )  # fmt: skip
    return out
