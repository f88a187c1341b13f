"""How much nodes count in training, one number each."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from unspool.errors import DataError


def read_sample_weight(given: Any, nodes: int, where: str = "sample_weight") -> Tensor:
    """Weights of nodes as float32; NaN is not said, and is refused later if the node is learnt from.

    Args:
        given: one number per node.
        nodes: how many nodes there are.
        where: the words that name it.

    Example:
        >>> read_sample_weight([1, 2.5, 0], 3)
        tensor([1.0000, 2.5000, 0.0000])
        >>> read_sample_weight([1, -2], 2)
        Traceback (most recent call last):
            ...
        unspool.errors.DataError: sample_weight: that of node 1 is -2, and weights are finite numbers of at least 0; ...
    """
    raw = given.detach().cpu().numpy() if isinstance(given, Tensor) else given
    try:
        values = np.asarray(raw, dtype=np.float64)
    except (TypeError, ValueError):
        raise DataError(where, "weights are numbers, and this is something else") from None
    if values.shape != (nodes,):
        raise DataError(where, f"weights of shape {values.shape} for {nodes} nodes", "give one number per node")
    bad = np.flatnonzero((values < 0) | (values > np.finfo(np.float32).max))
    if bad.size:
        raise DataError(
            where,
            f"that of node {bad[0]} is {values[bad[0]]:g}, and weights are finite numbers of at least 0",
            "0 lets a node not count",
        )
    return torch.tensor(values.astype(np.float32))
