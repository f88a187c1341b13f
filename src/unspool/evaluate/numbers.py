"""How near predicted numbers come."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from unspool.errors import InputError


@dataclass(frozen=True)
class NumberScores:
    """Scores of one column of predicted numbers, in the units of the column.

    Attributes:
        nodes: how many there were.
        rmse: the root of the mean squared error.
        mae: the mean absolute error.
        r2: 1 − squared error / variance; None where all true numbers are equal.
        mean_rmse: the RMSE of always predicting the mean of the training nodes.
        bias: the mean of predicted − true.
    """

    nodes: int
    rmse: float
    mae: float
    r2: float | None
    mean_rmse: float
    bias: float


def score_numbers(predicted: Any, target: Any, train_mean: float) -> NumberScores:
    """Compare predicted with true numbers.

    Args:
        predicted, target: one number for each node.
        train_mean: the mean over the training nodes, for whoever knows nothing else.

    Example:
        >>> found = score_numbers([1.0, 2.0, 4.0], [1.0, 2.0, 3.0], train_mean=2.0)
        >>> round(found.rmse, 4), round(found.mae, 4), found.r2
        (0.5774, 0.3333, 0.5)
    """
    said, truth = np.asarray(predicted, dtype=np.float64), np.asarray(target, dtype=np.float64)
    if said.ndim != 1 or said.shape != truth.shape or not truth.size:
        raise InputError(
            "predicted", said.shape, f"one number for each of the {truth.size} nodes, and at least one node"
        )
    if not (np.isfinite(said).all() and np.isfinite(truth).all()):
        raise InputError("predicted", float("nan"), "finite numbers")
    apart = said - truth
    alike = bool((truth == truth[0]).all())  # Trap: the mean of equal numbers may differ from them by a rounding error
    spread = np.square(truth - truth.mean()).sum()
    return NumberScores(
        nodes=int(truth.size),
        rmse=float(np.sqrt(np.square(apart).mean())),
        mae=float(np.abs(apart).mean()),
        r2=None if alike else float(1 - np.square(apart).sum() / spread),
        mean_rmse=float(np.sqrt(np.square(truth - train_mean).mean())),
        bias=float(apart.mean()),
    )
