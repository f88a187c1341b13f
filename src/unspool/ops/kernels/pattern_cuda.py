"""Products with a pattern on an NVIDIA GPU: one program per row gathers rows of the signal and reads no entries, as there are none.

What it costs is what it gathers: 2 bytes a channel and entry in half precision. Several neighbours are asked for at once, since
a multiprocessor runs 32 programs of one warp at most, and they must keep the memory busy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
import triton
import triton.language as tl
from torch import Tensor

if TYPE_CHECKING:
    from unspool.ops.pattern import Pattern

#: Neighbours of a row that are in flight at once, and the most channels of one program.
NEIGHBOURS, MOST_CHANNELS = 8, 128


@triton.jit
def _sum(
    col, right, y, first, last, cols, mask, WIDTH: tl.constexpr, NEIGHBOURS: tl.constexpr, COLUMNS: tl.constexpr, ACC: tl.constexpr,
    RIGHT: tl.constexpr,
):  # fmt: skip
    total = tl.zeros([NEIGHBOURS, COLUMNS], dtype=ACC)
    # Trap: first and last are 64 bits wide where there are many entries, the length of a row never is.
    for start in range(0, (last - first).to(tl.int32), NEIGHBOURS):
        entry = first + start + tl.arange(0, NEIGHBOURS)
        there = entry < last
        source = tl.load(col + entry, mask=there, other=0, eviction_policy="evict_first").to(tl.int64)
        rows = tl.load(y + source[:, None] * WIDTH + cols[None, :], mask=there[:, None] & mask[None, :], other=0.0).to(
            ACC
        )
        if RIGHT:
            total += tl.load(right + source, mask=there, other=0.0).to(ACC)[:, None] * rows
        else:
            total += rows
    return tl.sum(total, axis=0)


@triton.jit
def _rows(
    crow, col, left, right, hubs, pieces, partial, y, out, WIDTH: tl.constexpr, LONGEST: tl.constexpr, NEIGHBOURS: tl.constexpr,
    COLUMNS: tl.constexpr, ACC: tl.constexpr, LEFT: tl.constexpr, RIGHT: tl.constexpr,
):  # fmt: skip
    """The first ``pieces`` programs sum pieces of hubs, which take longest; the others one row each."""
    program = tl.program_id(0)
    cols = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    mask = cols < WIDTH
    if program < pieces:
        first = tl.load(hubs + program.to(tl.int64) * 3 + 1)
        last = tl.load(hubs + program.to(tl.int64) * 3 + 2)
        total = _sum(col, right, y, first, last, cols, mask, WIDTH, NEIGHBOURS, COLUMNS, ACC, RIGHT)
        tl.store(partial + program.to(tl.int64) * WIDTH + cols, total, mask=mask)
    else:
        row = program - pieces
        first = tl.load(crow + row)
        last = tl.load(crow + row + 1)
        if last - first <= LONGEST:
            total = _sum(col, right, y, first, last, cols, mask, WIDTH, NEIGHBOURS, COLUMNS, ACC, RIGHT)
            if LEFT:
                total = total * tl.load(left + row).to(ACC)
            place = row.to(tl.int64) * WIDTH + cols
            tl.store(out + place, total.to(out.dtype.element_ty), mask=mask, eviction_policy="evict_first")


@triton.jit
def _hubs(
    hubs, pieces, left, partial, out, WIDTH: tl.constexpr, COLUMNS: tl.constexpr, ACC: tl.constexpr, LEFT: tl.constexpr,
):  # fmt: skip
    """The program of a hub's first piece adds all its pieces, in their order."""
    piece = tl.program_id(0)
    cols = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    mask = cols < WIDTH
    row = tl.load(hubs + piece.to(tl.int64) * 3)
    before = tl.load(hubs + tl.maximum(piece - 1, 0).to(tl.int64) * 3)
    if (piece == 0) | (before != row):
        total = tl.zeros([COLUMNS], dtype=ACC)
        this = piece
        more = 1
        while more > 0:
            total += tl.load(partial + this.to(tl.int64) * WIDTH + cols, mask=mask, other=0.0)
            this += 1
            last = tl.minimum(this, pieces - 1).to(tl.int64)
            more = ((this < pieces) & (tl.load(hubs + last * 3) == row)).to(tl.int32)
        if LEFT:
            total = total * tl.load(left + row).to(ACC)
        place = row.to(tl.int64) * WIDTH + cols
        tl.store(out + place, total.to(out.dtype.element_ty), mask=mask)


def product(pattern: Pattern, y: Tensor, out: Tensor, neighbours: int = NEIGHBOURS) -> None:
    """Compute ``out = diag(left) P diag(right) y``; the order of every sum is always the same."""
    rows, width = pattern.crow.numel() - 1, y.shape[1]
    if rows == 0 or width == 0:
        return
    columns = min(max(triton.next_power_of_2(width), 16), MOST_CHANNELS)
    blocks, pieces = triton.cdiv(width, columns), pattern.hubs.shape[0]
    kind, acc = (torch.float64, tl.float64) if y.dtype is torch.float64 else (torch.float32, tl.float32)
    left, right = (out if one is None else one for one in (pattern.left, pattern.right))
    # The width is known to the compiler, and with it that rows of 64 or 128 channels can be read 16 bytes at a time.
    tile = {"WIDTH": width, "COLUMNS": columns, "ACC": acc, "LEFT": pattern.left is not None, "num_warps": 1}
    with torch.cuda.device(y.device):
        partial = torch.empty(pieces, width, device=y.device, dtype=kind)
        _rows[(pieces + rows, blocks)](
            pattern.crow, pattern.col, left, right, pattern.hubs, pieces, partial, y, out, LONGEST=pattern.longest, NEIGHBOURS=neighbours,
            RIGHT=pattern.right is not None, **tile,
        )  # fmt: skip
        if pieces:
            _hubs[(pieces, blocks)](pattern.hubs, pieces, left, partial, out, **tile)
