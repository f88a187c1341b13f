"""Bias, ReLU and dropout of the signals of many trials, alone or in front of a product with a small matrix per trial.

Signals have shape (nodes, blocks, channels). A program of the way forward has a tile of nodes of one block, one of the way back a
piece of all nodes; sums over nodes are added up piece by piece, in an order that does not depend on how many trials there are.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from unspool.ops.kernels import thin_product_cuda as thin
from unspool.ops.kernels.masks_cuda import drops, survive_in_row
from unspool.ops.kernels.tiles_cuda import TF32X3, add_pieces, each_of, pieces_of

FORWARD = {"ROWS": 64, "num_warps": 4}
BACKWARD = {"ROWS": 32, "num_warps": 4}


@triton.jit
def _bias(bias, own, col, WIDTH: tl.constexpr, BIAS: tl.constexpr):
    """The bias of a block, or zeros."""
    b = tl.zeros(col.shape, dtype=tl.float32)
    if BIAS:
        b = tl.load(bias + own * WIDTH + col, mask=col < WIDTH, other=0.0)
    return b


@triton.jit
def _place(node, col, block, blocks, WIDTH: tl.constexpr):
    """Where some nodes of one block lie."""
    return (node.to(tl.int64)[:, None] * blocks + block) * WIDTH + col[None, :]


@triton.jit
def _activated(x, place, inside, b, RELU: tl.constexpr):
    """relu(x + b) for some nodes of one block."""
    h = tl.load(x + place, mask=inside, other=0.0) + b[None, :]
    if RELU:
        h = tl.maximum(h, 0.0)
    return h


@triton.jit(do_not_specialize=["nodes", "blocks", "views"])
def _activate(
    x, bias, rate, key, count, out, nodes, blocks, views, WIDTH: tl.constexpr, TILE: tl.constexpr, BIAS: tl.constexpr,
    RELU: tl.constexpr, DROPS: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    block = tl.program_id(0) % blocks  # neighbours write into the same lines of memory
    node = (tl.program_id(0) // blocks) * ROWS + tl.arange(0, ROWS)
    col = tl.program_id(1) * TILE + tl.arange(0, TILE)
    inside = (node < nodes)[:, None] & (col < WIDTH)[None, :]
    place = _place(node, col, block, blocks, WIDTH)
    h = _activated(x, place, inside, _bias(bias, (block // views).to(tl.int64), col, WIDTH, BIAS), RELU)
    if DROPS:
        word, threshold, scale = drops(rate, key, count, block, DROPS)
        h = tl.where(survive_in_row(node, tl.program_id(1) * TILE, word, threshold, ROWS, TILE), h * scale, 0.0)
    tl.store(out + place, h, mask=inside)


@triton.jit(do_not_specialize=["nodes", "blocks", "views", "each"])
def _activate_back(
    x, bias, rate, key, count, grad, out, partial, nodes, blocks, views, each, WIDTH: tl.constexpr, TILE: tl.constexpr,
    BIAS: tl.constexpr, RELU: tl.constexpr, DROPS: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    block, piece = tl.program_id(0), tl.program_id(1)
    col = tl.program_id(2) * TILE + tl.arange(0, TILE)
    b = _bias(bias, (block // views).to(tl.int64), col, WIDTH, BIAS)
    word, threshold, scale = drops(rate, key, count, block, DROPS)
    total = tl.zeros([TILE], dtype=tl.float32)
    for begin in range(piece * each, tl.minimum((piece + 1) * each, nodes), ROWS):
        node = begin + tl.arange(0, ROWS)
        inside = ((node < nodes) & (node < (piece + 1) * each))[:, None] & (col < WIDTH)[None, :]
        place = _place(node, col, block, blocks, WIDTH)
        h = _activated(x, place, inside, b, RELU)
        g = tl.load(grad + place, mask=inside, other=0.0)
        if DROPS:
            g = tl.where(survive_in_row(node, tl.program_id(2) * TILE, word, threshold, ROWS, TILE), g * scale, 0.0)
        if RELU:
            g = tl.where(h > 0, g, 0.0)
        tl.store(out + place, g, mask=inside)
        total += tl.sum(tl.where(inside, g, 0.0), axis=0)
    if BIAS:
        tl.store(partial + (piece.to(tl.int64) * blocks + block) * WIDTH + col, total, mask=col < WIDTH)


@triton.jit(do_not_specialize=["nodes", "blocks", "views"])
def _product(
    x, bias, rate, key, count, weight, shift, out, nodes, blocks, views, WIDTH: tl.constexpr, TILE: tl.constexpr, OUT: tl.constexpr,
    WIDE: tl.constexpr, BIAS: tl.constexpr, RELU: tl.constexpr, DROPS: tl.constexpr, SHIFT: tl.constexpr, PRECISION: tl.constexpr,
    ROWS: tl.constexpr,
):  # fmt: skip
    """drop(relu(x + b)) W + c."""
    block = tl.program_id(0) % blocks
    own = (block // views).to(tl.int64)
    node, col, channel = (
        (tl.program_id(0) // blocks) * ROWS + tl.arange(0, ROWS),
        tl.arange(0, TILE),
        tl.arange(0, WIDE),
    )
    inside = (node < nodes)[:, None] & (col < WIDTH)[None, :]
    h = _activated(x, _place(node, col, block, blocks, WIDTH), inside, _bias(bias, own, col, WIDTH, BIAS), RELU)
    if DROPS:
        word, threshold, scale = drops(rate, key, count, block, DROPS)
        h = tl.where(survive_in_row(node, 0, word, threshold, ROWS, TILE), h * scale, 0.0)
    w = tl.load(
        weight + (own * WIDTH + col[:, None]) * OUT + channel[None, :],
        mask=(col < WIDTH)[:, None] & (channel < OUT)[None, :],
        other=0.0,
    )
    h = tl.where((col < WIDTH)[None, :], h, 0.0)
    z = tl.dot(h, w, input_precision=PRECISION)
    if SHIFT:
        z += tl.load(shift + own * OUT + channel, mask=channel < OUT, other=0.0)[None, :]
    place = (node.to(tl.int64)[:, None] * blocks + block) * OUT + channel[None, :]
    tl.store(out + place, z, mask=(node < nodes)[:, None] & (channel < OUT)[None, :])


@triton.jit(do_not_specialize=["nodes", "blocks", "views", "each", "size"])
def _product_back(
    x, bias, rate, key, count, weight, grad, out, partial, nodes, blocks, views, each, size, WIDTH: tl.constexpr, TILE: tl.constexpr,
    OUT: tl.constexpr, WIDE: tl.constexpr, BIAS: tl.constexpr, RELU: tl.constexpr, DROPS: tl.constexpr, SHIFT: tl.constexpr,
    PRECISION: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """dW = hᵀ dz, dc = Σ dz, dx = dz Wᵀ where h survived and was positive, db = Σ dx; partial sums lie as W, c, b."""
    block, piece = tl.program_id(0), tl.program_id(1)
    own = (block // views).to(tl.int64)
    col, channel = tl.arange(0, TILE), tl.arange(0, WIDE)
    w = tl.load(
        weight + (own * WIDTH + col[None, :]) * OUT + channel[:, None],
        mask=(col < WIDTH)[None, :] & (channel < OUT)[:, None],
        other=0.0,
    )  # (out, in)
    b = _bias(bias, own, col, WIDTH, BIAS)
    word, threshold, scale = drops(rate, key, count, block, DROPS)
    back_w = tl.zeros([TILE, WIDE], dtype=tl.float32)
    back_b = tl.zeros([TILE], dtype=tl.float32)
    back_c = tl.zeros([WIDE], dtype=tl.float32)
    for begin in range(piece * each, tl.minimum((piece + 1) * each, nodes), ROWS):
        node = begin + tl.arange(0, ROWS)
        there = (node < nodes) & (node < (piece + 1) * each)
        inside = there[:, None] & (col < WIDTH)[None, :]
        place = _place(node, col, block, blocks, WIDTH)
        h = tl.where(inside, _activated(x, place, inside, b, RELU), 0.0)
        at = (node.to(tl.int64)[:, None] * blocks + block) * OUT + channel[None, :]
        dz = tl.load(grad + at, mask=there[:, None] & (channel < OUT)[None, :], other=0.0)
        dh = tl.dot(dz, w, input_precision=PRECISION)
        if RELU:
            dh = tl.where(h > 0, dh, 0.0)
        if DROPS:
            kept = survive_in_row(node, 0, word, threshold, ROWS, TILE)
            h = tl.where(kept, h * scale, 0.0)
            dh = tl.where(kept, dh * scale, 0.0)
        back_w += tl.dot(tl.trans(h), dz, input_precision=PRECISION)
        tl.store(out + place, dh, mask=inside)
        if BIAS:
            back_b += tl.sum(dh, axis=0)
        if SHIFT:
            back_c += tl.sum(dz, axis=0)
    mine = partial + (piece.to(tl.int64) * blocks + block) * size
    tl.store(
        mine + col[:, None] * OUT + channel[None, :], back_w, mask=(col < WIDTH)[:, None] & (channel < OUT)[None, :]
    )
    if SHIFT:
        tl.store(mine + WIDTH * OUT + channel, back_c, mask=channel < OUT)
    if BIAS:
        at_b = WIDTH * OUT + (OUT if SHIFT else 0)
        tl.store(mine + at_b + col, back_b, mask=col < WIDTH)


def _tile(width: int) -> int:
    return max(triton.next_power_of_2(width), 16)


def _drop(x: Tensor, mask: tuple[Tensor, Tensor, Tensor] | None) -> tuple[Tensor, Tensor, Tensor]:
    return (x, x, x) if mask is None else mask


def activate(
    x: Tensor, bias: Tensor | None, mask: tuple[Tensor, Tensor, Tensor] | None, groups: int, relu: bool
) -> Tensor:
    """drop(relu(x + b)), each part where there is one."""
    nodes, blocks, width = x.shape
    out = torch.empty_like(x)
    if out.numel():
        tile = min(_tile(width), 128)
        with torch.cuda.device(x.device):
            _activate[(triton.cdiv(nodes, FORWARD["ROWS"]) * blocks, triton.cdiv(width, tile))](
                x, x if bias is None else bias, *_drop(x, mask), out, nodes, blocks, blocks // groups,
                WIDTH=width, TILE=tile, BIAS=bias is not None, RELU=relu, DROPS=mask is not None, **FORWARD,
            )  # fmt: skip
    return out


def activate_back(
    x: Tensor, bias: Tensor | None, mask: tuple[Tensor, Tensor, Tensor] | None, groups: int, relu: bool, grad: Tensor
) -> tuple[Tensor, Tensor | None]:
    """Gradients of x and of the bias."""
    nodes, blocks, width = x.shape
    out, pieces = torch.empty_like(x), pieces_of(nodes)
    partial = x.new_zeros(pieces if bias is not None else 0, blocks, width)
    if out.numel():
        tile = min(_tile(width), 128)
        with torch.cuda.device(x.device):
            _activate_back[(blocks, pieces, triton.cdiv(width, tile))](
                x, x if bias is None else bias, *_drop(x, mask), grad, out, partial, nodes, blocks, blocks // groups,
                each_of(nodes, BACKWARD["ROWS"]), WIDTH=width, TILE=tile, BIAS=bias is not None, RELU=relu,
                DROPS=mask is not None, **BACKWARD,
            )  # fmt: skip
    return out, None if bias is None else add_pieces(partial, groups)


@triton.jit(do_not_specialize=["nodes", "blocks", "each"])
def _sum(x, partial, nodes, blocks, each, WIDTH: tl.constexpr, TILE: tl.constexpr, ROWS: tl.constexpr):
    block, piece = tl.program_id(0), tl.program_id(1)
    col = tl.program_id(2) * TILE + tl.arange(0, TILE)
    total = tl.zeros([TILE], dtype=tl.float32)
    for begin in range(piece * each, tl.minimum((piece + 1) * each, nodes), ROWS):
        node = begin + tl.arange(0, ROWS)
        inside = ((node < nodes) & (node < (piece + 1) * each))[:, None] & (col < WIDTH)[None, :]
        place = (node.to(tl.int64)[:, None] * blocks + block) * WIDTH + col[None, :]
        total += tl.sum(tl.load(x + place, mask=inside, other=0.0), axis=0)
    tl.store(partial + (piece.to(tl.int64) * blocks + block) * WIDTH + col, total, mask=col < WIDTH)


def sum_nodes(x: Tensor, groups: int) -> Tensor:
    """Sums over nodes, and over the blocks that share: (groups, channels)."""
    nodes, blocks, width = x.shape
    pieces, tile = pieces_of(nodes), min(_tile(width), 128)
    partial = x.new_empty(pieces, blocks, width)
    with torch.cuda.device(x.device):
        _sum[(blocks, pieces, triton.cdiv(width, tile))](
            x, partial, nodes, blocks, each_of(nodes, BACKWARD["ROWS"]), WIDTH=width, TILE=tile, **BACKWARD
        )
    return add_pieces(partial, groups)


def product(
    x: Tensor, bias: Tensor | None, mask: tuple[Tensor, Tensor, Tensor] | None, relu: bool, weight: Tensor, shift: Tensor | None
) -> Tensor:  # fmt: skip
    """drop(relu(x + b)) W + c: (nodes, blocks, out)."""
    nodes, blocks, width = x.shape
    groups, _, out = weight.shape
    z = x.new_empty(nodes, blocks, out)
    if z.numel():
        with torch.cuda.device(x.device):
            _product[(triton.cdiv(nodes, FORWARD["ROWS"]) * blocks,)](
                x, x if bias is None else bias, *_drop(x, mask), weight, x if shift is None else shift, z, nodes, blocks,
                blocks // groups, WIDTH=width, TILE=_tile(width), OUT=out, WIDE=_tile(out), BIAS=bias is not None, RELU=relu,
                DROPS=mask is not None, SHIFT=shift is not None, PRECISION=TF32X3, **FORWARD,
            )  # fmt: skip
    return z


def product_back(
    x: Tensor, bias: Tensor | None, mask: tuple[Tensor, Tensor, Tensor] | None, relu: bool, weight: Tensor, shift: Tensor | None, grad: Tensor,
) -> tuple[Tensor, Tensor | None, Tensor, Tensor | None]:  # fmt: skip
    """Gradients of x, b, W and c."""
    nodes, blocks, width = x.shape
    groups, _, out = weight.shape
    dx, pieces = torch.empty_like(x), pieces_of(nodes)
    size = width * out + (0 if shift is None else out) + (0 if bias is None else width)
    partial = (
        x.new_zeros(pieces, blocks, size) if nodes < pieces * BACKWARD["ROWS"] else x.new_empty(pieces, blocks, size)
    )
    if nodes and blocks:
        few = out <= thin.MOST
        how = thin.shape(_tile(width)) if few else {"WIDE": _tile(out), "PRECISION": TF32X3, **BACKWARD}
        with torch.cuda.device(x.device):
            (thin.back if few else _product_back)[(blocks, pieces)](
                x, x if bias is None else bias, *_drop(x, mask), weight, grad, dx, partial, nodes, blocks, blocks // groups,
                each_of(nodes, BACKWARD["ROWS"]), size, WIDTH=width, TILE=_tile(width), OUT=out, BIAS=bias is not None, RELU=relu,
                DROPS=mask is not None, SHIFT=shift is not None, **how,
            )  # fmt: skip
    total = add_pieces(partial, groups)
    dw, rest = total[:, : width * out].view(groups, width, out), total[:, width * out :]
    dshift = None if shift is None else rest[:, :out]
    return dx, None if bias is None else rest[:, rest.shape[1] - width :], dw, dshift
