"""A short name for content: the same arrays give the same fingerprint, on every machine."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any

import numpy as np


def fingerprint(*parts: Any) -> str:
    """32 hexadecimal digits that name ``parts``: arrays, text, whole numbers, ``None``, or lists of these.

    Whole numbers are widened to 64 bits first, so the width an array happens to be stored in does not matter.

    Example:
        >>> import numpy as np
        >>> fingerprint("ab", np.array([1, 2])) == fingerprint("ab", np.array([1, 2], dtype=np.int8))
        True
        >>> fingerprint("ab", "c") == fingerprint("a", "bc")
        False
    """
    state = hashlib.blake2b(digest_size=16)
    for part in parts:
        _feed(state, part)
    return state.hexdigest()


def _feed(state: Any, part: Any) -> None:
    if isinstance(part, np.ndarray):
        wide = part.astype(np.int64, copy=False) if part.dtype.kind in "iub" else part
        wide = np.ascontiguousarray(wide.astype(wide.dtype.newbyteorder("<"), copy=False))
        state.update(f"array {wide.dtype.str} {wide.shape};".encode())
        state.update(wide.data.cast("B") if wide.size else b"")
    elif isinstance(part, str):
        text = part.encode()
        state.update(f"text {len(text)};".encode() + text)
    elif part is None or isinstance(part, int):
        state.update(f"{part};".encode())
    elif isinstance(part, Iterable):
        members = list(part)
        state.update(f"list {len(members)};".encode())
        for member in members:
            _feed(state, member)
    else:
        raise TypeError(f"a {type(part).__name__} has no fingerprint: expected arrays, text, whole numbers or lists")
