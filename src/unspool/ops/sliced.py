"""A sparse matrix in slices of equal rows, for kernels that give each row a lane."""

from __future__ import annotations

import weakref
from dataclasses import dataclass

import torch
from torch import Tensor

from unspool.ops.dropout import mix
from unspool.ops.features import SparseFeatures
from unspool.ops.kernels.noise_cpu import GOLDEN
from unspool.ops.operator import Csr

#: Rows of a slice: as many as a mask word has bits.
ROWS = 32
#: A common word occurs in a thousand nodes where most occur in ten: rows longer than this are cut, or one lane holds up all.
LONGEST = 128


@dataclass(frozen=True, eq=False)
class Sliced:
    """Rows sorted by length, cut into slices of 32, each as long as its longest row.

    Step j of slice s holds the j-th entry of each of its rows, so neighbouring lanes read neighbouring memory, and 32 flags
    of a step fit into one word. What the dropout hash needs of each entry and never changes is computed here once.

    Attributes:
        rows: the row of each lane; -1 for lanes beyond the last row, -2 - p for one of several pieces of a long row, whose sum
            belongs to place p of a buffer; shape (slices · 32,).
        start, length: first step and number of steps of each slice.
        index, value: column and value of each entry, value 0 where a row is shorter than its slice; shape (steps · 32,).
        row_mix, column_mix, shift: of the dropout hash; the element's place is (node, feature) in both orders.
        long: rows that were cut into pieces, ``long_start`` and ``long_count``: where their pieces stand in the buffer.
        shape: of the matrix.
        pieces: places of the buffer for the sums of pieces.

    Example:
        >>> import torch
        >>> x = SparseFeatures.from_tensor(torch.tensor([[1.0, 0.0, 2.0], [0.0, 3.0, 0.0]]))
        >>> by_node = Sliced.by_node(x)
        >>> by_node.rows[:3].tolist(), int(by_node.length[0])
        ([0, 1, -1], 2)
    """

    rows: Tensor
    start: Tensor
    length: Tensor
    index: Tensor
    value: Tensor
    row_mix: Tensor
    column_mix: Tensor
    shift: Tensor
    long: Tensor
    long_start: Tensor
    long_count: Tensor
    shape: tuple[int, int]
    pieces: int

    @staticmethod
    def by_node(x: SparseFeatures) -> Sliced:
        """Rows are nodes, as in X W."""
        return _sliced(x.operator.forward, x.operator.shape, nodes_are_rows=True)

    @staticmethod
    def by_feature(x: SparseFeatures, longest: int = LONGEST) -> Sliced:
        """Rows are features, as in Xᵀ G; a row of more than ``longest`` entries is cut into pieces of about the same length."""
        nodes, features = x.operator.shape
        return _sliced(x.operator.transpose, (features, nodes), nodes_are_rows=False, longest=longest)

    @property
    def steps(self) -> int:
        """Words of a mask."""
        return self.index.numel() // ROWS


#: Slices that were made, (by node, by feature), as long as their features live.
_MADE: weakref.WeakKeyDictionary[SparseFeatures, tuple[Sliced, Sliced]] = weakref.WeakKeyDictionary()


def slices_of(x: SparseFeatures) -> tuple[Sliced, Sliced]:
    """The slices of some features by node and by feature, made once.

    Example:
        >>> x = SparseFeatures.from_tensor(torch.eye(3))
        >>> slices_of(x)[0] is slices_of(x)[0]
        True
    """
    known = _MADE.get(x)
    if known is None:
        known = _MADE[x] = (Sliced.by_node(x), Sliced.by_feature(x))
    return known


def _sliced(csr: Csr, shape: tuple[int, int], nodes_are_rows: bool, longest: int | None = None) -> Sliced:
    crow = csr.crow.cpu().long()
    owner, first, size = _pieces(crow, longest)
    order = torch.argsort(size, descending=True, stable=True)
    slices = -(-owner.numel() // ROWS)
    lane_size = torch.zeros(slices * ROWS, dtype=torch.int64)
    lane_size[: order.numel()] = size[order]
    length = lane_size.view(slices, ROWS).amax(1)
    start = torch.cat([torch.zeros(1, dtype=torch.int64), length.cumsum(0)])
    place = torch.empty(order.numel(), dtype=torch.int64)
    place[order] = torch.arange(order.numel())
    entry = torch.arange(int(crow[-1]))
    piece = torch.searchsorted(first + size, entry, right=True)  # pieces are in the order of their entries
    target = (start[place[piece] // ROWS] + entry - first[piece]) * ROWS + place[piece] % ROWS
    total = int(start[-1]) * ROWS
    index, value = torch.zeros(total, dtype=torch.int32), torch.zeros(total, dtype=csr.val.dtype)
    row = torch.zeros(total, dtype=torch.int32)
    index[target], value[target], row[target] = csr.col.cpu().int(), csr.val.cpu(), owner[piece].int()
    lanes, long = _lanes(owner, order, slices)
    node, feature = (row, index) if nodes_are_rows else (index, row)
    hashed = (mix(node), (feature >> 1) * GOLDEN, (feature & 1) * 16)
    parts = (lanes, start[:-1].int(), length.int(), index, value, *hashed, *long)
    return Sliced(*(p.to(csr.val.device) for p in parts), shape=shape, pieces=int(long[2].sum()))


def _pieces(crow: Tensor, longest: int | None) -> tuple[Tensor, Tensor, Tensor]:
    """Row, first entry and number of entries of each piece; an empty row is one empty piece."""
    sizes = crow.diff()
    count = torch.ones_like(sizes) if longest is None else (-(-sizes // longest)).clamp_min(1)
    owner = torch.repeat_interleave(torch.arange(sizes.numel()), count)
    number = torch.arange(owner.numel()) - (count.cumsum(0) - count)[owner]
    first = crow[:-1][owner] + sizes[owner] * number // count[owner]
    last = crow[:-1][owner] + sizes[owner] * (number + 1) // count[owner]
    return owner, first, last - first


def _lanes(owner: Tensor, order: Tensor, slices: int) -> tuple[Tensor, tuple[Tensor, Tensor, Tensor]]:
    """What each lane stands for, and where the pieces of long rows go."""
    rows, count = torch.unique_consecutive(owner, return_counts=True)
    cut = count > 1
    long, long_count = rows[cut], count[cut]
    most = torch.argsort(long_count, descending=True, stable=True)
    long, long_count = long[most], long_count[most]
    long_start = long_count.cumsum(0) - long_count
    base = torch.full((int(rows.max()) + 1 if rows.numel() else 0,), -1, dtype=torch.int64)
    base[long] = long_start
    number = torch.arange(owner.numel()) - torch.repeat_interleave(count.cumsum(0) - count, count)
    meaning = torch.where(base[owner] >= 0, -2 - (base[owner] + number), owner)
    lanes = torch.full((slices * ROWS,), -1, dtype=torch.int64)
    lanes[: order.numel()] = meaning[order]
    return lanes.int(), (long.int(), long_start.int(), long_count.int())
