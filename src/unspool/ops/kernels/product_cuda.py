"""Products with one small matrix per block on an NVIDIA GPU, through the matrix units at full precision.

Signals have shape (nodes, blocks, in), matrices (groups, in, out): blocks in a row share one. A program takes some rows of one block and loads its matrix
once. Sums over nodes are taken in a fixed number of pieces, which one program adds in order.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from unspool.ops.kernels.masks_cuda import drops, rate_limits, survive_in_row
from unspool.ops.kernels.tiles_cuda import BF16X6, add_pieces, each_of


class Tuned(NamedTuple):
    """How a kernel is cut up: rows of a tile, warps of a program, stages of its loop, registers that a thread may have."""

    rows: int
    warps: int
    stages: int = 1
    registers: int | None = None

    @property
    def launch(self) -> dict[str, int]:
        """Rows, warps, stages and registers as a kernel takes them."""
        plain = {"ROWS": self.rows, "STAGES": self.stages, "num_warps": self.warps}
        return plain | ({} if self.registers is None else {"maxnreg": self.registers})


# Measured on an H200 for 2,708 nodes, 400 blocks and 64 channels, in µs a block; a copy, which is two passes, takes 0.33.
# tf32x3 is as fast on the way forward, half as exact, and slower on the way back: 1.85.
#: Two passes in 0.57; two or three stages take 0.58 and 0.60, larger tiles 0.69.
FORWARD = Tuned(64, 4)
#: Six passes with a base in 1.39, four without one in 1.29; with as many registers as it likes it takes 1.61.
BACKWARD = Tuned(32, 4, registers=168)

#: Dropout of the result: rates, keys and numbers of the call, one for each block.
Drop = tuple[Tensor, Tensor, Tensor]


class Base(NamedTuple):
    """A signal of which a multiple was added to x: the factor, or one of each block, and the gradient it has from elsewhere."""

    give: Tensor | float
    passed: Tensor | None


@triton.jit(do_not_specialize=["nodes", "blocks", "share", "rows_each"])
def _forward(
    x, weight, out, rate, key, count, nodes, blocks, share, rows_each,
    INSIDE: tl.constexpr, OUTSIDE: tl.constexpr, IN: tl.constexpr, OUT: tl.constexpr, ROWS: tl.constexpr, RELU: tl.constexpr,
    DROP: tl.constexpr, PRECISION: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    """Some rows of one block: x T, then ReLU, then dropout."""
    block, piece = tl.program_id(0), tl.program_id(1)
    i, j = tl.arange(0, IN), tl.arange(0, OUT)
    place = ((block // share).to(tl.int64) * INSIDE + i[:, None]) * OUTSIDE + j[None, :]
    w = tl.load(weight + place, mask=(i < INSIDE)[:, None] & (j < OUTSIDE)[None, :], other=0.0)
    word, threshold, scale = drops(rate, key, count, block, DROP)
    end = tl.minimum((piece + 1) * rows_each, nodes)
    for begin in tl.range(piece * rows_each, end, ROWS, num_stages=STAGES):
        row = begin + tl.arange(0, ROWS)
        at = row.to(tl.int64)[:, None] * blocks + block
        there = (row < end)[:, None]
        v = tl.load(x + at * INSIDE + i[None, :], mask=there & (i < INSIDE)[None, :], other=0.0)
        h = tl.dot(v, w, input_precision=PRECISION)
        if RELU:
            h = tl.where(h <= 0, 0.0, h)  # a NaN stays one
        if DROP:
            # Infinities and NaNs vanish where they do not survive.
            h = tl.where(survive_in_row(row, 0, word, threshold, ROWS, OUT), h * scale, 0.0)
        tl.store(out + at * OUTSIDE + j[None, :], h, mask=there & (j < OUTSIDE)[None, :])


@triton.jit(do_not_specialize=["nodes", "blocks", "share", "rows_each"])
def _backward(
    grad, x, weight, out, rate, dx, partial, give, passed, dbase, nodes, blocks, share, rows_each,
    INSIDE: tl.constexpr, OUTSIDE: tl.constexpr, IN: tl.constexpr, OUT: tl.constexpr, ROWS: tl.constexpr, RELU: tl.constexpr,
    DROP: tl.constexpr, BASE: tl.constexpr, OWN: tl.constexpr, PASSED: tl.constexpr, PRECISION: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    """A piece of the nodes of one block: the gradient before ReLU and dropout, that of x, and a part of that of the matrix.

    BASE: x had a multiple of a base in it, whose gradient is added to the one that was ``passed`` on to it already.
    """
    block, piece = tl.program_id(0), tl.program_id(1)
    i, j = tl.arange(0, IN), tl.arange(0, OUT)
    place = ((block // share).to(tl.int64) * INSIDE + i[:, None]) * OUTSIDE + j[None, :]
    inside = (i < INSIDE)[:, None] & (j < OUTSIDE)[None, :]
    w = tl.trans(tl.load(weight + place, mask=inside, other=0.0))
    factor = 1.0
    if DROP:
        _, factor = rate_limits(tl.load(rate + block))
    total = tl.zeros([IN, OUT], dtype=tl.float32)
    end = tl.minimum((piece + 1) * rows_each, nodes)
    for begin in tl.range(piece * rows_each, end, ROWS, num_stages=STAGES):
        row = begin + tl.arange(0, ROWS)
        at = row.to(tl.int64)[:, None] * blocks + block
        there = (row < end)[:, None]
        here = there & (j < OUTSIDE)[None, :]
        g = tl.load(grad + at * OUTSIDE + j[None, :], mask=here, other=0.0)
        if RELU:
            h = tl.load(out + at * OUTSIDE + j[None, :], mask=here, other=0.0)
            g = tl.where(h <= 0, 0.0, g * factor)
        v = tl.load(x + at * INSIDE + i[None, :], mask=there & (i < INSIDE)[None, :], other=0.0)
        total += tl.dot(tl.trans(v), g, input_precision=PRECISION)
        back = tl.dot(g, w, input_precision=PRECISION)
        tl.store(dx + at * INSIDE + i[None, :], back, mask=there & (i < INSIDE)[None, :])
        if BASE:
            more = back * (tl.load(give + block) if OWN else give)
            if PASSED:
                more += tl.load(passed + at * INSIDE + i[None, :], mask=there & (i < INSIDE)[None, :], other=0.0)
            tl.store(dbase + at * INSIDE + i[None, :], more, mask=there & (i < INSIDE)[None, :])
    own = (piece.to(tl.int64) * blocks + block) * INSIDE
    tl.store(partial + (own + i[:, None]) * OUTSIDE + j[None, :], total, mask=inside)


def product(x: Tensor, weight: Tensor, relu: bool, drop: Drop | None, tuned: Tuned = FORWARD) -> Tensor:
    """x T for every block, then ReLU, then dropout; x is (nodes, blocks, in), contiguous."""
    nodes, blocks, inside = x.shape
    outside = weight.shape[2]
    out = x.new_empty(nodes, blocks, outside)
    if out.numel() == 0:
        return out
    each, pieces = _pieces(nodes, tuned.rows)
    with torch.cuda.device(x.device):
        _forward[(blocks, pieces)](
            x, weight, out, *(drop or (x, x, x)), nodes, blocks, blocks // weight.shape[0], each,
            **shape(inside, outside), RELU=relu, DROP=drop is not None, PRECISION=BF16X6, **tuned.launch,
        )  # fmt: skip
    return out


def gradients(
    grad: Tensor, x: Tensor, weight: Tensor, out: Tensor, relu: bool, rate: Tensor | None, base: Base | None = None,
    tuned: Tuned = BACKWARD,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """The gradients of x, of the matrices and of the base in x; ``rate`` is that of the dropout of the result."""
    nodes, blocks, inside = x.shape
    outside = weight.shape[2]
    dx, dbase = torch.empty_like(x), x.new_empty(0 if base is None else x.shape)
    give, passed = base or (x, None)
    if x.numel() == 0 or grad.numel() == 0:
        return (
            dx.zero_(),
            torch.zeros_like(weight),
            dbase.zero_() if base is None or base.passed is None else base.passed,
        )
    each, pieces = _pieces(nodes, tuned.rows)
    partial = x.new_empty(pieces, blocks, inside * outside)
    with torch.cuda.device(x.device):
        _backward[(blocks, pieces)](
            grad, x, weight, out, x if rate is None else rate, dx, partial, give,
            x if passed is None else passed, dbase, nodes, blocks, blocks // weight.shape[0], each,
            **shape(inside, outside), RELU=relu, DROP=rate is not None, BASE=base is not None,
            OWN=isinstance(give, Tensor), PASSED=passed is not None, PRECISION=BF16X6, **tuned.launch,
        )  # fmt: skip
        dweight = add_pieces(partial, weight.shape[0]).view(weight.shape)
    return dx, dweight, dbase


def _pieces(nodes: int, rows: int) -> tuple[int, int]:
    """Nodes of a piece, whole tiles, and how many pieces there are; both depend on the number of nodes alone."""
    each = each_of(nodes, rows)
    return each, triton.cdiv(nodes, each)


def shape(inside: int, outside: int) -> dict[str, int]:
    """The widths of a matrix, and those of the tiles it is computed in."""
    tiles = (max(triton.next_power_of_2(width), 16) for width in (inside, outside))
    return {"INSIDE": inside, "OUTSIDE": outside, **dict(zip(("IN", "OUT"), tiles, strict=True))}
