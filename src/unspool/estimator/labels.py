"""What nodes are labelled with, and which are not."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import column_or_1d
from torch import Tensor

Array = np.ndarray[Any, Any]


def as_array(y: Any) -> Array:
    """Labels or targets of any kind as an array."""
    return np.asarray(y.detach().cpu() if isinstance(y, Tensor) else y)


def is_labelled(y: Any) -> Array:
    """Which entries carry a label: not -1, NaN, None or the empty string; for rows of numbers, whether none is NaN.

    Example:
        >>> is_labelled([2, -1, 0]), is_labelled(["a", "", None]), is_labelled([[0.5, -1.0], [float("nan")] * 2])
        (array([ True, False,  True]), array([ True, False, False]), array([ True, False]))
    """
    labels = as_array(y)
    if labels.ndim == 2 and labels.shape[1] > 1:
        return ~np.isnan(labels.astype(float)).any(axis=1)
    labels = labels.ravel()
    if labels.dtype.kind == "f":
        return ~np.isnan(labels) & (_no_number(labels) | (labels != -1))
    if labels.dtype.kind in "iu":
        return labels != -1
    if labels.dtype.kind == "U":
        return labels != ""
    if labels.dtype.kind == "O":
        return np.array([_says_something(value) for value in labels], dtype=bool)
    return np.ones(labels.shape, dtype=bool)


def _no_number(labels: Array) -> bool:
    """Whether floats are measurements: among those −1 is a value like any other."""
    return bool((labels[np.isfinite(labels)] % 1 != 0).any())


def _says_something(value: Any) -> bool:
    if value is None or (isinstance(value, str) and value == ""):
        return False
    same: Any = value == value  # noqa: PLR0124  NaN is not equal to itself
    return type(same) is not type(value) and bool(same) and value != -1 if _is_missing(same) else bool(same) and value != -1


def _is_missing(same: Any) -> bool:
    return not isinstance(same, bool | np.bool_)
