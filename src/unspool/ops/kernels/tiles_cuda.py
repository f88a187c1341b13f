"""How kernels walk over signals of many trials, (nodes, blocks, channels), and add up what they find on the way.

A program takes a stretch of nodes and a few blocks whose channels fill a warp. Neither depends on the number of blocks, and partial
sums of the stretches are added in order, so the numbers of a trial are the same alone and among others, in every bit.
"""

from __future__ import annotations

import os
from typing import Any, NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

_INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"  # it has no matrix units, and multiplies plainly
#: How the matrix units multiply as exactly as single precision: three passes of tf32, or six of bf16.
TF32X3, BF16X6 = ("ieee", "ieee") if _INTERPRETED else ("tf32x3", "bf16x6")
#: Numbers of a tile.
_TILE = 1024
#: Nodes of a stretch, and the largest number of stretches.
_NODES, _PIECES = 64, 1024


class Tiles(NamedTuple):
    """The programs for a signal, and what each is told: the nodes of a stretch and the sizes of a tile."""

    grid: tuple[int, int]
    each: int
    sizes: dict[str, Any]

    @property
    def pieces(self) -> int:
        """The number of stretches."""
        return self.grid[1]


def tiles(nodes: int, blocks: int, channels: int) -> Tiles:
    """How to walk over a signal of this shape."""
    wide = triton.next_power_of_2(channels)
    beside = max(32 // wide, 1)
    down = max(_TILE // (wide * beside), 1)
    pieces = min(triton.cdiv(nodes, _NODES), _PIECES)
    each = triton.cdiv(triton.cdiv(nodes, pieces), down) * down
    sizes = {"CHANNELS": channels, "WIDE": wide, "NODES": down, "BLOCKS": beside, "num_warps": 4}
    return Tiles((triton.cdiv(blocks, beside), triton.cdiv(nodes, each)), each, sizes)


def pieces_of(nodes: int) -> int:
    """How many stretches of nodes a program of one block sums apart: a function of the nodes alone.

    Example:
        >>> pieces_of(2708), pieces_of(34_493)
        (8, 34)
    """
    return min(max(8, -(-nodes // 1024)), 64)


def each_of(nodes: int, rows: int) -> int:
    """Nodes of such a stretch: whole tiles of rows.

    Example:
        >>> each_of(2708, 32)
        352
    """
    return triton.cdiv(triton.cdiv(nodes, pieces_of(nodes)), rows) * rows


def ready(x: Tensor) -> Tensor:
    """Contiguous and aligned: Triton lays out a tile by how its memory is aligned, and sums along with it."""
    x = x.contiguous()
    return x if x.data_ptr() % 16 == 0 else x.clone()


@triton.jit(do_not_specialize=["pieces", "blocks", "share", "size", "columns"])
def _add(partial, out, pieces, blocks, share, size, columns, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    col = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    there = col < columns
    first = (col // size) * share * size + col % size
    total = tl.zeros([ROWS, COLUMNS], dtype=tl.float32)
    for member in range(0, share):
        place = (first + member * size).to(tl.int64)
        for begin in range(0, pieces, ROWS):
            piece = begin + tl.arange(0, ROWS)
            mask = (piece < pieces)[:, None] & there[None, :]
            at = piece.to(tl.int64)[:, None] * blocks * size + place[None, :]
            total += tl.load(partial + at, mask=mask, other=0.0)
    tl.store(out + col, tl.sum(total, axis=0), mask=there)


def add_pieces(partial: Tensor, groups: int) -> Tensor:
    """Partial sums (pieces, blocks, size), added over the pieces and over the blocks of each group: (groups, size)."""
    pieces, blocks, size = partial.shape
    out = partial.new_empty(groups, size)
    columns = groups * size
    _add[(triton.cdiv(columns, 64),)](
        partial, out, pieces, blocks, blocks // groups, size, columns, ROWS=16, COLUMNS=64, num_warps=4
    )
    return out


@triton.jit(do_not_specialize=["nodes", "blocks", "each"])
def _dot(
    a, b, partial, nodes, blocks, each,
    CHANNELS: tl.constexpr, WIDE: tl.constexpr, NODES: tl.constexpr, BLOCKS: tl.constexpr,
):  # fmt: skip
    block, channel = tl.program_id(0) * BLOCKS + tl.arange(0, BLOCKS), tl.arange(0, WIDE)
    ours = (block < blocks)[:, None] & (channel < CHANNELS)[None, :]
    spot = block[:, None] * CHANNELS + channel[None, :]
    piece = tl.program_id(1)
    total = tl.zeros([NODES, BLOCKS, WIDE], dtype=tl.float32)
    for begin in range(piece * each, tl.minimum((piece + 1) * each, nodes), NODES):
        node = begin + tl.arange(0, NODES)
        there = (node < nodes)[:, None, None] & ours[None]
        place = node.to(tl.int64)[:, None, None] * (blocks * CHANNELS) + spot[None]
        total += tl.load(a + place, mask=there, other=0.0) * tl.load(b + place, mask=there, other=0.0)
    found = tl.sum(tl.sum(total, axis=2), axis=0)
    tl.store(partial + piece.to(tl.int64) * blocks + block, found, mask=block < blocks)


def dot(a: Tensor, b: Tensor, groups: int) -> Tensor:
    """Σ a b over the nodes and channels of each group of blocks."""
    a, b = ready(a), ready(b)
    walk = tiles(*a.shape)
    partial = a.new_empty(walk.pieces, a.shape[1], 1)
    with torch.cuda.device(a.device):
        _dot[walk.grid](a, b, partial, a.shape[0], a.shape[1], walk.each, **walk.sizes)
        return add_pieces(partial, groups)[:, 0]
