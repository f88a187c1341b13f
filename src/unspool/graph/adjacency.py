"""The weights W of a graph in compressed rows, without numbers where all are one."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from unspool.graph.compress import Rows, blocks, ordered, rows_in, starts_of, transposed
from unspool.graph.merge import Distinct


@dataclass(frozen=True, eq=False)
class Adjacency:
    """W and its transpose, each in compressed rows with sorted columns; a symmetric W is stored once.

    Row starts are int32 up to 2³¹ entries and int64 beyond, columns int32. Weights lie beside the entries, in float32 where that
    loses nothing and else in float64; ``None`` says that all are one.

    Attributes:
        forward: W.
        transpose: its transpose; the same object where W is symmetric.
        loops: how many entries lie on the diagonal.

    Example:
        >>> import torch
        >>> w = Adjacency.from_entries(torch.tensor([1, 0]), torch.tensor([0, 1]), None, nodes=2)
        >>> w.symmetric, w.forward.col
        (True, tensor([1, 0], dtype=torch.int32))
    """

    forward: Rows
    transpose: Rows
    loops: int

    @property
    def nodes(self) -> int:
        """Number of rows."""
        return self.forward.crow.numel() - 1

    @property
    def entries(self) -> int:
        """Number of stored entries, those on the diagonal included."""
        return self.forward.col.numel()

    @property
    def symmetric(self) -> bool:
        """Whether W equals its transpose."""
        return self.forward is self.transpose

    @staticmethod
    def from_entries(row: Tensor, col: Tensor, weight: Tensor | None, nodes: int) -> Adjacency:
        """W from its entries, in any order and without repeats."""
        rows = _lean(ordered(row, col, weight, nodes))
        return _with_transpose(rows, int((row == col).sum()))

    @staticmethod
    def from_distinct(found: Distinct, loops: float, directed: bool) -> Adjacency:
        """W of the edges of a list, with a loop of this weight for every node that has none (0 for none)."""
        parts = [found.rows] if directed else [found.rows, transposed(found.rows, found.own.numel())]
        diagonal, own = diagonal_of(found, loops)
        rows = _lean(assembled(parts, diagonal, own))
        count = int(diagonal.sum())
        return _with_transpose(rows, count) if directed else Adjacency(rows, rows, count)

    def to(self, device: torch.device) -> Adjacency:
        """The same on another device."""
        forward = _moved(self.forward, device)
        return Adjacency(forward, forward if self.symmetric else _moved(self.transpose, device), self.loops)


def diagonal_of(found: Distinct, loops: float) -> tuple[Tensor, Tensor | None]:
    """Which nodes have a loop once those without got one of this weight, and its weights where anything is weighted."""
    diagonal = found.own if loops == 0 else torch.ones_like(found.own)
    if found.own_weight is None and loops in (0.0, 1.0):
        return diagonal, None
    own = found.own.double() if found.own_weight is None else found.own_weight
    return diagonal, torch.where(found.own, own, loops)


def assembled(parts: list[Rows], diagonal: Tensor, own: Tensor | None, first: int = 0) -> Rows:
    """Rows made of entries off the diagonal and of loops, sorted by column.

    Args:
        parts: one matrix, or those of the entries above the diagonal and of those below it.
        diagonal: which nodes have a loop.
        own: the weights of loops, where anything is weighted.
        first: the number of the first row.
    """
    crow = starts_of(sum((part.crow.diff() for part in parts), diagonal.long()))
    col = torch.empty(int(crow[-1]), dtype=torch.int32, device=crow.device)
    weight = None if own is None else torch.ones(col.numel(), dtype=torch.float64, device=col.device)
    node = torch.nonzero(diagonal).flatten()
    below = parts[1].crow.diff() if len(parts) > 1 else torch.zeros_like(diagonal, dtype=torch.int64)
    for i, part in enumerate(parts):
        shift = crow[:-1] - part.crow[:-1] + (below + diagonal if i == 0 and len(parts) > 1 else 0)
        for block in blocks(part.crow):
            row, to = rows_in(part.crow, block), part.col[block.start : block.stop]
            place = torch.arange(block.start, block.stop, device=col.device) + shift[row]
            if len(parts) == 1:
                before = to < row + first
                below += torch.bincount(row[before], minlength=below.numel()) if bool(before.any()) else 0
                place += ~before & diagonal[row]
            col[place] = to
            if weight is not None and part.beside is not None:
                weight[place] = part.beside[block.start : block.stop]
    place = crow[node] + below[node]
    col[place] = (node + first).int()
    if weight is not None and own is not None:
        weight[place] = own[node]
    return Rows(crow, col, weight)


def degrees(rows: Rows, own: Tensor, loops: float, first: int = 0) -> Tensor:
    """The row sums of W on the CPU, where nodes without a loop of their ``own`` got one of this weight."""
    bare = ~own if loops > 0 else None
    total = row_sums(rows, bare, first)  # Trap: loops that were added come last, or the last digits change
    return total if bare is None else torch.where(bare.cpu(), total + loops, total)


def row_sums(rows: Rows, left_out: Tensor | None, first: int = 0) -> Tensor:
    """The sums of rows in float64 on the CPU, added up from left to right, without the loops of some nodes."""
    crow, left_out = rows.crow.cpu(), None if left_out is None else left_out.cpu()
    total = torch.zeros(crow.numel() - 1, dtype=torch.float64)
    if rows.beside is None:
        total += crow.diff()
        return total if left_out is None else total - left_out.double()
    col, weight = rows.col.cpu(), rows.beside.cpu()
    for block in blocks(crow):
        row, value = rows_in(crow, block), weight[block.start : block.stop].double()
        if left_out is not None:
            loop = (row + first == col[block.start : block.stop]) & left_out[row]
            value = torch.where(loop, 0.0, value)
        total.index_add_(0, row, value)
    return total


def loops_of(rows: Rows) -> Tensor:
    """Which nodes have an entry on the diagonal."""
    has = torch.zeros(rows.crow.numel() - 1, dtype=torch.bool, device=rows.col.device)
    for block in blocks(rows.crow):
        row = rows_in(rows.crow, block)
        has[row[row == rows.col[block.start : block.stop]]] = True
    return has


def _with_transpose(rows: Rows, loops: int) -> Adjacency:
    turned = transposed(rows, rows.crow.numel() - 1)
    turned = Rows(turned.crow.to(rows.crow.dtype), turned.col, turned.beside)
    same = torch.equal(rows.crow, turned.crow) and torch.equal(rows.col, turned.col)
    if same and (rows.beside is None or turned.beside is None or torch.equal(rows.beside, turned.beside)):
        turned = rows
    return Adjacency(rows, turned, loops)


def _lean(rows: Rows) -> Rows:
    """The same rows in as few bytes as hold them."""
    crow = rows.crow.int() if rows.col.numel() < 2**31 else rows.crow
    weight = rows.beside
    if weight is None or bool((weight == 1).all()):
        return Rows(crow, rows.col, None)
    short = weight.float()
    return Rows(crow, rows.col, short if torch.equal(short.double(), weight.double()) else weight)


def _moved(rows: Rows, device: torch.device) -> Rows:
    crow, col, weight = rows
    return Rows(crow.to(device), col.to(device), None if weight is None else weight.to(device))
