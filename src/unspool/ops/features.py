"""Node features with few non-zeros (bags of words), kept sparse."""

from __future__ import annotations

import weakref
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from unspool.ops.change_detection import copies, unchanged
from unspool.ops.dropout import Mask, drop_entries
from unspool.ops.kernels import fused
from unspool.ops.operator import Csr, Operator, row_of_entry
from unspool.ops.spmm import spmm


@dataclass(frozen=True, eq=False)
class SparseFeatures:
    """A sparse matrix X of shape (nodes, features), in both orders, ready for X W and its gradient.

    Made by :meth:`from_tensor` from a torch sparse tensor, a SciPy matrix or a dense tensor; immutable, and without
    gradients of its own. ``rows`` is the row of each entry; ``order`` says where the entries of the transpose stand.

    Example:
        >>> import torch
        >>> x = SparseFeatures.from_tensor(torch.tensor([[0.0, 2.0], [0.0, 0.0], [1.0, 0.0]]))
        >>> x
        SparseFeatures(nodes=3, features=2, entries=2, float32, cpu)
        >>> x @ torch.tensor([[1.0], [10.0]])
        tensor([[20.],
                [ 0.],
                [ 1.]])
    """

    operator: Operator
    rows: Tensor
    order: Tensor

    @staticmethod
    def from_operator(operator: Operator, order: Tensor | None = None) -> SparseFeatures:
        """Features from a sparse operator whose rows are nodes; ``order`` where it is known."""
        rows = row_of_entry(operator.forward.crow).to(operator.forward.col.dtype)
        if order is None:
            order = torch.argsort(operator.forward.col, stable=True)
        return SparseFeatures(operator, rows, order)

    @staticmethod
    def from_tensor(x: Any) -> SparseFeatures:
        """Read a torch tensor (sparse or dense) or a SciPy sparse matrix; explicit zeros are dropped."""
        if not isinstance(x, Tensor):
            if not hasattr(x, "tocoo"):
                raise TypeError(
                    f"features of type {type(x).__name__}: expected a torch tensor or a SciPy sparse matrix"
                )
            entries = x.tocoo()
            index = torch.stack([torch.as_tensor(entries.row).long(), torch.as_tensor(entries.col).long()])
            x = torch.sparse_coo_tensor(index, torch.as_tensor(entries.data), entries.shape, check_invariants=False)
        if x.ndim != 2:
            raise ValueError(f"features of shape {tuple(x.shape)}: expected (nodes, features)")
        if not x.is_floating_point():
            raise TypeError(
                f"features hold {str(x.dtype).removeprefix('torch.')}: expected floating-point numbers; call x.float()"
            )
        coo = x.detach().to_sparse_coo().coalesce()
        kept = coo.values() != 0  # NaN is kept, and named by the check of the input
        (row, col), value = coo.indices()[:, kept], coo.values()[kept]
        shape = (int(x.shape[0]), int(x.shape[1]))
        if value.dtype in (torch.bfloat16, torch.float16):
            value = value.float()
        return SparseFeatures.from_operator(Operator.from_entries(row, col, value, shape))

    @property
    def shape(self) -> torch.Size:
        """(nodes, features)."""
        return torch.Size(self.operator.shape)

    @property
    def dtype(self) -> torch.dtype:
        """The dtype of the entries."""
        return self.operator.dtype

    @property
    def device(self) -> torch.device:
        """Where the entries live."""
        return self.operator.device

    @property
    def values(self) -> Tensor:
        """The entries that are not zero, row by row."""
        return self.operator.forward.val

    def to(self, target: torch.device | str | torch.dtype) -> SparseFeatures:
        """The same features on another device or in another dtype."""
        old = self.operator
        if isinstance(target, torch.dtype):
            return SparseFeatures.from_operator(
                old.to(values=(old.forward.val.to(target), old.transpose.val.to(target))), self.order
            )
        where = torch.device(target)
        return SparseFeatures.from_operator(old.to(where), self.order.to(where))

    def dropped(self, rate: float | Tensor, key: Tensor, count: int | Tensor = 0) -> DroppedFeatures:
        """The matrix after dropout: the same elements survive as in a dense matrix under the same key."""
        return DroppedFeatures(self, Mask.of(rate, key, count))

    def __matmul__(self, weight: Tensor) -> Tensor:
        return feature_product(self, weight, None)

    def to_dense(self) -> Tensor:
        """As a plain tensor."""
        return self.operator.to_dense()

    def __repr__(self) -> str:
        dtype = str(self.dtype).removeprefix("torch.")
        nodes, features = self.shape
        return (
            f"SparseFeatures(nodes={nodes}, features={features}, entries={self.values.numel()}, {dtype}, {self.device})"
        )


@dataclass(frozen=True, eq=False)
class DroppedFeatures:
    """Sparse features under a mask, which is laid on where they are multiplied.

    Example:
        >>> import torch
        >>> from unspool.ops.dropout import key
        >>> x = SparseFeatures.from_tensor(torch.ones(2, 2)).dropped(0.5, key(0, 0, 1))
        >>> torch.equal(x @ torch.eye(2), x.operator.to_dense())
        True
    """

    features: SparseFeatures
    mask: Mask

    @property
    def operator(self) -> Operator:
        """The masked entries, written out."""
        x = self.features
        a, b = x.operator.forward, x.operator.transpose
        val = drop_entries(x.rows, a.col, a.val, *self.mask)
        val_t = val.index_select(0, x.order)
        return Operator(Csr(a.crow, a.col, val, a.hubs), Csr(b.crow, b.col, val_t, b.hubs), x.operator.shape)

    @property
    def shape(self) -> torch.Size:
        """(nodes, features)."""
        return self.features.shape

    @property
    def dtype(self) -> torch.dtype:
        """The dtype of the entries."""
        return self.features.dtype

    @property
    def device(self) -> torch.device:
        """Where the entries live."""
        return self.features.device

    def to_dense(self) -> Tensor:
        """As a plain tensor."""
        return self.operator.to_dense()

    def __matmul__(self, weight: Tensor) -> Tensor:
        return feature_product(self.features, weight, self.mask)


