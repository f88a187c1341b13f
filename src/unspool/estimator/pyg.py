"""``fit(data)``: a Data object of PyTorch Geometric taken apart, without importing it."""

from __future__ import annotations

from typing import Any

import numpy as np
from torch import Tensor

from unspool.errors import InputError

Array = np.ndarray[Any, Any]


def is_pyg(given: Any) -> bool:
    """Whether something has features and edges as PyG's ``Data`` has.

    Example:
        >>> import torch
        >>> from types import SimpleNamespace
        >>> is_pyg(SimpleNamespace(x=torch.ones(2, 1), edge_index=torch.zeros(2, 0).long())), is_pyg(torch.ones(2, 1))
        (True, False)
    """
    return getattr(given, "x", None) is not None and getattr(given, "edge_index", None) is not None


def parts_of(data: Any, y: Any, graph: Any, valid: Any) -> tuple[Any, Array, Any, Array | None]:
    """Features, labels (of nodes to learn from and to choose by; others are unlabelled), the graph, and who chooses the epoch.

    Args:
        data: with ``x``, ``edge_index``, ``y`` and perhaps ``train_mask`` and ``val_mask``.
        y, graph, valid: what was given beside it; none of them may be.
    """
    given = {"y": y, "graph": graph, "valid": valid}
    for name, value in given.items():
        if value is not None:
            raise InputError(
                name, value, "nothing beside a Data object, which holds it", "or give x, y and graph apart"
            )
    labels = _labels(data)
    train, chooses = _mask(data, "train_mask", labels), _mask(data, "val_mask", labels)
    if train is None:
        return data.x, labels, data, None
    learnt = train if chooses is None else train | chooses
    kept = _without(labels, ~learnt)
    return data.x, kept, data, None if chooses is None or not chooses.any() else np.flatnonzero(chooses & ~train)


def test_part(data: Any) -> Array:
    """The labels of the nodes in ``test_mask``, and of no others; all labels where there is no mask."""
    labels = _labels(data)
    test = _mask(data, "test_mask", labels)
    return labels if test is None else _without(labels, ~test)


def _labels(data: Any) -> Array:
    labels = getattr(data, "y", None)
    if labels is None:
        raise InputError("y", None, "labels in the Data object, data.y", "or give x, y and graph apart")
    return np.asarray(labels.detach().cpu() if isinstance(labels, Tensor) else labels)


def _mask(data: Any, name: str, labels: Array) -> Array | None:
    found = getattr(data, name, None)
    if found is None:
        return None
    mask = np.asarray(found.detach().cpu() if isinstance(found, Tensor) else found)
    if mask.dtype != bool or mask.shape != labels.shape[:1]:
        hint = "choose one of its splits, data.train_mask = data.train_mask[:, 0]" if mask.ndim == 2 else None
        raise InputError(name, f"{mask.dtype} of shape {mask.shape}", "one True or False for each node", hint)
    return mask


def _without(labels: Array, where: Array) -> Array:
    """Labels with some taken away: -1 for classes, NaN for numbers."""
    numbers = labels.dtype.kind == "f"
    bare = labels.astype(float if numbers else labels.dtype if labels.dtype.kind == "i" else np.int64)
    bare[where] = np.nan if numbers else -1
    return bare
