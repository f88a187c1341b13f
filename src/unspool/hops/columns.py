"""Where columns of the features come from: a file that is mapped, an array, or sparse features."""

from __future__ import annotations

import hashlib
import mmap
import os
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
import torch
from torch import Tensor

from unspool.datasets.node_files import Columns as NoColumns
from unspool.datasets.node_files import read_features as read_table
from unspool.errors import DataError, InputError
from unspool.ops import SparseFeatures, features_of

Array = np.ndarray[Any, Any]

#: How many bytes of an array are read together, and how many before the system is told that it may have its pages back.
PIECE, HELD = 16 << 20, 64 << 20


class Columns(ABC):
    """Features of which some columns at a time are wanted.

    A subclass of one's own makes columns as they are asked for, where the features of all nodes would not fit anywhere.

    Attributes:
        shape: (nodes, features).
        mark: what tells these features from others, in plain values.

    Example:
        >>> class Numbers(Columns):
        ...     shape, mark = (3, 100), ["the number of the column"]
        ...     def read(self, first, out):
        ...         out.copy_(torch.arange(first, first + out.shape[1]))
        >>> out = torch.empty(3, 2)
        >>> Numbers().read(40, out)
        >>> out[0]
        tensor([40., 41.])
    """

    shape: tuple[int, int]
    mark: list[Any]

    @abstractmethod
    def read(self, first: int, out: Tensor) -> None:
        """Write the columns from ``first`` on into memory of shape (nodes, columns), in its type; what is not finite is named."""


