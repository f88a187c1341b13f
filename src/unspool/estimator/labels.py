"""What nodes are labelled with, and which are not."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import column_or_1d
from torch import Tensor

Array = np.ndarray[Any, Any]


def as_array(y: Any) -> Array:
    """Labels or targets of any kind as an array."""
    if y is None:
        raise ValueError("learning requires y to be passed, but the target y is None: give one label per node")
    return np.asarray(y.detach().cpu() if isinstance(y, Tensor) else y)


def is_measured(y: Array) -> bool:
    """Whether these are measurements and no classes: several columns, or floats that are not all whole."""
    if y.ndim == 2 and y.shape[1] > 1:
        return True
    return y.dtype.kind == "f" and bool((y[np.isfinite(y)] % 1 != 0).any())


def has_label(y: Array) -> Array:
    """Which nodes have a class: their entry is not -1, NaN, None or the empty string.

    Example:
        >>> has_label(np.array([2, -1, 0])), has_label(np.array(["a", "", None], dtype=object))
        (array([ True, False,  True]), array([ True, False, False]))
    """
    if y.dtype.kind == "f":
        return ~np.isnan(y) & (y != -1)
    if y.dtype.kind == "i":
        return y != -1
    if y.dtype.kind == "U":
        return y != ""
    if y.dtype.kind == "O":
        return np.array([_says_something(value) for value in y], dtype=bool)
    return np.ones(y.shape, dtype=bool)


def has_target(y: Array) -> Array:
    """Which nodes have a target: no entry of theirs is NaN; of several labels, each 1 or 0, one that is known is enough.

    Example:
        >>> nan = float("nan")
        >>> has_target(np.array([[1, nan], [nan, nan], [0, 1]])), has_target(np.array([[2.5, nan], [1.0, 2.0]]))
        (array([ True, False,  True]), array([False,  True]))
    """
    table = y.astype(float).reshape(y.shape[0], -1)
    gap = np.isnan(table)
    several = table.shape[1] > 1 and bool(np.isin(table[~gap], (0, 1)).all())
    return np.asarray(~(gap.all(axis=1) if several else gap.any(axis=1)))


def read_labels(y: Any, nodes: int) -> tuple[Array, Array]:
    """Class numbers (-1 for none) and the sorted classes, which keep the type they came in.

    Example:
        >>> read_labels(["dog", "", "cat", "dog"], 4)
        (array([ 1, -1,  0,  1]), array(['cat', 'dog'], dtype='<U3'))
    """
    labels = _column(y, nodes)
    known = has_label(labels)
    named = labels[known]
    if named.dtype.kind in "cmMV":
        raise ValueError(f"Unknown label type: labels hold {named.dtype}, but classes are whole numbers or names")
    if is_measured(named):
        place = np.flatnonzero(known)[np.flatnonzero(~np.isfinite(named) | (named % 1 != 0))[0]]
        raise ValueError(
            f"Unknown label type: entry {place} of y is {labels[place]}, but classes are whole numbers or names; for numbers "
            "use NodeRegressor"
        )
    if named.size == 0:
        raise ValueError("no node has a label, so there is nothing to learn from: give at least two classes")
    try:
        classes, place = np.unique(named, return_inverse=True)
    except TypeError:
        kinds = sorted({type(value).__name__ for value in named})
        raise TypeError(f"y mixes labels of type {' and '.join(kinds)}: use one type for all classes") from None
    if classes.size < 2:
        raise ValueError(
            f"the labelled nodes have only one class, {classes.tolist()[0]!r}: give at least two (-1, NaN, None and '' mark nodes without "
            "a label)"
        )
    codes = np.full(labels.shape, -1, dtype=np.int64)
    codes[known] = place
    return codes, classes


def read_targets(y: Any, nodes: int) -> Array:
    """Targets as float64 of shape (nodes,) or (nodes, targets); rows of NaN belong to nodes without one.

    Example:
        >>> read_targets([[1.0, float("nan")], [2.0, 3.0]], 2)
        Traceback (most recent call last):
            ...
        ValueError: the target of row 0 is NaN in column 1 only: give all columns of a node, or NaN in all of them
    """
    given = as_array(y)
    try:
        target = given.astype(np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"y holds {given.dtype}: targets are numbers; for names use NodeClassifier") from None
    if given.dtype.kind == "c" or target.ndim not in (1, 2):
        raise ValueError(f"y has shape {target.shape} of {given.dtype}: expected real (nodes,) or (nodes, targets)")
    _check_count(target, nodes)
    infinite = np.argwhere(np.isinf(target))
    if infinite.size:
        raise ValueError(
            f"the target of row {infinite[0][0]} is infinity: targets are finite, or NaN where there is none"
        )
    gap = np.isnan(target.reshape(nodes, -1))
    for row in np.flatnonzero(gap.any(axis=1) & ~gap.all(axis=1))[:1]:
        column = int(np.flatnonzero(gap[row])[0])
        raise ValueError(
            f"the target of row {row} is NaN in column {column} only: give all columns of a node, or NaN in all of them"
        )
    if gap.all():
        raise ValueError("no node has a target, so there is nothing to learn from: give at least two that are not NaN")
    return target


def _column(y: Any, nodes: int) -> Array:
    labels = as_array(y)
    if labels.ndim == 2 and labels.shape[1] > 1:
        raise ValueError(
            f"bad input shape {labels.shape}: expected one class per node; for one-hot rows pass y.argmax(1)"
        )
    if labels.ndim == 0:
        raise ValueError(f"y is {labels}: expected one class per node")
    labels = column_or_1d(labels, warn=True)
    _check_count(labels, nodes)
    if labels.dtype.kind == "f" and np.isinf(labels).any():
        raise ValueError(f"the label of row {int(np.flatnonzero(np.isinf(labels))[0])} is infinity: classes are finite")
    return labels


def _check_count(y: Array, nodes: int) -> None:
    if y.shape[0] != nodes:
        raise ValueError(
            f"y has {y.shape[0]} entries for {nodes} rows of x: give one per row, -1 (a class) or NaN (a number) where there is none"
        )


def _says_something(value: Any) -> bool:
    if value is None or (isinstance(value, str) and value == ""):
        return False
    try:
        return bool(value == value) and value != -1  # noqa: PLR0124  NaN is not equal to itself
    except TypeError:  # pandas' NA has no truth value
        return False