class WeightedRows(SparseFeatures):
    """Sparse features whose rows are multiplied by a factor each, M X, which is laid on the product: (M X) W = M (X W).

    So all views that lose other nodes share the entries of X. Whoever asks for the entries gets them multiplied.

    Args:
        features: X.
        factor: one number for each node, shape (nodes, 1).

    Example:
        >>> import torch
        >>> x = WeightedRows(SparseFeatures.from_tensor(torch.ones(2, 2)), torch.tensor([[0.0], [2.0]]))
        >>> x @ torch.tensor([[1.0], [10.0]])
        tensor([[ 0.],
                [22.]])
        >>> x.values, x.dropped(0.0, torch.tensor(0, dtype=torch.int32)).to_dense()
        (tensor([0., 0., 2., 2.]), tensor([[0., 0.],
                [2., 2.]]))
    """

    features: SparseFeatures
    factor: Tensor

    def __init__(self, features: SparseFeatures, factor: Tensor) -> None:
        vars(self).update(features=features, factor=factor)

    @property
    def operator(self) -> Operator:  # type: ignore[override]
        """The entries, multiplied."""
        x = self.features
        a, b = x.operator.forward, x.operator.transpose
        val = a.val * self.factor[:, 0].index_select(0, x.rows.long())
        val_t = val.index_select(0, x.order)
        return Operator(Csr(a.crow, a.col, val, a.hubs), Csr(b.crow, b.col, val_t, b.hubs), x.operator.shape)

    @property
    def rows(self) -> Tensor:  # type: ignore[override]
        """The row of each entry."""
        return self.features.rows

    @property
    def order(self) -> Tensor:  # type: ignore[override]
        """Where the entries of the transpose stand."""
        return self.features.order

    @property
    def shape(self) -> torch.Size:
        """(nodes, features)."""
        return self.features.shape

    @property
    def dtype(self) -> torch.dtype:
        """The dtype of the entries."""
        return self.features.dtype

    @property
    def device(self) -> torch.device:
        """Where the entries live."""
        return self.features.device

    def to_dense(self) -> Tensor:
        """As a plain tensor."""
        return self.factor * self.features.to_dense()


def feature_product(x: SparseFeatures, weight: Tensor, mask: Mask | None) -> Tensor:
    """X W, under a mask on the entries of X where there is one; many trials at once on a GPU (:mod:`unspool.ops.stacked_features`).

    Example:
        >>> import torch
        >>> feature_product(SparseFeatures.from_tensor(torch.eye(2)), torch.tensor([[1.0], [2.0]]), None)
        tensor([[1.],
                [2.]])
    """
    if isinstance(x, WeightedRows):
        return x.factor * feature_product(x.features, weight, mask)
    if fused(x.values, weight) and not _stacked(x.values):
        from unspool.ops.stacked_features import stacked_feature_product

        return stacked_feature_product(x, weight, mask)
    return spmm(x.operator if mask is None else DroppedFeatures(x, mask).operator, weight)


def _stacked(values: Tensor) -> bool:
    """Whether values differ from trial to trial, as where a perturbation drops whole rows: they are not features that all share."""
    return torch._C._functorch.is_functorch_wrapped_tensor(values)  # pyright: ignore


#: Features made from sparse tensors that are still alive: (weak reference, what they held, features) by id.
_MADE: dict[int, tuple[weakref.ref[Tensor], tuple[Tensor, ...], SparseFeatures]] = {}


def features_of(x: Any) -> Tensor | SparseFeatures:
    """Dense tensors as they are; torch sparse tensors as :class:`SparseFeatures`, prepared once per tensor.

    A tensor that was changed since is read anew.

    Example:
        >>> import torch
        >>> x = torch.eye(3).to_sparse()
        >>> features_of(x) is features_of(x)
        True
    """
    if isinstance(x, SparseFeatures) or (isinstance(x, Tensor) and x.layout is torch.strided):
        return x
    if not isinstance(x, Tensor):
        return SparseFeatures.from_tensor(x)
    if x.requires_grad:
        raise TypeError(
            "x is sparse and requires gradients, but sparse features are constants; detach it, or give it dense"
        )
    parts, name = _parts(x), id(x)
    known = _MADE.get(name)
    if known is not None and known[0]() is x and len(parts) == len(known[1]) and unchanged(parts, known[1]):
        return known[2]
    with torch.inference_mode(False):  # what is remembered must be of use in training too
        kept = copies(parts)
        made = SparseFeatures.from_tensor(x)
    _MADE[name] = (weakref.ref(x, lambda _: _MADE.pop(name, None)), kept, made)
    return made


def _parts(x: Tensor) -> tuple[Tensor, ...]:
    """The plain tensors that a sparse one is made of."""
    if x.layout is torch.sparse_coo:
        return x._indices(), x._values()
    if x.layout in (torch.sparse_csc, torch.sparse_bsc):
        return x.ccol_indices(), x.row_indices(), x.values()
    return x.crow_indices(), x.col_indices(), x.values()
