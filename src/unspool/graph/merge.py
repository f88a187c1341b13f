"""From a list of edges to the distinct entries of W: repeats merged, directions settled, self-loops apart."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from unspool.graph.compress import Block, Rows, blocks, ordered, rows_in, starts_of

#: Two weights of one edge that differ by less than this share of the larger are the same weight.
ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class Distinct:
    """The edges of a list, each once.

    Attributes:
        rows: entries off the diagonal with float64 weights or None for ones: of a list that runs both ways those above the diagonal, of
            a directed one all, by target and source.
        own: which nodes have a self-loop in the list.
        own_weight: the weights of these loops, zero elsewhere; None where all are one.
        repeated: how many edges were listed more than once.
        single: how many were listed in one direction only; not counted for directed lists.
        apart: how many weigh differently in the two directions; not counted for directed lists.
    """

    rows: Rows
    own: Tensor
    own_weight: Tensor | None
    repeated: int
    single: int = 0
    apart: int = 0


def merged(index: Tensor, weight: Tensor | None, nodes: int, directed: bool) -> Distinct:
    """Merge a list: a repeated edge counts once, or its weights are added; of two directions the larger weight counts.

    Edges whose weight is zero are none.

    Args:
        index: checked node ids of shape (2, edges), sources above targets.
        weight: checked float64 weights, or None.
        nodes: how many nodes there are.
        directed: whether the two directions of an edge are two edges.

    Example:
        >>> import torch
        >>> found = merged(torch.tensor([[0, 1, 0, 2], [1, 0, 1, 2]]), None, 3, directed=False)
        >>> found.rows.col, found.own, found.repeated, found.single
        (tensor([1], dtype=torch.int32), tensor([False, False,  True]), 1, 0)
    """
    source, target = index
    if directed:
        rows = ordered(target, source, _places(weight, source), nodes)
        return distinct(rows, weight, None)
    back = source > target
    # Unweighted, one byte says the direction; with weights, the place in the list says both.
    beside = back.view(torch.int8) if weight is None else _places(weight, source)
    rows = ordered(source, target, beside, nodes, turned=True)
    return distinct(rows, weight, back)


@dataclass(eq=False)
class _Merging:
    """What a walk over the blocks of a sorted list has found; distinct entries overwrite the list, which they never overtake."""

    rows: Rows
    weight: Tensor | None
    back: Tensor | None
    own: Tensor
    own_weight: Tensor | None
    value: Tensor | None
    count: Tensor
    first: int
    mirrored: bool
    filled: int = 0
    repeated: int = 0
    single: int = 0
    apart: int = 0

    def take(self, block: Block) -> None:
        """Merge one block."""
        row, col = rows_in(self.rows.crow, block), self.rows.col[block.start : block.stop].long()
        new = torch.ones(col.numel(), dtype=torch.bool, device=col.device)
        new[1:] = (col[1:] != col[:-1]) | (row[1:] != row[:-1])
        if self.weight is None and bool(new.all()):  # nothing is listed twice, in whatever direction
            off = row + self.first != col
            if self.mirrored and self.rows.beside is not None:
                off &= self.rows.beside[block.start : block.stop] == 0
            self.single += 0 if self.back is None else int(off.sum())
            value = None
        else:
            beside = None if self.rows.beside is None else self.rows.beside[block.start : block.stop].long()
            group = new.cumsum(0) - 1
            row, col = row[new], col[new]
            value = self._weigh(group, beside, row + self.first != col)
        if value is not None and not bool((alive := value > 0).all()):
            row, col, value = row[alive], col[alive], value[alive]
        self._set_loops_apart(row, col, value, block)

    def _weigh(self, group: Tensor, beside: Tensor | None, off: Tensor) -> Tensor | None:
        """The larger of the weights that each distinct edge has in its two directions; None where there are no weights.

        Args:
            group: which distinct edge each listed one is.
            beside: what the list says of it: a place, or a direction.
            off: which distinct edges are no loops.
        """
        edges = off.numel()
        weighted = self.weight is not None and beside is not None
        side = None if self.back is None else self.back[beside] if weighted else beside
        slot = 2 * group if side is None else 2 * group + side
        times = torch.bincount(slot, minlength=2 * edges).view(edges, 2)
        self.repeated += int((times[:, : 1 if self.mirrored else 2] > 1).sum())
        both = _added(slot, self.weight[beside], 2 * edges).view(edges, 2) if weighted else None  # pyright: ignore[reportOptionalSubscript]
        if side is not None:
            present = times > 0 if both is None else both > 0
            alone = present[:, 0] != present[:, 1]
            self.single += int((alone & off & (present[:, 0] | (not self.mirrored))).sum())
            if both is not None:
                differ = (both[:, 0] - both[:, 1]).abs() > ROUNDING * both.amax(1)
                self.apart += int((differ & off & ~alone).sum())
        return None if both is None else both.amax(1)

    def _set_loops_apart(self, row: Tensor, col: Tensor, value: Tensor | None, block: Block) -> None:
        loop = row + self.first == col
        if bool(loop.any()):
            self.own[row[loop]] = True
            if value is not None and self.own_weight is not None:
                self.own_weight[row[loop]] = value[loop]
            row, col, value = row[~loop], col[~loop], None if value is None else value[~loop]
        self.count[block.first : block.last] = torch.bincount(row - block.first, minlength=block.last - block.first)
        end = self.filled + col.numel()
        self.rows.col[self.filled : end] = col
        if self.value is not None and value is not None:
            self.value[self.filled : end] = value
        self.filled = end


def distinct(
    rows: Rows, weight: Tensor | None, back: Tensor | None, first: int = 0, mirrored: bool = False
) -> Distinct:
    """Merge the equal entries of sorted rows, whose memory is used again.

    Args:
        rows: entries with repeats; beside each its place in ``weight``, or without weights its direction.
        weight: float64 weights of the list, or None.
        back: which edges of the list run back; None where each direction is an edge of its own.
        first: the number of the first row.
        mirrored: whether every edge is listed in both directions here, the added one as running back.
    """

    def zeros(dtype: torch.dtype) -> Tensor:
        return torch.zeros(rows.crow.numel() - 1, dtype=dtype, device=rows.col.device)

    value = None if weight is None else torch.empty_like(weight)
    own_weight = None if weight is None else zeros(torch.float64)
    walk = _Merging(
        rows, weight, back, zeros(torch.bool), own_weight, value, zeros(torch.int64), first=first, mirrored=mirrored
    )
    for block in blocks(rows.crow):
        if block.stop > block.start:
            walk.take(block)
    col, value = rows.col[: walk.filled], None if value is None else value[: walk.filled]
    found = Rows(starts_of(walk.count), col, value)
    apart = walk.apart // 2 if mirrored else walk.apart
    return Distinct(found, walk.own, walk.own_weight, walk.repeated, walk.single, apart)


def _places(weight: Tensor | None, source: Tensor) -> Tensor | None:
    if weight is None:
        return None
    kind = torch.int32 if source.numel() < 2**31 else torch.int64
    return torch.arange(source.numel(), dtype=kind, device=source.device)


def _added(slot: Tensor, weight: Tensor, slots: int) -> Tensor:
    """Sums in the order of the list, which the additions of a GPU would not keep."""
    total = torch.zeros(slots, dtype=torch.float64).index_add_(0, slot.cpu(), weight.cpu())
    return total.to(weight.device)
