"""The first layer of many trials on an NVIDIA GPU: sparse features times a weight matrix per trial, under a mask per block.

One program takes 32 rows of X and one block. It reads each needed row of the weights once and adds it to two sums: with dropout
for training, without for the evaluation that has the same weights. Masks are words of 32 flags that are hashed anew in each
direction and never kept.

Trap: Triton compiles a kernel anew for each kind of whole number (1, multiples of 16, others), which takes seconds. Counts are not
specialised on.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from unspool.ops.kernels.masks_cuda import rate_limits, site_word
from unspool.ops.kernels.noise_cuda import _mix
from unspool.ops.sliced import Sliced

#: Entries in flight and warps, measured on an H200 with 64 channels.
FORWARD = {"UNROLL": 4, "num_warps": 2}
BACKWARD = {"UNROLL": 2, "num_warps": 4}
#: Words of a mask that one program makes.
WORDS = 16


@triton.jit(do_not_specialize=["steps"])
def _masks(row_mix, column_mix, shift, rate, key, count, bits, steps, WORDS: tl.constexpr):
    """One flag per stored entry and block, 32 to a word."""
    block = tl.program_id(1)
    word = tl.program_id(0) * WORDS + tl.arange(0, WORDS)
    lane = tl.arange(0, 32)
    entry = word[:, None] * 32 + lane[None, :]
    there = (word < steps)[:, None]
    state = site_word(tl.load(key + block), tl.load(count + block))
    threshold, _ = rate_limits(tl.load(rate + block))
    hashed = tl.load(row_mix + entry, mask=there, other=0).to(tl.uint32)
    column = tl.load(column_mix + entry, mask=there, other=0).to(tl.uint32)
    mixed = _mix(_mix(hashed ^ state) + column)
    half = ((mixed >> tl.load(shift + entry, mask=there, other=0).to(tl.uint32)) & 0xFFFF).to(tl.int32)
    half = tl.where(half >= 32768, half - 65536, half)
    flags = tl.sum((half >= threshold).to(tl.int32) << lane[None, :], axis=1)
    tl.store(bits + block.to(tl.int64) * steps + word, flags, mask=word < steps)


@triton.jit(do_not_specialize=["steps", "features", "blocks", "views"])
def _forward(
    rows, start, length, index, value, bits, rate, steps, weight, features, some_out, plain_out, blocks, views,
    WIDTH: tl.constexpr, TILE: tl.constexpr, SOME: tl.constexpr, PLAIN: tl.constexpr, UNROLL: tl.constexpr,
):  # fmt: skip
    """Σ value · weight[index] for the 32 rows of a slice: over the entries that survive, and over all."""
    part, block = tl.program_id(0), tl.program_id(1)
    lane = tl.arange(0, 32)
    col = tl.program_id(2) * TILE + tl.arange(0, TILE)
    inside = (col < WIDTH)[None, :]
    first = tl.load(start + part)
    steps_here = tl.load(length + part)
    own = block // views
    base = weight + own.to(tl.int64) * features * WIDTH
    some = tl.zeros([32, TILE], dtype=tl.float32)
    everything = tl.zeros([32, TILE], dtype=tl.float32)
    for j in tl.range(0, steps_here, loop_unroll_factor=UNROLL):
        entry = (first + j) * 32 + lane
        source = tl.load(index + entry)
        factor = tl.load(value + entry)
        row = tl.load(base + source[:, None] * WIDTH + col[None, :], mask=inside, other=0.0)
        if PLAIN:
            everything += factor[:, None] * row
        if SOME:
            word = tl.load(bits + block.to(tl.int64) * steps + first + j)
            kept = ((word >> lane) & 1) != 0
            some += tl.where(kept, factor, 0.0)[:, None] * row
    node = tl.load(rows + part * 32 + lane).to(tl.int64)
    there = (node >= 0)[:, None] & inside
    if SOME:
        _, scale = rate_limits(tl.load(rate + block))
        tl.store(some_out + (node[:, None] * blocks + block) * WIDTH + col[None, :], some * scale, mask=there)
    if PLAIN:
        # Blocks that share weights share the product without masks: the first of them writes it.
        place = (node[:, None] * (blocks // views) + own) * WIDTH + col[None, :]
        tl.store(plain_out + place, everything, mask=there & (block % views == 0))


@triton.jit(do_not_specialize=["steps", "features", "pieces", "blocks", "views"])
def _backward(
    rows, start, length, index, value, bits, rate, steps, signal, grad, features, partial, pieces, blocks, views,
    WIDTH: tl.constexpr, TILE: tl.constexpr, SOME: tl.constexpr, UNROLL: tl.constexpr,
):  # fmt: skip
    """Xᵀ G over the entries that survived, for 32 features and all blocks that share weights; pieces of long rows wait."""
    part, group = tl.program_id(0), tl.program_id(1)
    lane = tl.arange(0, 32)
    col = tl.program_id(2) * TILE + tl.arange(0, TILE)
    inside = (col < WIDTH)[None, :]
    first = tl.load(start + part)
    steps_here = tl.load(length + part)
    total = tl.zeros([32, TILE], dtype=tl.float32)
    for view in range(0, views):
        block = group * views + view
        own = signal + block.to(tl.int64) * WIDTH
        sum_here = tl.zeros([32, TILE], dtype=tl.float32)
        for j in tl.range(0, steps_here, loop_unroll_factor=UNROLL):
            entry = (first + j) * 32 + lane
            source = tl.load(index + entry).to(tl.int64)
            factor = tl.load(value + entry)
            kept = factor != 0
            if SOME:
                word = tl.load(bits + block.to(tl.int64) * steps + first + j)
                kept = kept & (((word >> lane) & 1) != 0)
            place = source[:, None] * blocks * WIDTH + col[None, :]
            row = tl.load(own + place, mask=kept[:, None] & inside, other=0.0)
            sum_here += factor[:, None] * row
        if SOME:
            _, scale = rate_limits(tl.load(rate + block))
            sum_here *= scale
        total += sum_here
    feature = tl.load(rows + part * 32 + lane)
    place = (group.to(tl.int64) * pieces - 2 - feature)[:, None] * WIDTH + col[None, :]
    tl.store(partial + place, total, mask=(feature <= -2)[:, None] & inside)
    place = (group.to(tl.int64) * features + feature)[:, None] * WIDTH + col[None, :]
    tl.store(grad + place, total, mask=(feature >= 0)[:, None] & inside)


@triton.jit(do_not_specialize=["count", "pieces", "features"])
def _combine(
    long, long_start, long_count, count, partial, pieces, grad, features, WIDTH: tl.constexpr, TILE: tl.constexpr
):
    """Add the pieces of 32 long rows in order."""
    group = tl.program_id(1).to(tl.int64)
    at = tl.program_id(0) * 32 + tl.arange(0, 32)
    col = tl.program_id(2) * TILE + tl.arange(0, TILE)
    inside = (col < WIDTH)[None, :]
    many = tl.load(long_count + at, mask=at < count, other=0)
    begin = tl.load(long_start + at, mask=at < count, other=0)
    total = tl.zeros([32, TILE], dtype=tl.float32)
    for j in range(tl.max(many, axis=0)):
        place = (group * pieces + begin + j)[:, None] * WIDTH + col[None, :]
        total += tl.load(partial + place, mask=(j < many)[:, None] & inside, other=0.0)
    feature = tl.load(long + at, mask=at < count, other=0)
    place = (group * features + feature)[:, None] * WIDTH + col[None, :]
    tl.store(grad + place, total, mask=(at < count)[:, None] & inside)


def _words(x: Sliced, rate: Tensor, key: Tensor, count: Tensor) -> Tensor:
    bits = torch.empty(rate.shape[0], x.steps, dtype=torch.int32, device=rate.device)
    if x.steps:
        grid = (triton.cdiv(x.steps, WORDS), rate.shape[0])
        _masks[grid](x.row_mix, x.column_mix, x.shift, rate, key, count, bits, x.steps, WORDS=WORDS)
    return bits


def _tile(width: int) -> int:
    return min(max(triton.next_power_of_2(width), 8), 128)


def forward(
    x: Sliced, weight: Tensor, mask: tuple[Tensor, Tensor, Tensor] | None, plain: bool
) -> tuple[Tensor | None, Tensor | None]:
    """X̃ W of every block, and X W of every weight: (nodes, blocks, width) and (nodes, groups, width), each where it is wanted."""
    groups, features, width = weight.shape
    blocks = groups if mask is None else mask[0].shape[0]
    nodes = x.shape[0]
    some = None if mask is None else weight.new_empty(nodes, blocks, width)
    all_of_it = weight.new_empty(nodes, groups, width) if plain else None
    if nodes == 0 or x.start.numel() == 0:
        return some, all_of_it
    with torch.cuda.device(weight.device):
        bits = x.index if mask is None else _words(x, *mask)
        rate = weight if mask is None else mask[0]
        tile = _tile(width)
        _forward[(x.start.numel(), blocks, triton.cdiv(width, tile))](
            x.rows, x.start, x.length, x.index, x.value, bits, rate, x.steps, weight, features,
            weight if some is None else some, weight if all_of_it is None else all_of_it, blocks, blocks // groups,
            WIDTH=width, TILE=tile, SOME=mask is not None, PLAIN=plain, **FORWARD,
        )  # fmt: skip
    return some, all_of_it


def backward(x: Sliced, signal: Tensor, groups: int, mask: tuple[Tensor, Tensor, Tensor] | None) -> Tensor:
    """X̃ᵀ G, summed over the blocks that share weights: (groups, features, width)."""
    _, blocks, width = signal.shape
    features = x.shape[0]
    grad = signal.new_empty(groups, features, width)
    if features == 0 or groups == 0:
        return grad
    pieces, tile = x.pieces, _tile(width)
    partial = signal.new_empty(groups, pieces, width)
    with torch.cuda.device(signal.device):
        bits = x.index if mask is None else _words(x, *mask)
        rate = signal if mask is None else mask[0]
        across = triton.cdiv(width, tile)
        _backward[(x.start.numel(), groups, across)](
            x.rows, x.start, x.length, x.index, x.value, bits, rate, x.steps, signal, grad, features, partial, pieces,
            blocks, blocks // groups, WIDTH=width, TILE=tile, SOME=mask is not None, **BACKWARD,
        )  # fmt: skip
        if many := x.long.numel():
            _combine[(triton.cdiv(many, 32), groups, across)](
                x.long, x.long_start, x.long_count, many, partial, pieces, grad, features, WIDTH=width, TILE=tile
            )
    return grad
