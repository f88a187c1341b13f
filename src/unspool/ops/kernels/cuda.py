"""The sparse step on an NVIDIA GPU: one Triton program per row, so that results never depend on a race.

A row longer than :data:`~unspool.ops.operator.HUB` entries is cut into pieces; each piece leaves a partial sum, and
one program per such row adds the pieces in order. Sums are kept in float32 (float64 for float64), whatever is stored.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from unspool.ops.operator import HUB, Csr

#: Neighbours of a wide row that are in flight at once.
WIDE_NEIGHBOURS = 2


@triton.jit
def _number(number, cols, mask, width, EACH: tl.constexpr):
    """The number of each column; four in a row that share theirs ask for it once."""
    columns: tl.constexpr = cols.shape[0]
    if EACH % 4 == 0:
        some = tl.program_id(1) * columns + tl.arange(0, columns // 4) * 4
        found = tl.load(number + some // EACH, mask=some < width, other=0.0)
        own = tl.reshape(tl.broadcast_to(found[:, None], [columns // 4, 4]), [columns])
    else:
        own = tl.load(number + cols // EACH, mask=mask, other=0.0)
    return own


@triton.jit
def _ending(
    base, weight, other, other_weight, lagged, row, cols, mask, width,
    ACC: tl.constexpr, BASE: tl.constexpr, WEIGHT: tl.constexpr, OTHER: tl.constexpr, SHARE: tl.constexpr, LAG: tl.constexpr,
    EACH: tl.constexpr,
):  # fmt: skip
    """weight · base + other weight · other − lagged for one row, asked for before the long gather so that it arrives meanwhile."""
    place = row.to(tl.int64) * width + cols
    ending = tl.zeros(cols.shape, dtype=ACC)
    if BASE:
        ending = tl.load(base + place, mask=mask, other=0.0, eviction_policy="evict_first").to(ACC)
        if WEIGHT:
            ending = ending * _number(weight, cols, mask, width, EACH).to(ACC)
    if OTHER:
        more = tl.load(other + place, mask=mask, other=0.0, eviction_policy="evict_first").to(ACC)
        if SHARE:
            ending += more * _number(other_weight, cols, mask, width, EACH).to(ACC)
        else:
            ending += more * other_weight
    if LAG:
        ending -= tl.load(lagged + place, mask=mask, other=0.0, eviction_policy="evict_first").to(ACC)
    return ending


@triton.jit
def _entries(col, val, entry, last):
    """The columns and values of some entries; nothing beyond the last."""
    there = entry < last
    return tl.load(col + entry, mask=there, other=0), tl.load(val + entry, mask=there, other=0.0)


@triton.jit
def _sum_entries(
    col, val, y, first, last, cols, mask, width, NEIGHBOURS: tl.constexpr, COLUMNS: tl.constexpr, ACC: tl.constexpr
):
    """Σ val · y[col] of a row. The next entries are asked for before the rows of these arrive: 1 to 4 % of an epoch on an H200."""
    total = tl.zeros([NEIGHBOURS, COLUMNS], dtype=ACC)
    some = tl.arange(0, NEIGHBOURS)
    source, factor = _entries(col, val, first + some, last)
    for start in range(first, last, NEIGHBOURS):
        there = (start + some < last)[:, None] & mask[None, :]
        rows = tl.load(y + source.to(tl.int64)[:, None] * width + cols[None, :], mask=there, other=0.0)
        weights = factor.to(ACC)
        source, factor = _entries(col, val, start + NEIGHBOURS + some, last)
        total += weights[:, None] * rows.to(ACC)
    return tl.sum(total, axis=0)


@triton.jit
def _rows(
    crow,
    col,
    val,
    hubs,
    pieces,
    partial,
    y,
    out,
    base,
    weight,
    other,
    other_weight,
    lagged,
    factor,
    width,
    scale,
    LONGEST: tl.constexpr,
    NEIGHBOURS: tl.constexpr,
    COLUMNS: tl.constexpr,
    ACC: tl.constexpr,
    BASE: tl.constexpr,
    WEIGHT: tl.constexpr,
    OTHER: tl.constexpr,
    SHARE: tl.constexpr,
    LAG: tl.constexpr,
    FACTOR: tl.constexpr,
    EACH: tl.constexpr,
    UNIT: tl.constexpr,
):
    """The first ``pieces`` programs sum pieces of hubs (they take longest), the others one short row each."""
    width = width * UNIT
    program = tl.program_id(0)
    cols = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    mask = cols < width
    if program < pieces:
        first = tl.load(hubs + program * 3 + 1)
        last = tl.load(hubs + program * 3 + 2)
        total = _sum_entries(col, val, y, first, last, cols, mask, width, NEIGHBOURS, COLUMNS, ACC)
        tl.store(partial + program.to(tl.int64) * width + cols, total, mask=mask)
    else:
        row = program - pieces
        first = tl.load(crow + row)
        last = tl.load(crow + row + 1)
        if last - first <= LONGEST:
            ending = _ending(
                base,
                weight,
                other,
                other_weight,
                lagged,
                row,
                cols,
                mask,
                width,
                ACC,
                BASE,
                WEIGHT,
                OTHER,
                SHARE,
                LAG,
                EACH,
            )
            total = _sum_entries(col, val, y, first, last, cols, mask, width, NEIGHBOURS, COLUMNS, ACC)
            if FACTOR:
                total = total * _number(factor, cols, mask, width, EACH).to(ACC)
            place = row.to(tl.int64) * width + cols
            tl.store(out + place, (total * scale + ending).to(out.dtype.element_ty), mask=mask)


@triton.jit
def _hubs(
    hubs,
    pieces,
    partial,
    out,
    base,
    weight,
    other,
    other_weight,
    lagged,
    factor,
    width,
    scale,
    TOGETHER: tl.constexpr,
    COLUMNS: tl.constexpr,
    ACC: tl.constexpr,
    BASE: tl.constexpr,
    WEIGHT: tl.constexpr,
    OTHER: tl.constexpr,
    SHARE: tl.constexpr,
    LAG: tl.constexpr,
    FACTOR: tl.constexpr,
    EACH: tl.constexpr,
    UNIT: tl.constexpr,
):
    """The program of a hub's first piece adds all its pieces, in an order that never changes."""
    width = width * UNIT
    piece = tl.program_id(0)
    cols = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    mask = cols < width
    row = tl.load(hubs + piece * 3)
    before = tl.load(hubs + tl.maximum(piece - 1, 0) * 3)
    if (piece == 0) | (before != row):
        ending = _ending(
            base,
            weight,
            other,
            other_weight,
            lagged,
            row,
            cols,
            mask,
            width,
            ACC,
            BASE,
            WEIGHT,
            OTHER,
            SHARE,
            LAG,
            EACH,
        )
        # Trap: the order in which tl.sum adds depends on how a tile is laid out, and so on the width of the signal.
        whole = tl.zeros([COLUMNS], dtype=ACC)
        first = piece
        more = 1
        while more > 0:
            for ahead in tl.static_range(TOGETHER):
                this = tl.minimum(first + ahead, pieces - 1)
                mine = (first + ahead < pieces) & (tl.load(hubs + this * 3) == row)
                whole += tl.load(partial + this.to(tl.int64) * width + cols, mask=mine & mask, other=0.0)
            first += TOGETHER
            last = tl.minimum(first, pieces - 1)
            more = ((first < pieces) & (tl.load(hubs + last * 3) == row)).to(tl.int32)
        if FACTOR:
            whole = whole * _number(factor, cols, mask, width, EACH).to(ACC)
        place = row.to(tl.int64) * width + cols
        tl.store(out + place, (whole * scale + ending).to(out.dtype.element_ty), mask=mask)


