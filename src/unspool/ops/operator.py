"""A sparse matrix together with its transpose: what every graph operation is made of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import torch
from torch import Tensor

if TYPE_CHECKING:
    import scipy.sparse

#: Rows longer than this many entries are cut into pieces on the GPU, so that one hub does not hold up all others.
HUB = 128


class Csr(NamedTuple):
    """One sparse matrix in compressed rows.

    ``hubs`` lists the pieces of long rows as ``(row, first entry, last entry + 1)``, in order; it is empty where
    nobody needs it (on the CPU, or when every row is short).
    """

    crow: Tensor
    col: Tensor
    val: Tensor
    hubs: Tensor


class HasOperator(Protocol):
    """Anything that carries an :class:`Operator`: a ``Graph`` does."""

    @property
    def operator(self) -> Operator:
        """The sparse matrix and its transpose."""
        ...


@dataclass(frozen=True, eq=False)
class Operator:
    """An immutable sparse matrix M and its transpose, both in compressed rows.

    Both directions are kept because the gradient of M x is Mᵀ times something, and because torch's own backward
    for compressed rows is several times slower than a second product. A symmetric matrix keeps one copy.

    Example:
        >>> import torch
        >>> row, col = torch.tensor([0, 1]), torch.tensor([1, 2])
        >>> shift = Operator.from_entries(row, col, torch.ones(2), shape=(3, 3))
        >>> (shift @ torch.tensor([[1.0], [2.0], [3.0]])).flatten()
        tensor([2., 3., 0.])
        >>> shift.T.to_dense()[1, 0]
        tensor(1.)
    """

    forward: Csr
    transpose: Csr
    shape: tuple[int, int]

    @staticmethod
    def from_entries(row: Tensor, col: Tensor, val: Tensor, shape: tuple[int, int]) -> Operator:
        """Build from coordinates (sorted or not, without repeats)."""
        forward = _compress(row, col, val, shape)
        transpose = _compress(col, row, val, (shape[1], shape[0]))
        if shape[0] == shape[1] and _equal(forward, transpose):
            transpose = forward
        return Operator(forward, transpose, shape)

    @property
    def operator(self) -> Operator:
        """Itself, so that an operator can stand wherever a graph can."""
        return self

    @property
    def T(self) -> Operator:  # noqa: N802 - the transpose is called T everywhere
        """The transpose, without copying."""
        return Operator(self.transpose, self.forward, (self.shape[1], self.shape[0]))

    @property
    def symmetric(self) -> bool:
        """Whether the matrix equals its transpose, entry by entry."""
        return self.transpose is self.forward

    @property
    def dtype(self) -> torch.dtype:
        """The dtype of the entries."""
        return self.forward.val.dtype

    @property
    def device(self) -> torch.device:
        """Where the entries live."""
        return self.forward.val.device

    def __matmul__(self, x: Tensor) -> Tensor:
        from unspool.ops.spmm import spmm

        return spmm(self, x)

    def expected_rows(self) -> str:
        """What a signal that does not fit is told."""
        return f"the graph has {self.shape[1]} nodes: expected (..., nodes, features)"

    def rows(self) -> Tensor:
        """The row of each stored entry, in order."""
        return row_of_entry(self.forward.crow)

    def to(self, device: torch.device | None = None, values: tuple[Tensor, Tensor] | None = None) -> Operator:
        """Move to ``device``; ``values`` replaces the entries of (M, Mᵀ), for example in another dtype."""
        where = self.device if device is None else device
        val, val_t = (self.forward.val, self.transpose.val) if values is None else values
        forward = _move(self.forward, val, where)
        transpose = forward if self.symmetric else _move(self.transpose, val_t, where)
        return Operator(forward, transpose, self.shape)

    def to_dense(self) -> Tensor:
        """The matrix as a plain tensor, for checks on small graphs."""
        dense = torch.zeros(self.shape, dtype=self.dtype, device=self.device)
        dense[self.rows(), self.forward.col.long()] = self.forward.val
        return dense

    def to_scipy(self) -> scipy.sparse.csr_array[Any, Any]:
        """The matrix as a SciPy ``csr_array`` (copied to the CPU where needed)."""
        import scipy.sparse

        csr = self.forward
        parts = (csr.val.cpu().numpy(), csr.col.cpu().numpy(), csr.crow.cpu().numpy())
        return scipy.sparse.csr_array(parts, shape=self.shape)


def row_of_entry(crow: Tensor) -> Tensor:
    """Expand row pointers: entry e lies in row ``row_of_entry(crow)[e]``."""
    return torch.repeat_interleave(torch.arange(crow.numel() - 1, device=crow.device), crow.diff().long())


def hub_pieces(crow: Tensor, longest: int = HUB) -> Tensor:
    """Cut every row longer than ``longest`` into pieces ``(row, first, last + 1)``, in order of row and entry.

    Example:
        >>> import torch
        >>> hub_pieces(torch.tensor([0, 1, 6, 7]), longest=2).tolist()
        [[1, 1, 3], [1, 3, 5], [1, 5, 6]]
    """
    length = crow.diff().long()
    hub = torch.nonzero(length > longest).flatten()
    pieces = (length[hub] + longest - 1) // longest
    row = torch.repeat_interleave(hub, pieces)
    before = torch.repeat_interleave(pieces.cumsum(0) - pieces, pieces)
    place = torch.arange(row.numel(), device=crow.device) - before
    first = crow[row].long() + place * longest
    last = torch.minimum(first + longest, crow[row + 1].long())
    return torch.stack([row, first, last], dim=1).to(crow.dtype)


def compressed(crow: Tensor, col: Tensor, val: Tensor) -> Csr:
    """One matrix from its compressed rows, with the pieces of long ones where its device needs them."""
    return Csr(crow, col, val, _hubs(crow))


def _compress(row: Tensor, col: Tensor, val: Tensor, shape: tuple[int, int]) -> Csr:
    fits = max(*shape, val.numel()) < 2**31
    index = torch.int32 if fits else torch.int64
    order = torch.argsort(row.long() * shape[1] + col.long())
    crow = torch.zeros(shape[0] + 1, dtype=torch.int64, device=row.device)
    crow[1:] = torch.bincount(row, minlength=shape[0]).cumsum(0)
    crow = crow.to(index)
    return compressed(crow, col[order].to(index), val[order].contiguous())


def _hubs(crow: Tensor) -> Tensor:
    return hub_pieces(crow) if crow.is_cuda else crow.new_zeros((0, 3))


def _move(csr: Csr, val: Tensor, device: torch.device) -> Csr:
    crow = csr.crow.to(device)
    return compressed(crow, csr.col.to(device), val.to(device))


def _equal(a: Csr, b: Csr) -> bool:
    return torch.equal(a.crow, b.crow) and torch.equal(a.col, b.col) and torch.equal(a.val, b.val)
