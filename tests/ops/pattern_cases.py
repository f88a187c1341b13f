"""Patterns whose products are looked at in the interpreter and on a GPU: hubs of several pieces, empty rows, odd widths."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from unspool.ops.operator import hub_pieces, row_of_entry
from unspool.ops.pattern import Pattern


def made(rows: int, most: int, left: bool, right: bool, kind: torch.dtype, index: torch.dtype = torch.int32) -> Pattern:
    """A random pattern with a hub in row 1 and nothing in row 2; pieces of long rows have 5 entries."""
    chance = torch.Generator().manual_seed(rows)
    count = torch.randint(0, most, (rows,), generator=chance)
    count[1], count[2] = rows, 0
    crow = torch.cat([torch.zeros(1, dtype=torch.int64), count.cumsum(0)]).to(index)
    col = torch.cat([torch.randperm(rows, generator=chance)[:n].sort().values for n in count.tolist()]).int()
    ends = [torch.rand(rows, generator=chance, dtype=torch.float64).to(kind) if one else None for one in (left, right)]
    return Pattern(crow, col, ends[0], ends[1], hub_pieces(crow, 5), 5)


def dense(pattern: Pattern) -> Tensor:
    """The matrix in float64."""
    n = pattern.crow.numel() - 1
    whole = torch.zeros(n, n, dtype=torch.float64)
    whole[row_of_entry(pattern.crow.cpu()), pattern.col.cpu().long()] = 1.0
    ends = (pattern.left, pattern.right)
    left, right = (torch.ones(n) if one is None else one.cpu().double() for one in ends)
    return left[:, None] * whole * right


def gaps(device: str, rows: int = 23) -> Iterator[tuple[str, float]]:
    """How far products are from those in float64, as a share of what rounding once in the type of the signal may cost."""
    chance = torch.Generator().manual_seed(0)
    for kind in (torch.float32, torch.float64, torch.bfloat16):
        factors = torch.float64 if kind is torch.float64 else torch.float32
        for left, right, width, index in ((True, True, 7, torch.int32), (True, False, 16, torch.int64), (False, False, 1, torch.int32), (False, True, 130, torch.int64)):  # fmt: skip
            pattern = made(rows, 4, left, right, factors, index)
            wanted_of = dense(pattern)
            parts = (pattern.crow, pattern.col, pattern.left, pattern.right, pattern.hubs)
            pattern = Pattern(*(None if t is None else t.to(device) for t in parts), pattern.longest)
            y = torch.randn(rows, width, generator=chance, dtype=torch.float64).to(kind)
            out = torch.full_like(y, float("nan")).to(device)
            pattern.times(y.to(device), out)
            wanted = wanted_of @ y.double()
            room = 2.0 * torch.finfo(kind).eps * (wanted_of @ y.double().abs()) * (1 if kind is torch.bfloat16 else 4)
            gap = (out.cpu().double() - wanted).abs()
            yield f"{kind} {width} {index}", float((gap - room).max()) if bool(out.isfinite().all()) else float("inf")