def step(
    csr: Csr,
    y: Tensor,
    out: Tensor,
    scale: float,
    base: Tensor | None,
    weight: Tensor | None,
    lagged: Tensor | None,
    neighbours: int | None = None,
) -> None:
    """Compute ``out = scale * M y + weight * base - lagged`` in one pass (plus a small one for hubs).

    The order of a sum depends on ``neighbours``, the entries that are taken at once, and on nothing else: give it where results
    of different widths must agree in every bit.
    """
    _launch(csr, y, out, scale, None, base, weight, None, None, lagged, 1, neighbours)


def blend(
    csr: Csr,
    y: Tensor,
    out: Tensor,
    hop: Tensor | float | None,
    keep: Tensor | None,
    give: Tensor | float | None,
    x: Tensor | None,
    each: int,
) -> None:
    """Compute ``out = hop * M y + keep * y + give * x`` in one pass, with a number for ``each`` columns, or one for all.

    What is not given is not read. Results of different widths agree in every bit.
    """
    base = None if keep is None else y
    scale, own = (hop, None) if isinstance(hop, float) else (1.0, hop)
    _launch(csr, y, out, scale, own, base, keep, x, give, None, each, 2)


def tile_of(width: int) -> tuple[int, int]:
    """The columns that one program takes, and its warps.

    Measured on an H200 (graphs of 2.7 k and 169 k nodes, 7 to 2800 columns): one warp each.

    Example:
        >>> tile_of(7), tile_of(300)
        ((16, 1), (256, 1))
    """
    return min(max(triton.next_power_of_2(width), 16), 256), 1


