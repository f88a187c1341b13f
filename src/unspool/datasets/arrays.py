"""Opening numpy files that may be damaged, and never unpickling anything in them."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

from unspool.datasets.limits import TooLarge, check_archive, largest

Array = np.ndarray[Any, Any]


class Damaged(Exception):
    """A file that cannot be read; the message names what went wrong."""


def load_arrays(path: Path) -> dict[str, Array]:
    """All arrays of an ``.npz`` file by name, or the one of an ``.npy`` file under the name ``""``.

    Example:
        >>> import tempfile, pathlib
        >>> file = pathlib.Path(tempfile.mkdtemp()) / "x.npy"
        >>> np.save(file, np.arange(3))
        >>> load_arrays(file)
        {'': array([0, 1, 2])}
    """
    if not path.is_file():
        raise FileNotFoundError(f"{path} does not exist; check the path")
    try:
        data = io.BytesIO(
            path.read_bytes()
        )  # Trap: np.load(path) leaves the file open when the archive in it is broken
        if zipfile.is_zipfile(data):
            with zipfile.ZipFile(data) as archive:
                check_archive(path, archive)
        data.seek(0)
        held: Any = np.load(data, allow_pickle=False)
        arrays = {"": held} if isinstance(held, np.ndarray) else {name: held[name] for name in held.files}
        for array in arrays.values():
            _check_text(array)
        return arrays
    except (TooLarge, MemoryError):
        raise
    except Exception as problem:  # a flipped byte can make zipfile, zlib and numpy fail in any way
        raise Damaged(type(problem).__name__) from None


def _check_text(array: Array) -> None:
    """Trap: numpy keeps text as numbers, and Python ends in a SystemError where one of them is no character."""
    if array.dtype.kind == "U" and array.size and array.dtype.itemsize:
        codes = np.ascontiguousarray(array.astype(array.dtype.newbyteorder("="), copy=False)).view(np.uint32)
        if codes.max() > 0x10FFFF:
            raise ValueError("text that is none")


def compressed_rows(data: Array, indices: Array, indptr: Array, shape: Sequence[int]) -> Any:
    """A SciPy ``csr_array`` whose indices are checked first: SciPy would read beyond its memory where they are wrong.

    Example:
        >>> compressed_rows(np.ones(1), np.array([7]), np.array([0, 1]), (1, 2))
        Traceback (most recent call last):
            ...
        ValueError: column 7 of 2 in a sparse matrix
    """
    sizes = tuple(int(n) for n in shape)
    if len(sizes) != 2 or any(part.ndim != 1 for part in (data, indices, indptr)):
        raise ValueError(f"a sparse matrix of shape {sizes}")
    if indices.dtype.kind not in "iu" or indptr.dtype.kind not in "iu" or data.dtype.kind not in "fiub":
        raise ValueError(f"a sparse matrix of {data.dtype} at {indices.dtype}")
    _check_extent(sizes)
    steps = np.diff(indptr.astype(np.int64))
    if indptr.size != sizes[0] + 1 or indptr[0] != 0 or (steps < 0).any() or indptr[-1] != indices.size:
        raise ValueError("rows of a sparse matrix that do not follow one another")
    if data.size != indices.size:
        raise ValueError(f"{data.size} values at {indices.size} places of a sparse matrix")
    wrong = (indices < 0) | (indices >= sizes[1])
    if wrong.any():
        raise ValueError(f"column {int(indices[wrong][0])} of {sizes[1]} in a sparse matrix")
    return scipy.sparse.csr_array((data, indices, indptr), shape=sizes)


def sparse_matrix(arrays: dict[str, Array]) -> Any:
    """The matrix that ``scipy.sparse.save_npz`` wrote (CSR, CSC or COO) as a checked ``csr_array``; or ``ValueError``."""
    kind = arrays["format"].item() if "format" in arrays and arrays["format"].ndim == 0 else b"?"
    kind = kind.decode("ascii", "replace") if isinstance(kind, bytes) else str(kind)
    needed = {"csr": ("indices", "indptr"), "csc": ("indices", "indptr"), "coo": ("row", "col")}.get(kind)
    if needed is None:
        raise ValueError(f"a sparse matrix of the format {kind!r}, not csr, csc or coo")
    lacking = [name for name in ("data", "shape", *needed) if name not in arrays]
    if lacking:
        raise ValueError(f"a sparse matrix without {lacking[0]!r}")
    data, shape = arrays["data"], arrays["shape"]
    if shape.ndim != 1 or shape.dtype.kind not in "iu" or shape.size != 2 or (shape < 0).any():
        raise ValueError(f"a sparse matrix of shape {shape.tolist()}")
    first, second = arrays[needed[0]], arrays[needed[1]]
    if kind == "csr":
        return compressed_rows(data, first, second, shape.tolist())
    if kind == "csc":
        return compressed_rows(data, first, second, shape.tolist()[::-1]).T.tocsr()
    _check_extent(shape.tolist())
    return scipy.sparse.coo_array(
        (data, (first, second)), shape=tuple(shape.tolist())
    ).tocsr()  # SciPy checks these itself


def _check_extent(shape: Sequence[int]) -> None:
    """Refuse a matrix whose pointers alone would fill the memory."""
    if max(shape) * 8 > largest():
        raise ValueError(f"a sparse matrix of shape {tuple(shape)}")