class ArrayColumns(Columns):
    """Columns of an array, which may be a map of a file.

    Args:
        array: of shape (nodes, features).
        mark: as in :class:`Columns`; of its content when omitted.
        mapped: the map behind it, where its pages may be given back.

    Example:
        >>> import numpy as np
        >>> out = torch.empty(2, 1)
        >>> ArrayColumns(np.array([[1.0, 2.0], [3.0, 4.0]]), ["two rows"]).read(1, out)
        >>> out.flatten()
        tensor([2., 4.])
    """

    def __init__(self, array: Array, mark: list[Any] | None = None, mapped: mmap.mmap | None = None) -> None:
        self._array, self._mapped = array, mapped
        self.shape = (int(array.shape[0]), int(array.shape[1]))
        self.mark = _content(array) if mark is None else mark

    def read(self, first: int, out: Tensor) -> None:
        """Row by row in pieces, since rows lie together."""
        nodes, many = out.shape
        rows = max(PIECE // max(self.shape[1] * self._array.itemsize, 1), 1)
        read = 0
        for at in range(0, nodes, rows):
            given = self._array[at : at + rows, first : first + many]
            with np.errstate(over="ignore"):
                out[at : at + rows] = torch.from_numpy(given.astype(_numpy(out.dtype)))
            _check(out[at : at + rows], at, first, given)
            read += rows * self.shape[1] * self._array.itemsize
            if read > HELD or at + rows >= nodes:
                self._give_back()
                read = 0

    def _give_back(self) -> None:
        """Pages of a map count as memory of this process until they are given back."""
        if self._mapped is not None and hasattr(mmap, "MADV_DONTNEED"):
            self._mapped.madvise(mmap.MADV_DONTNEED)


class SparseColumns(Columns):
    """Columns of sparse features, written out."""

    def __init__(self, features: SparseFeatures) -> None:
        self._features, self.shape = features, (int(features.shape[0]), int(features.shape[1]))
        csr = features.operator.forward
        self.mark = [part for values in (csr.crow, csr.col, csr.val) for part in _content(values.cpu().numpy())]

    def read(self, first: int, out: Tensor) -> None:
        """The transpose has them one behind the other."""
        crow, node, value, _ = self._features.operator.transpose
        out.zero_()
        for column in range(out.shape[1]):
            here = slice(int(crow[first + column]), int(crow[first + column + 1]))
            out[:, column].index_copy_(0, node[here].long(), value[here].to(out.dtype))
        _check(out, 0, first, None)


def columns_of(given: Any, chosen: Sequence[str] | None = None, dropped: Sequence[str] = ()) -> Columns:
    """Columns of whatever holds features: a path, an array, a tensor, sparse features, a SciPy matrix, or columns that are made.

    Args:
        given: what holds them.
        chosen, dropped: names of columns to take and to leave out, of a table in a file.

    Example:
        >>> columns_of(torch.eye(3)).shape
        (3, 3)
    """
    if isinstance(given, Columns):
        return given
    if isinstance(given, str | os.PathLike):
        return _of_file(Path(given), NoColumns(features=chosen, drop=dropped))
    _check_named(None, chosen, dropped)
    if isinstance(given, SparseFeatures) or scipy.sparse.issparse(given):
        found = features_of(given)
        assert isinstance(found, SparseFeatures)
        return SparseColumns(found)
    if isinstance(given, Tensor):
        given = features_of(given.detach())
        if isinstance(given, SparseFeatures):
            return SparseColumns(given)
        given = (given.float() if given.dtype is torch.bfloat16 else given).cpu().numpy()
    array = given if isinstance(given, np.ndarray) else np.asarray(given)
    return ArrayColumns(_checked(array, "features"))


def _of_file(path: Path, how: NoColumns) -> Columns:
    """A ``.npy`` file as a map; whatever else holds features is read as everywhere."""
    if path.suffix.lower() == ".npy":
        _check_named(None, how.features, how.drop)
        if not path.is_file():
            raise FileNotFoundError(f"{path} does not exist; check the path")
        try:
            array: Array = np.load(path, mmap_mode="r", allow_pickle=False)
        except (ValueError, OSError, EOFError) as problem:
            raise DataError(
                str(path), f"it cannot be read ({type(problem).__name__})", "write it again with numpy.save"
            ) from None
        # Trap: only of our own map of the file, to which nobody has written, is nothing lost.
        return ArrayColumns(_checked(array, str(path)), _stamp(path), getattr(array, "_mmap", None))
    read = read_table(path, how, answers=False)
    _check_named(None if read.table is None else read.table.header, how.features, how.drop)
    if read.ids is not None and read.ids != [str(i) for i in range(len(read.ids))]:
        raise DataError(
            str(path),
            "its rows name the nodes, and not as 0, 1, 2, ... in this order",
            "sort them as the graph numbers its nodes",
        )
    matrix: Any = read.matrix
    if scipy.sparse.issparse(matrix):
        return SparseColumns(SparseFeatures.from_tensor(matrix.astype(np.float64)))
    return ArrayColumns(_checked(matrix, str(path)), [*_stamp(path), list(how.features or ()), list(how.drop)])


def _check_named(there: Sequence[str] | None, chosen: Sequence[str] | None, dropped: Sequence[str]) -> None:
    """Refuse names of columns that are not there, or where columns have no names."""
    for argument, names in (("feature_columns", chosen or ()), ("drop_columns", dropped)):
        lacking = next((name for name in names if name not in (there or ())), None)
        if lacking is not None:
            have = "the features have no names here" if there is None else f"there are {', '.join(there)}"
            raise InputError(argument, lacking, f"the name of a column of features; {have}")


def _checked(array: Array, culprit: str) -> Array:
    if array.dtype.kind not in "fiub":
        raise DataError(culprit, f"it holds {array.dtype}", "features are numbers; encode text first")
    if array.ndim != 2 or 0 in array.shape:
        raise DataError(
            culprit, f"it has shape {array.shape}", "features have shape (nodes, features), at least one of each"
        )
    return array


def _check(found: Tensor, at: int, first: int, given: Array | None) -> None:
    """Name the first entry that is not finite, or was too large for the type."""
    if bool(torch.isfinite(found.sum())) or bool(torch.isfinite(found).all()):
        return
    row, column = (int(i) for i in torch.nonzero(~torch.isfinite(found))[0])
    value = float(found[row, column] if given is None else given[row, column])
    way = (
        "bring it to another scale, since it is too large for this type"
        if np.isfinite(value)
        else "fill or drop it first"
    )
    raise InputError(
        "features", value, f"finite numbers, and node {at + row} has this as feature {first + column}", way
    )


def _numpy(dtype: torch.dtype) -> Any:
    return np.float64 if dtype is torch.float64 else np.float32


def _stamp(path: Path) -> list[Any]:
    return [str(path.resolve()), path.stat().st_size, path.stat().st_mtime_ns]


def _content(array: Array) -> list[Any]:
    """A name for what an array holds, read piece by piece."""
    held = hashlib.sha256(f"{array.dtype} {array.shape};".encode())
    rows = max(PIECE // max(array[:1].nbytes, 1), 1)
    for at in range(0, array.shape[0], rows):
        held.update(np.ascontiguousarray(array[at : at + rows]).data)
    return [held.hexdigest()]
