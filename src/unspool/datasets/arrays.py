"""Opening numpy files that may be damaged, and never unpickling anything in them."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np

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
        data = path.read_bytes()  # Trap: np.load(path) leaves the file open when the archive in it is broken
        held: Any = np.load(io.BytesIO(data), allow_pickle=False)
        return {"": held} if isinstance(held, np.ndarray) else {name: held[name] for name in held.files}
    except Exception as problem:  # a flipped byte can make zipfile, zlib and numpy fail in any way
        raise Damaged(type(problem).__name__) from None
