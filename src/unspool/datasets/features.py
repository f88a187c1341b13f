"""Node features: dense where most entries count, sparse where few do, and the scalings the papers use."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse
import torch
from torch import Tensor

from unspool.errors import IncompatibleError, mention
from unspool.graph.part import entries_of
from unspool.ops import Operator, SparseFeatures
from unspool.ops.operator import Csr
from unspool.ops.stored_hops import StoredHops

#: Features with at most this share of non-zeros are kept sparse.
SPARSE_BELOW = 0.2
#: The largest number that float32 has.
LARGEST = float(np.finfo(np.float32).max)

Features = Tensor | SparseFeatures | StoredHops
Array = np.ndarray[Any, Any]


def as_features(matrix: Any) -> Features:
    """A SciPy matrix or an array as float32 features: sparse if at most a fifth of the entries are not zero.

    Example:
        >>> import numpy as np
        >>> as_features(np.eye(10))
        SparseFeatures(nodes=10, features=10, entries=10, float32, cpu)
        >>> as_features(np.ones((2, 2)))
        tensor([[1., 1.],
                [1., 1.]])
    """
    shape = matrix.shape
    is_sparse = scipy.sparse.issparse(matrix)
    filled = matrix.nnz if is_sparse else int(np.count_nonzero(matrix))
    if filled <= SPARSE_BELOW * shape[0] * shape[1]:
        return sparse(matrix)
    dense = matrix.toarray() if is_sparse else matrix
    return torch.from_numpy(np.array(dense, dtype=np.float32, order="C"))  # a copy: data sets do not change


def sparse(matrix: Any) -> SparseFeatures:
    """Compressed rows as they are: ten times faster than sorting entries, and data sets come in this form."""
    rows: Any = scipy.sparse.csr_array(matrix, dtype=np.float32, copy=True)
    rows.sum_duplicates()
    rows.eliminate_zeros()
    cols = rows.tocsc()
    operator = Operator(_csr(rows), _csr(cols), (int(rows.shape[0]), int(rows.shape[1])))
    places: Any = scipy.sparse.csr_array((np.arange(rows.nnz), rows.indices, rows.indptr), shape=rows.shape)
    return SparseFeatures.from_operator(operator, torch.as_tensor(places.tocsc().data))


def to_numpy(features: Features) -> Any:
    """Back to what :func:`as_features` reads: a SciPy ``csr_array`` or an array, on the CPU."""
    features = in_memory(features, "read as one matrix", "take rows of them with features.take(rows)")
    if isinstance(features, SparseFeatures):
        return features.operator.to_scipy()
    return features.detach().cpu().numpy()


def moved(features: Features, device: torch.device | str) -> Features:
    """The same features on another device."""
    return features.to(torch.device(device))


def take_rows(features: Features, kept: Array) -> Features:
    """The rows ``kept``, in that order, in the same representation."""
    features = in_memory(features, "cut", "name the nodes when they are written, with nodes=...")
    if isinstance(features, SparseFeatures):
        return sparse(features.operator.to_scipy()[kept]).to(features.device)
    return features[torch.as_tensor(kept, device=features.device)]


def rows_of(x: Tensor | SparseFeatures, nodes: Tensor) -> Tensor | SparseFeatures:
    """Features of some nodes, each once, sparse where they are.

    Example:
        >>> import torch
        >>> rows_of(torch.eye(3), torch.tensor([2]))
        tensor([[0., 0., 1.]])
    """
    if isinstance(x, Tensor):
        return x[nodes.to(x.device)]
    csr, where = x.operator.forward, x.device
    row, entry = entries_of(csr.crow.cpu(), nodes)
    entry = entry.to(where)
    size = (int(nodes.numel()), int(x.shape[1]))
    return SparseFeatures.from_operator(
        Operator.from_entries(row.to(where), csr.col[entry].long(), csr.val[entry], size)
    )


def row_normalise(features: Features) -> Features:
    r"""Rows that sum to one, exactly as PyTorch Geometric's ``NormalizeFeatures`` makes them.

    .. math:: x_{ij} \leftarrow (x_{ij} - m) / \max(1, \textstyle\sum_k (x_{ik} - m)), \qquad m = \min_{ij} x_{ij}

    The minimum is over the whole matrix. Because the sum is clamped to at least 1, rows that sum to less (empty ones
    above all) are not scaled up.

    Example:
        >>> import torch
        >>> row_normalise(torch.tensor([[0.0, 3.0, 1.0], [0.0, 0.0, 0.5]]))
        tensor([[0.0000, 0.7500, 0.2500],
                [0.0000, 0.0000, 0.5000]])
    """
    features = in_memory(
        features, "row-normalised, as they have seen the graph", "normalise the features before hops are written"
    )
    if isinstance(features, SparseFeatures):
        if features.values.numel() == 0 or float(features.values.min()) >= 0:  # the minimum is an implicit zero
            rows = features.operator.to_scipy()
            total = np.asarray(rows.sum(axis=1, dtype=np.float64)).astype(np.float32)
            scale = np.repeat(np.maximum(total, np.float32(1)), np.diff(rows.indptr))
            scaled = scipy.sparse.csr_array((rows.data / scale, rows.indices, rows.indptr), shape=rows.shape)
            return sparse(scaled).to(features.device)
        features = features.to_dense()  # subtracting a negative minimum fills every entry
    if features.numel() == 0:
        return features
    shifted = features - features.min()
    return shifted / shifted.sum(dim=-1, keepdim=True).clamp(min=1.0)


def row_normalise_like(new: Features, old: Features) -> Features:
    """Rows of new nodes scaled as :func:`row_normalise` has scaled those of old ones, given as they are now.

    The minimum that is subtracted is that of the old matrix: zero where it is sparse still, and not to be known where it is dense.

    Example:
        >>> import torch
        >>> old = row_normalise(sparse(np.eye(3)))
        >>> row_normalise_like(torch.tensor([[2.0, 2.0, 0.0]]), old)
        tensor([[0.5000, 0.5000, 0.0000]])
    """
    if not isinstance(old, SparseFeatures):
        raise IncompatibleError(
            "rows of features were scaled in training with the smallest number among all of them, which is not kept; scale features yourself "
            f"before training, and leave {mention('normalise_rows')} out"
        )
    dense = in_memory(new, "row-normalised", "give features")
    dense = dense.to_dense() if isinstance(dense, SparseFeatures) else dense
    scaled = dense / dense.sum(dim=-1, keepdim=True).clamp(min=1.0)
    return SparseFeatures.from_tensor(scaled) if isinstance(new, SparseFeatures) else scaled


def in_memory(features: Features, what: str, way: str) -> Tensor | SparseFeatures:
    """The features; one sentence where something needs the matrix itself, and they are hops on the disk.

    Example:
        >>> in_memory(torch.ones(1, 1), "cut", "do not cut them")
        tensor([[1.]])
    """
    if isinstance(features, StoredHops):
        raise IncompatibleError(
            f"the features are hops on the disk ({features.file.parent}), which cannot be {what}; {way}"
        )
    return features


def identity(nodes: int) -> SparseFeatures:
    """One feature per node, for graphs that come without any: a model learns one row of weights for each."""
    return sparse(scipy.sparse.eye_array(nodes))


def read_features(given: Any, names: Sequence[Any] | None = None) -> Features:
    """Features of any kind (a tensor, an array, a SciPy matrix, nested lists) as checked float32 features.

    Example:
        >>> read_features([[1.0, float("nan")]])
        Traceback (most recent call last):
            ...
        ValueError: features: row 0, column 1 is nan; fill or drop it first
    """
    if isinstance(given, SparseFeatures):
        given = given.operator.to_scipy()
    matrix = given.detach().cpu() if isinstance(given, Tensor) else given
    if isinstance(matrix, Tensor):
        matrix = _sparse_tensor(matrix) if matrix.layout is not torch.strided else _wide(matrix).numpy()
    if not scipy.sparse.issparse(matrix):
        matrix = np.asarray(matrix)
        if matrix.dtype.kind not in "fiub":
            raise TypeError(f"features hold {matrix.dtype}: expected numbers; encode text first")
    if matrix.ndim != 2 or matrix.shape[0] == 0 or matrix.shape[1] == 0:
        raise ValueError(f"features of shape {tuple(matrix.shape)}: expected (nodes, features), at least one of each")
    check_finite(matrix, names)
    return as_features(matrix)


def check_finite(matrix: Any, names: Sequence[Any] | None = None, largest: float = LARGEST) -> None:
    """Name the first entry that is NaN, infinite or too large for float32, by row (and node) and column."""
    if scipy.sparse.issparse(matrix):
        entries = matrix.tocoo()
        bad = np.flatnonzero(_outside(entries.data, largest))
        places = [(int(entries.row[i]), int(entries.col[i]), float(entries.data[i])) for i in bad[:1]]
    else:
        where = np.argwhere(_outside(matrix, largest)) if matrix.dtype.kind == "f" else np.zeros((0, 2), int)
        places = [(int(i), int(j), float(matrix[i, j])) for i, j in where[:1]]
    for row, col, value in places:
        node = "" if names is None else f" (node {names[row]!r})"
        way = "bring it to another scale, since features are float32" if np.isfinite(value) else "fill or drop it first"
        raise ValueError(f"features: row {row}{node}, column {col} is {value}; {way}")


def _outside(values: Array, largest: float) -> Array:
    bad = ~np.isfinite(values)
    return bad | (np.abs(values) > largest) if values.dtype.itemsize > 4 else bad


def _wide(x: Tensor) -> Tensor:
    return x.float() if x.dtype in (torch.bfloat16, torch.float16) else x


def _sparse_tensor(x: Tensor) -> Any:
    coo = x.to_sparse_coo().coalesce()
    row, col = coo.indices().numpy()
    return scipy.sparse.coo_array((_wide(coo.values()).numpy(), (row, col)), shape=tuple(x.shape)).tocsr()


def _csr(matrix: Any) -> Csr:
    """The three arrays of a SciPy matrix; of compressed columns they are the rows of the transpose."""
    index = torch.int32 if max(*matrix.shape, matrix.nnz) < 2**31 else torch.int64
    crow, col = torch.from_numpy(matrix.indptr).to(index), torch.from_numpy(matrix.indices).to(index)
    return Csr(crow, col, torch.from_numpy(matrix.data), crow.new_zeros((0, 3)))