def _launch(
    csr: Csr,
    y: Tensor,
    out: Tensor,
    scale: float,
    factor: Tensor | None,
    base: Tensor | None,
    weight: Tensor | None,
    other: Tensor | None,
    other_weight: Tensor | float | None,
    lagged: Tensor | None,
    each: int,
    neighbours: int | None,
) -> None:
    rows, width = csr.crow.numel() - 1, y.shape[1]
    if rows == 0 or width == 0:
        return
    columns, warps = tile_of(width)
    # Narrow rows want several neighbours in flight, wide ones fill the warp by themselves.
    if neighbours is None:
        neighbours = 8 if columns <= 64 else WIDE_NEIGHBOURS
    blocks = triton.cdiv(width, columns)
    wide = y.dtype == torch.float64
    ends = [out if end is None else end for end in (base, weight, other, other_weight, lagged, factor)]
    flags = {
        "BASE": base is not None, "WEIGHT": weight is not None, "OTHER": other is not None,
        "SHARE": isinstance(other_weight, Tensor), "LAG": lagged is not None, "FACTOR": factor is not None, "EACH": each,
        # Trap: Triton reads four numbers at a time only where it knows that rows begin at multiples of four.
        "UNIT": 4 if width % 4 == 0 else 1,
    }  # fmt: skip
    known = width // int(flags["UNIT"])
    tile = {"COLUMNS": columns, "ACC": tl.float64 if wide else tl.float32, "num_warps": warps}
    pieces = csr.hubs.shape[0]
    with torch.cuda.device(y.device):
        partial = torch.empty(pieces, width, device=y.device, dtype=torch.float64 if wide else torch.float32)
        _rows[(pieces + rows, blocks)](
            csr.crow, csr.col, csr.val, csr.hubs, pieces, partial, y, out, *ends, known, scale,
            LONGEST=HUB, NEIGHBOURS=neighbours, **flags, **tile,
        )  # fmt: skip
        if pieces:
            _hubs[(pieces, blocks)](csr.hubs, pieces, partial, out, *ends, known, scale, TOGETHER=8, **flags, **tile)


@triton.jit
def _rows_each(
    crow,
    col,
    val,
    y,
    out,
    rows,
    entries,
    inner,
    width,
    NEIGHBOURS: tl.constexpr,
    COLUMNS: tl.constexpr,
    ACC: tl.constexpr,
):
    """One row of one trial: trials share the pattern of the matrix, not its values."""
    row, trial = tl.program_id(0), tl.program_id(2).to(tl.int64)
    cols = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    mask = cols < width
    first = tl.load(crow + row)
    last = tl.load(crow + row + 1)
    own = y + trial * inner * width
    total = _sum_entries(col, val + trial * entries, own, first, last, cols, mask, width, NEIGHBOURS, COLUMNS, ACC)
    tl.store(out + (trial * rows + row) * width + cols, total.to(out.dtype.element_ty), mask=mask)


def product_each(crow: Tensor, col: Tensor, val: Tensor, y: Tensor) -> Tensor:
    """M_t y_t for matrices of one pattern: values (trials, entries), signals (trials, columns of M, width)."""
    trials, inner, width = y.shape
    rows = crow.numel() - 1
    out = torch.empty(trials, rows, width, device=y.device, dtype=y.dtype)
    if out.numel() == 0:
        return out
    columns = min(max(triton.next_power_of_2(width), 16), 256)
    wide = tl.float64 if y.dtype == torch.float64 else tl.float32
    with torch.cuda.device(y.device):
        _rows_each[(rows, triton.cdiv(width, columns), trials)](
            crow, col, val.contiguous(), y.contiguous(), out, rows, val.shape[1], inner, width,
            NEIGHBOURS=8 if columns <= 64 else 2, COLUMNS=columns, ACC=wide, num_warps=1,
        )  # fmt: skip
    return out
