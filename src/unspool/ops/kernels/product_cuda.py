"""Products with one small matrix per block on an NVIDIA GPU, through the matrix units at full precision.

Signals have shape (nodes, blocks, in), matrices (groups, in, out): blocks in a row share one. A program takes some rows of one block and loads its matrix
once. Sums over nodes are taken in a fixed number of pieces, which one program adds in order.
"""

from __future__ import annotations

import os
from typing import NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from unspool.ops.kernels.masks_cuda import in_64, site_word, survives

#: Wider signals and matrices are left to the library of dense products.
WIDEST = 128
#: Pieces of a sum over nodes.
PIECES = 8
#: Three passes of the matrix units, as exact as single precision; the interpreter multiplies plainly.
PRECISION = "ieee" if os.environ.get("TRITON_INTERPRET") == "1" else "tf32x3"


class Tuned(NamedTuple):
    """How a kernel is cut up, measured on an H200."""

    rows: int
    warps: int
    stages: int = 1
    unroll: int = 1
    registers: int | None = None

    @property
    def loop(self) -> dict[str, int]:
        """How the loop over memory runs ahead: by stages in shared memory, by entries in registers."""
        return {"STAGES": self.stages, "UNROLL": self.unroll}

    @property
    def launch(self) -> dict[str, int]:
        """Warps of a program, and the registers a thread may have."""
        return {"num_warps": self.warps} | ({} if self.registers is None else {"maxnreg": self.registers})


#: Rows of a tile, warps of a program and stages of its loop.
FORWARD, BACKWARD = Tuned(64, 4, 2), Tuned(32, 4)


#: Dropout of the result: rates, keys and numbers of the call, one for each block.
Drop = tuple[Tensor, Tensor, Tensor]


class Base(NamedTuple):
    """A signal of which a multiple was added to x: the factor of each block, and the gradient it has from elsewhere."""

    give: Tensor
    passed: Tensor | None


@triton.jit
def thinned(h, row, col, rate, key, count, block):
    """Dropout of rows of one block: what survives is scaled."""
    share = tl.load(rate + block).to(tl.float64)
    threshold = tl.minimum(tl.ceil(share * 65536.0 - 32768.0), 32767.0).to(tl.int32)
    factor = tl.where(share < 1, 1 / (1 - share), 0.0).to(tl.float32)
    kept = survives(row[:, None], col[None, :], site_word(tl.load(key + block), tl.load(count + block)), threshold)
    return tl.where(kept, h * factor, 0.0)


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
            h = thinned(h, row, j, rate, key, count, block)
        tl.store(out + at * OUTSIDE + j[None, :], h, mask=there & (j < OUTSIDE)[None, :])


@triton.jit(do_not_specialize=["nodes", "blocks", "share", "rows_each"])
def _backward(
    grad, x, weight, out, rate, dx, partial, give, passed, dbase, nodes, blocks, share, rows_each,
    INSIDE: tl.constexpr, OUTSIDE: tl.constexpr, IN: tl.constexpr, OUT: tl.constexpr, ROWS: tl.constexpr, RELU: tl.constexpr,
    DROP: tl.constexpr, BASE: tl.constexpr, PASSED: tl.constexpr, PRECISION: tl.constexpr, STAGES: tl.constexpr,
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
        share = tl.load(rate + block).to(tl.float64)
        factor = tl.where(share < 1, 1 / (1 - share), 0.0).to(tl.float32)
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
            more = back * tl.load(give + block)
            if PASSED:
                more += tl.load(passed + at * INSIDE + i[None, :], mask=there & (i < INSIDE)[None, :], other=0.0)
            tl.store(dbase + at * INSIDE + i[None, :], more, mask=there & (i < INSIDE)[None, :])
    own = (piece.to(tl.int64) * blocks + block) * INSIDE
    tl.store(partial + (own + i[:, None]) * OUTSIDE + j[None, :], total, mask=inside)


@triton.jit(do_not_specialize=["blocks", "share", "pieces"])
def _add(partial, out, blocks, share, pieces, SIZE: tl.constexpr, TILE: tl.constexpr):
    """The sum of all pieces of the blocks of one group, in order."""
    group, i = tl.program_id(1), tl.program_id(0) * TILE + tl.arange(0, TILE)
    total = tl.zeros([TILE], dtype=tl.float32)
    for number in range(pieces * share):
        at = in_64(number // share, group) * blocks + group * share + number % share
        total += tl.load(partial + at * SIZE + i, mask=i < SIZE, other=0.0)
    tl.store(out + group.to(tl.int64) * SIZE + i, total, mask=i < SIZE)


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
            **shape(inside, outside), ROWS=tuned.rows, RELU=relu, DROP=drop is not None, PRECISION=PRECISION, STAGES=tuned.stages, **tuned.launch,
        )  # fmt: skip
    return out


def gradients(
    grad: Tensor, x: Tensor, weight: Tensor, out: Tensor, relu: bool, rate: Tensor | None, base: Base | None = None,
    tuned: Tuned = BACKWARD,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """The gradients of x, of the matrices and of the base in x; ``rate`` is that of the dropout of the result."""
    nodes, blocks, inside = x.shape
    outside = weight.shape[2]
    dx, dweight, dbase = torch.empty_like(x), torch.empty_like(weight), x.new_empty(0 if base is None else x.shape)
    give, passed = base or (x, None)
    if x.numel() == 0 or grad.numel() == 0:
        return dx.zero_(), dweight.zero_(), dbase.zero_() if base is None or base.passed is None else base.passed
    each, pieces = _pieces(nodes, tuned.rows)
    share, size = blocks // weight.shape[0], inside * outside
    partial = x.new_empty(pieces, blocks, inside, outside)
    with torch.cuda.device(x.device):
        _backward[(blocks, pieces)](
            grad, x, weight, out, x if rate is None else rate, dx, partial, give,
            x if passed is None else passed, dbase, nodes, blocks, share, each,
            **shape(inside, outside), ROWS=tuned.rows, RELU=relu, DROP=rate is not None, BASE=base is not None,
            PASSED=passed is not None, PRECISION=PRECISION, STAGES=tuned.stages, **tuned.launch,
        )  # fmt: skip
        _add[(triton.cdiv(size, 1024), weight.shape[0])](partial, dweight, blocks, share, pieces, SIZE=size, TILE=1024)
    return dx, dweight, dbase


def _pieces(nodes: int, rows: int) -> tuple[int, int]:
    """Nodes of a piece, whole tiles, and how many pieces there are; both depend on the number of nodes alone."""
    each = triton.cdiv(triton.cdiv(nodes, PIECES), rows) * rows
    return each, triton.cdiv(nodes, each)


def shape(inside: int, outside: int) -> dict[str, int]:
    """The widths of a matrix, and those of the tiles it is computed in."""
    tiles = (max(triton.next_power_of_2(width), 16) for width in (inside, outside))
    return {"INSIDE": inside, "OUTSIDE": outside, **dict(zip(("IN", "OUT"), tiles, strict=True))}
