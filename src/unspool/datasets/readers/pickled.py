"""Pickles of arrays, opened without running any code of theirs or of anybody's.

A pickle is a program. The one that Planetoid's files are needs numpy arrays, SciPy's compressed rows and dictionaries;
here it gets stand-ins that write down what they are told, and arrays are made of the plain bytes afterwards.
"""

from __future__ import annotations

import io
import math
import pickle
import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from unspool.datasets.arrays import Array, compressed_rows

_NUMBERS = re.compile("b1|[iu][1248]|f[48]")


class Foreign(Exception):
    """A pickle that asks for something else than arrays; the message says what."""


def unpickled(data: bytes) -> Any:
    """The array, the SciPy ``csr_array`` or the dictionary of whole numbers in a pickle; anything else is :class:`Foreign`.

    Example:
        >>> unpickled(pickle.dumps({0: [1, 2]}, protocol=2))
        {0: [1, 2]}
        >>> unpickled(pickle.dumps(print, protocol=2))
        Traceback (most recent call last):
            ...
        unspool.datasets.readers.pickled.Foreign: it asks for __builtin__.print
    """

    # Trap: made anew for every file, since a pickle may set attributes of whatever it is handed.
    class Kind:
        code, order = "", "="

        def __init__(self, code: str, *_: Any) -> None:
            self.code = code

        def __setstate__(self, state: tuple[Any, ...]) -> None:
            self.order = state[1]

    class Block:
        def __setstate__(self, state: tuple[Any, ...]) -> None:
            _, self.shape, self.kind, self.by_columns, self.raw = state

    class Rows:
        pass

    def listed(*_: Any) -> Mapping[Any, Any]:
        return {}

    stand_ins: dict[str, Callable[..., Any]] = {
        "_reconstruct": lambda *_: Block(), "ndarray": Block, "dtype": Kind, "csr_matrix": Rows, "defaultdict": listed,
        "list": list, "encode": lambda text, how: text.encode("latin1"),
    }  # fmt: skip

    class Restricted(pickle.Unpickler):
        def find_class(self, module: str, name: str) -> Any:
            if (module, name) not in _ALLOWED:
                raise Foreign(f"it asks for {module}.{name}")
            return stand_ins[name]

    held = Restricted(io.BytesIO(data), encoding="latin1").load()
    if isinstance(held, Block):
        return _array(vars(held), Kind)
    if isinstance(held, Rows):
        parts = vars(held)
        arrays = [_array(vars(parts[name]), Kind) for name in ("data", "indices", "indptr")]
        return compressed_rows(*arrays, shape=parts["_shape"])
    if isinstance(held, dict):
        return _lists(held)
    raise Foreign(f"it holds a {type(held).__name__}")


_ALLOWED = {
    ("numpy.core.multiarray", "_reconstruct"), ("numpy._core.multiarray", "_reconstruct"), ("numpy", "ndarray"),
    ("numpy", "dtype"), ("scipy.sparse.csr", "csr_matrix"), ("scipy.sparse._csr", "csr_matrix"),
    ("collections", "defaultdict"), ("__builtin__", "list"), ("builtins", "list"), ("_codecs", "encode"),
}  # fmt: skip


def _array(told: Mapping[str, Any], kind: type) -> Array:
    """An array of the bytes that a stand-in was given."""
    form, raw, shape = told["kind"], told["raw"], tuple(told["shape"])
    if not isinstance(form, kind):
        raise Foreign("it holds an array of no type")
    code, order = str(vars(form)["code"]), str(vars(form).get("order", "="))
    if not _NUMBERS.fullmatch(code) or order not in ("<", ">", "=", "|"):
        raise Foreign(f"it holds an array of {order}{code}, not of numbers")
    dtype = np.dtype(order + code)
    data = raw.encode("latin1") if isinstance(raw, str) else bytes(raw)
    if any(not isinstance(n, int) or n < 0 for n in shape) or math.prod(shape) * dtype.itemsize != len(data):
        raise Foreign(f"it holds {len(data)} bytes for an array of shape {shape}")
    native = np.frombuffer(data, dtype).astype(dtype.newbyteorder("="))  # a copy, which may be written to
    return native.reshape(shape, order="F" if told["by_columns"] else "C")


def _lists(held: Mapping[Any, Any]) -> dict[int, list[int]]:
    for key, values in held.items():
        if type(key) is not int or not isinstance(values, list) or any(type(value) is not int for value in values):
            raise Foreign("it holds a dictionary of something else than lists of node numbers")
    return dict(held)
