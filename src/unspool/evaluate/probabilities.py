"""Whether probabilities mean what they say: proper scores, and how often a confidence came true."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from unspool.evaluate.classes import checked

#: Equal parts of [0, 1] into which confidences are sorted.
BINS = 10


@dataclass(frozen=True)
class Bin:
    """The nodes whose largest probability lies in a part of [0, 1].

    Attributes:
        low, high: the part.
        nodes: how many there are.
        confidence: their mean largest probability; None without nodes.
        accuracy: how many of them are right; None without nodes.
    """

    low: float
    high: float
    nodes: int
    confidence: float | None = None
    accuracy: float | None = None


@dataclass(frozen=True)
class ProbabilityScores:
    """How good probabilities are; smaller is better.

    Attributes:
        log_loss: the mean of −log p(true class).
        brier: the mean squared distance from certainty about the true class; for two classes that of one probability, as is usual.
        ece: the expected calibration error, the mean of |confidence − accuracy| over bins, weighted by their nodes.
        bins: what a reliability diagram shows.
    """

    log_loss: float
    brier: float
    ece: float
    bins: tuple[Bin, ...]


def score_probabilities(probabilities: Any, target: Any, bins: int = BINS) -> ProbabilityScores:
    r"""Proper scores, and the reliability of the most probable class.

    .. math:: \text{ECE} = \sum_b \frac{n_b}{n} \lvert \text{confidence}_b - \text{accuracy}_b \rvert

    Args:
        probabilities: shape (nodes, classes), rows that sum to 1.
        target: the true class of each node.
        bins: how many.

    Example:
        >>> import numpy as np
        >>> found = score_probabilities(np.array([[0.9, 0.1], [0.9, 0.1]]), np.array([0, 1]))
        >>> round(found.brier, 2), round(found.ece, 2), found.bins[-2].nodes
        (0.41, 0.4, 2)
    """
    values, truth = checked(probabilities, target)
    rows = np.arange(truth.size)
    chance = np.clip(values[rows, truth], np.finfo(np.float64).eps, 1.0)
    wanted = np.zeros_like(values)
    wanted[rows, truth] = 1.0
    apart = np.square(values - wanted).sum(1).mean()
    found = _bins(values.max(1), values.argmax(1) == truth, bins)
    gap = sum(
        b.nodes * abs(b.confidence - b.accuracy) for b in found if b.confidence is not None and b.accuracy is not None
    )
    return ProbabilityScores(
        log_loss=float(-np.log(chance).mean()),
        brier=float(apart / 2 if values.shape[1] == 2 else apart),
        ece=float(gap / truth.size),
        bins=found,
    )


def _bins(confidence: Any, right: Any, count: int) -> tuple[Bin, ...]:
    edges = np.linspace(0.0, 1.0, count + 1)
    # A confidence on an edge belongs to the part below it, as in scikit-learn.
    place = np.searchsorted(edges[1:-1], confidence)
    made: list[Bin] = []
    for k in range(count):
        inside = place == k
        low, high, nodes = float(edges[k]), float(edges[k + 1]), int(inside.sum())
        means = (float(confidence[inside].mean()), float(right[inside].mean())) if nodes else (None, None)
        made.append(Bin(low, high, nodes, *means))
    return tuple(made)
