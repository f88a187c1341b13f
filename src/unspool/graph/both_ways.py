"""A long list of unweighted edges that run both ways, made a graph in the memory of a GPU: blocks of rows, each sorted by itself."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import torch
from torch import Tensor

from unspool.graph.adjacency import Adjacency, assembled, diagonal_of
from unspool.graph.compress import Rows, starts_of
from unspool.graph.merge import Distinct, distinct, merged

#: About how many entries are sorted together, and how many edges are looked at together. A sort takes 40 bytes an entry.
MOST, LOOKED_AT = 1 << 28, 1 << 27
#: 2⁸ rows are never parted.
SHIFT = 8


def sorted_edges(
    index: Tensor, weight: Tensor | None, nodes: int, loops: float, directed: bool
) -> tuple[Adjacency, Distinct]:
    """W of a checked list, and what was found in the list; in blocks of rows where unweighted edges that run both ways lie on a GPU.

    Example:
        >>> w, found = sorted_edges(torch.tensor([[0, 0], [1, 1]]), None, 2, 0.0, directed=True)
        >>> w.forward.crow, found.repeated
        (tensor([0, 0, 1], dtype=torch.int32), 1)
    """
    if index.is_cuda and weight is None and not directed and loops in (0, 1):
        return made_both_ways(index, nodes, loops)
    found = merged(index, weight, nodes, directed)
    return Adjacency.from_distinct(found, loops, directed), found


def made_both_ways(index: Tensor, nodes: int, loops: float) -> tuple[Adjacency, Distinct]:
    """W of a list whose edges run both ways, and what was found in the list: what one sort of it gives, with the memory of a part.

    An entry is one number: its row within the block, its column, and whether the list has it the other way round. Every block is taken out
    of the list, sorted, merged and given its loops, and the blocks are put one behind the other.

    Args:
        index: checked node ids of shape (2, edges).
        nodes: how many nodes there are.
        loops: weight of the loop of every node that has none, 0 or 1.

    Example:
        >>> w, found = made_both_ways(torch.tensor([[0, 1, 0], [1, 2, 1]]), 3, 1.0)
        >>> w.forward.crow.tolist(), w.forward.col.tolist(), found.repeated, found.single
        ([0, 2, 5, 7], [0, 1, 0, 1, 2, 1, 2], 1, 2)
    """
    counts, columns, owns, listed = [], [], [], Counted()
    bounds = bounds_of(index, nodes)
    for first, last in itertools.pairwise(bounds):
        found = _merged_block(index, first, last)
        diagonal, _ = diagonal_of(found, loops)
        crow, col, _ = assembled([found.rows], diagonal, None, first)
        counts.append(crow.diff())
        columns.append(col)
        owns.append(found.own)
        listed.add(found, int(diagonal.sum()))
    crow = starts_of(torch.cat(counts))
    col = columns[0] if len(columns) == 1 else torch.cat(columns)
    rows = Rows(crow.int() if col.numel() < 2**31 else crow, col, None)
    whole = Distinct(rows, torch.cat(owns), None, listed.repeated, listed.single)
    return Adjacency(rows, rows, listed.loops), whole


class Counted:
    """What was found in the blocks of a list together."""

    repeated = single = loops = 0

    def add(self, found: Distinct, loops: int) -> None:
        """Count another block."""
        self.repeated += found.repeated
        self.single += found.single
        self.loops += loops


def bounds_of(index: Tensor, nodes: int) -> list[int]:
    """Where blocks of rows begin, so that none has many more than :data:`MOST` entries; the last bound is the number of nodes."""
    pieces = ((nodes - 1) >> SHIFT) + 1
    spread = torch.zeros(pieces, dtype=torch.int64, device=index.device)
    for side in index:
        for part in side.split(LOOKED_AT):
            spread += torch.bincount(part >> SHIFT, minlength=pieces)
    total = spread.cumsum(0)
    marks = torch.arange(MOST, max(int(total[-1]), MOST), MOST, device=index.device)
    inner = torch.searchsorted(total, marks).tolist()
    return sorted({0, *(at << SHIFT for at in inner), nodes})


def _merged_block(index: Tensor, first: int, last: int) -> Distinct:
    """The distinct entries of some rows."""
    key = torch.cat(list(_keys(index, first, last)))
    key = torch.sort(key).values
    marks = torch.arange(last - first + 1, dtype=torch.int64, device=key.device) << 32
    crow, side = torch.searchsorted(key, marks), (key & 1).to(torch.int8)
    col = ((key & 0xFFFFFFFF) >> 1).int()
    del key, marks
    return distinct(Rows(crow, col, side), None, side[:0].bool(), first, mirrored=True)


def _keys(index: Tensor, first: int, last: int) -> Iterator[Tensor]:
    """Row, column and direction of the entries of some rows, as one number; a loop of the list is there once."""
    source, target = index
    for near, far in zip(source.split(LOOKED_AT), target.split(LOOKED_AT), strict=True):
        for back, (row, col) in enumerate(((far, near), (near, far))):
            mine = (row >= first) & (row < last)
            if back:
                mine &= row != col
            yield ((row[mine].long() - first) << 32) | (col[mine].long() << 1) | back
