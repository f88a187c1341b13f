"""Several labels per node: a table of 1 for yes, 0 for no, and NaN where it is not known."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from unspool.errors import UNSHOWN, DataError, InputError, mention

#: How a table may say yes and no.
YES, NO = frozenset({"1", "1.0", "yes", "true"}), frozenset({"0", "0.0", "no", "false"})


def is_indicator(labels: Any) -> bool:
    """Whether labels have several columns.

    Example:
        >>> is_indicator([[1, 0], [0, 1]]), is_indicator([[1], [0]]), is_indicator(["a", "b"])
        (True, False, False)
    """
    if labels is None:
        return False
    table = labels if isinstance(labels, Tensor) or hasattr(labels, "toarray") else np.asarray(labels)
    return len(table.shape) == 2 and table.shape[1] > 1


def read_indicator(
    labels: Any, nodes: int, said: bool = True, alone: bool = True, name: str = "labels"
) -> tuple[Tensor, tuple[str, ...]]:
    """Labels as float32 of shape (nodes, labels), and their numbers as names.

    Args:
        labels: 1, 0 or NaN, shape (nodes, labels); also sparse.
        nodes: how many nodes there are.
        said: whether somebody said that there are several labels, so that rows with one yes each are no one-hot code.
        alone: whether there are no numbers to predict beside them.
        name: of the argument.

    Example:
        >>> read_indicator([[1, 0], [0, float("nan")], [1, 1]], 3)
        (tensor([[1., 0.],
                [0., nan],
                [1., 1.]]), ('0', '1'))
    """
    if not alone:
        raise InputError(
            "labels", UNSHOWN, f"one answer to learn, and there is {mention('targets')} too", "name one of them"
        )
    raw: Any = labels.detach().cpu().to_dense().numpy() if isinstance(labels, Tensor) else labels
    raw = raw.toarray() if hasattr(raw, "toarray") else raw
    try:
        table = np.asarray(raw, dtype=np.float32)
    except (TypeError, ValueError):
        raise DataError(name, "several columns of labels hold something that is not 1, 0 or NaN") from None
    if table.shape[0] != nodes:
        raise DataError(name, f"there are {table.shape[0]} rows for {nodes} nodes", "give one per node")
    bad = np.argwhere(~np.isnan(table) & (table != 0) & (table != 1))
    if bad.size:
        row, column = bad[0]
        raise DataError(
            f"{name}, row {row}",
            f"label {column} is {table[row, column]:g}, and several labels per node are 1 (yes) or 0 (no)",
            "write NaN where it is not known",
        )
    if not said and not np.isnan(table).any() and bool((table.sum(1) == 1).all()):
        way = "names as classes=..." if name == "labels" else "loss='multilabel'"
        raise ValueError(
            f"{name} have shape {table.shape} and one yes in every row: for one-hot rows pass {name}.argmax(1); for several labels per node add {way}"
        )
    return torch.tensor(table), tuple(str(column) for column in range(table.shape[1]))
