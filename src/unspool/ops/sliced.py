"""A sparse matrix in slices of equal rows, for kernels that give each row a lane."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from unspool.ops.dropout import mix
from unspool.ops.features import SparseFeatures
from unspool.ops.kernels.noise_cpu import GOLDEN
from unspool.ops.operator import Csr, row_of_entry

#: Rows of a slice: as many as a mask word has bits.
ROWS = 32


@dataclass(frozen=True, eq=False)
class Sliced:
    """Rows sorted by length, cut into slices of 32, each as long as its longest row.

    Step j of slice s holds the j-th entry of each of its rows, so neighbouring lanes read neighbouring memory, and 32 flags
    of a step fit into one word. What the dropout hash needs of each entry and never changes is computed here once.

    Attributes:
        rows: the row of each lane, -1 for lanes beyond the last row; shape (slices · 32,).
        start, length: first step and number of steps of each slice.
        index, value: column and value of each entry, value 0 where a row is shorter than its slice; shape (steps · 32,).
        row_mix, column_mix, shift: of the dropout hash; the element's place is (node, feature) in both orders.
        shape: of the matrix.

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
    shape: tuple[int, int]

    @staticmethod
    def by_node(x: SparseFeatures) -> Sliced:
        """Rows are nodes, as in X W."""
        return _sliced(x.operator.forward, x.operator.shape, nodes_are_rows=True)

    @staticmethod
    def by_feature(x: SparseFeatures) -> Sliced:
        """Rows are features, as in Xᵀ G."""
        nodes, features = x.operator.shape
        return _sliced(x.operator.transpose, (features, nodes), nodes_are_rows=False)

    @property
    def steps(self) -> int:
        """Words of a mask."""
        return self.index.numel() // ROWS


def _sliced(csr: Csr, shape: tuple[int, int], nodes_are_rows: bool) -> Sliced:
    crow = csr.crow.cpu().long()
    sizes = crow.diff()
    order = torch.argsort(sizes, descending=True, stable=True)
    slices = -(-shape[0] // ROWS)
    lanes = torch.full((slices * ROWS,), -1, dtype=torch.int64)
    lanes[: shape[0]] = order
    length = torch.zeros(slices * ROWS, dtype=torch.int64)
    length[: shape[0]] = sizes[order]
    length = length.view(slices, ROWS).amax(1)
    start = torch.cat([torch.zeros(1, dtype=torch.int64), length.cumsum(0)])
    place = torch.empty(shape[0], dtype=torch.int64)
    place[order] = torch.arange(shape[0])
    row = row_of_entry(csr.crow.cpu()).long()
    inside = torch.arange(row.numel()) - crow[row]
    target = (start[place[row] // ROWS] + inside) * ROWS + place[row] % ROWS
    total = int(start[-1]) * ROWS
    index = torch.zeros(total, dtype=torch.int32)
    value = torch.zeros(total, dtype=csr.val.dtype)
    owner = torch.zeros(total, dtype=torch.int32)
    index[target], value[target] = csr.col.cpu().int(), csr.val.cpu()
    owner[target] = row.int()
    node, feature = (owner, index) if nodes_are_rows else (index, owner)
    parts = (
        lanes.int(), start[:-1].int(), length.int(), index, value, mix(node), (feature >> 1) * GOLDEN, (feature & 1) * 16,
    )  # fmt: skip
    return Sliced(*(p.to(csr.val.device) for p in parts), shape=shape)
