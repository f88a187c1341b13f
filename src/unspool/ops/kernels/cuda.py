"""The sparse step on an NVIDIA GPU: one Triton program per row, so that results never depend on a race.

A row longer than :data:`~unspool.ops.operator.HUB` entries is cut into pieces; each piece leaves a partial sum, and
one program per such row adds the pieces in order. Sums are kept in float32 (float64 for float64), whatever is stored.
"""
# pyright: basic
# Triton's language has no types of its own, and this file is only imported where a GPU is.

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from unspool.ops.operator import HUB, Csr


@triton.jit
def _finish(total, out, base, weight, lagged, row, cols, mask, width, scale, BASE: tl.constexpr, WEIGHT: tl.constexpr, LAG: tl.constexpr):  # noqa: N803, E501
    place = row.to(tl.int64) * width + cols
    total = total * scale
    if BASE:
        term = tl.load(base + place, mask=mask).to(total.dtype)
        if WEIGHT:
            term = term * tl.load(weight + cols, mask=mask).to(total.dtype)
        total += term
    if LAG:
        total -= tl.load(lagged + place, mask=mask).to(total.dtype)
    tl.store(out + place, total.to(out.dtype.element_ty), mask=mask)


@triton.jit
def _sum_entries(col, val, y, first, last, cols, mask, width, NEIGHBOURS: tl.constexpr, COLUMNS: tl.constexpr, ACC: tl.constexpr):  # noqa: N803, E501
    total = tl.zeros([NEIGHBOURS, COLUMNS], dtype=ACC)
    for start in range(first, last, NEIGHBOURS):
        entry = start + tl.arange(0, NEIGHBOURS)
        there = entry < last
        source = tl.load(col + entry, mask=there, other=0).to(tl.int64)
        factor = tl.load(val + entry, mask=there, other=0.0).to(ACC)
        rows = tl.load(y + source[:, None] * width + cols[None, :], mask=there[:, None] & mask[None, :], other=0.0)
        total += factor[:, None] * rows.to(ACC)
    return tl.sum(total, axis=0)


@triton.jit
def _short_rows(crow, col, val, y, out, base, weight, lagged, width, scale, LONGEST: tl.constexpr, NEIGHBOURS: tl.constexpr, COLUMNS: tl.constexpr, ACC: tl.constexpr, BASE: tl.constexpr, WEIGHT: tl.constexpr, LAG: tl.constexpr):  # noqa: N803, E501
    row = tl.program_id(0)
    cols = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    mask = cols < width
    first = tl.load(crow + row)
    last = tl.load(crow + row + 1)
    if last - first <= LONGEST:
        total = _sum_entries(col, val, y, first, last, cols, mask, width, NEIGHBOURS, COLUMNS, ACC)
        _finish(total, out, base, weight, lagged, row, cols, mask, width, scale, BASE, WEIGHT, LAG)


@triton.jit
def _hub_pieces(hubs, col, val, y, partial, width, NEIGHBOURS: tl.constexpr, COLUMNS: tl.constexpr, ACC: tl.constexpr):  # noqa: N803, E501
    piece = tl.program_id(0)
    cols = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    mask = cols < width
    first = tl.load(hubs + piece * 3 + 1)
    last = tl.load(hubs + piece * 3 + 2)
    total = _sum_entries(col, val, y, first, last, cols, mask, width, NEIGHBOURS, COLUMNS, ACC)
    tl.store(partial + piece.to(tl.int64) * width + cols, total, mask=mask)


@triton.jit
def _hub_rows(hubs, pieces, partial, out, base, weight, lagged, width, scale, COLUMNS: tl.constexpr, ACC: tl.constexpr, BASE: tl.constexpr, WEIGHT: tl.constexpr, LAG: tl.constexpr):  # noqa: N803, E501
    piece = tl.program_id(0)
    cols = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    mask = cols < width
    row = tl.load(hubs + piece * 3)
    before = tl.load(hubs + tl.maximum(piece - 1, 0) * 3)
    if (piece == 0) | (before != row):  # the first piece of a row adds all of them, in order
        total = tl.zeros([COLUMNS], dtype=ACC)
        following = piece
        owner = row
        while (following < pieces) & (owner == row):
            total += tl.load(partial + following.to(tl.int64) * width + cols, mask=mask, other=0.0)
            following += 1
            owner = tl.load(hubs + tl.minimum(following, pieces - 1) * 3)
        _finish(total, out, base, weight, lagged, row, cols, mask, width, scale, BASE, WEIGHT, LAG)


def step(csr: Csr, y: Tensor, out: Tensor, scale: float, base: Tensor | None, weight: Tensor | None, lagged: Tensor | None) -> None:
    """Compute ``out = scale * M y + weight * base - lagged`` in one pass (plus one for hubs)."""
    rows, width = csr.crow.numel() - 1, y.shape[1]
    if rows == 0 or width == 0:
        return
    columns = min(max(triton.next_power_of_2(width), 16), 128)
    neighbours = 16 if columns <= 64 else 8
    blocks = triton.cdiv(width, columns)
    accumulate = tl.float64 if y.dtype == torch.float64 else tl.float32
    ends = (out, out if base is None else base, out if weight is None else weight, out if lagged is None else lagged)
    flags = {"BASE": base is not None, "WEIGHT": weight is not None, "LAG": lagged is not None}
    tile = {"COLUMNS": columns, "ACC": accumulate, "num_warps": 2 if columns > 32 else 1}
    with torch.cuda.device(y.device):
        _short_rows[(rows, blocks)](
            csr.crow, csr.col, csr.val, y, *ends, width, scale, LONGEST=HUB, NEIGHBOURS=neighbours, **flags, **tile
        )
        pieces = csr.hubs.shape[0]
        if pieces:
            kept = torch.float64 if y.dtype == torch.float64 else torch.float32
            partial = torch.empty(pieces, width, device=y.device, dtype=kept)
            _hub_pieces[(pieces, blocks)](csr.hubs, csr.col, csr.val, y, partial, width, NEIGHBOURS=neighbours, **tile)
            _hub_rows[(pieces, blocks)](csr.hubs, pieces, partial, *ends, width, scale, **flags, **tile)
