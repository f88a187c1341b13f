"""Probabilities that mean what they say: one temperature, fitted where nothing was learnt."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np

from unspool.evaluate.classes import checked

Array = np.ndarray[Any, Any]

#: A temperature from fewer nodes says more about the nodes than about the network.
FEWEST = 10
#: Temperatures outside are signs of nodes that do not decide one.
COLDEST, HOTTEST = 0.01, 100.0


class Uncalibrated(Enum):
    """Why there is no temperature.

    ``FEW_NODES``: fewer than :data:`FEWEST` validation nodes. ``ALL_RIGHT``: every one is classified rightly with room to spare, so that the
    most certain answer fits best. ``NO_BETTER_THAN_CHANCE``: equal probabilities fit best. ``NOT_FINITE``: the network says nothing finite.
    ``OTHER_KIND``: several labels and ordered classes have none.
    """

    FEW_NODES = "too few validation nodes"
    ALL_RIGHT = "validation nodes that are all classified rightly, which ask for endless certainty"
    NO_BETTER_THAN_CHANCE = "validation nodes that are classified no better than by chance"
    NOT_FINITE = "outputs that are not finite"
    OTHER_KIND = "several labels or ordered classes, which have no temperature"


@dataclass(frozen=True)
class Calibration:
    """A temperature, or why there is none; and what it changed.

    Attributes:
        temperature: outputs are divided by it before the softmax; above 1 the network was too sure of itself. None where it is not fitted.
        nodes: how many validation nodes it was fitted on.
        reason: why there is none.
        valid_before, valid_after: the expected calibration error on validation nodes, without and with it.
        test_before, test_after: the same on test nodes.
    """

    temperature: float | None
    nodes: int
    reason: Uncalibrated | None = None
    valid_before: float | None = None
    valid_after: float | None = None
    test_before: float | None = None
    test_after: float | None = None


def fit_temperature(logits: Any, target: Any) -> float | Uncalibrated:
    r"""The temperature T that makes the log-loss of :math:`\mathrm{softmax}(z / T)` smallest on some nodes.

    In β = 1/T the log-loss is convex, and its derivative :math:`\frac1n \sum_i (\mathbb{E}_{p_i}[z_i] - z_{i, y_i})` rises: one root, found by
    bisection. Dividing by T never changes which class is the most probable (Guo et al., On Calibration of Modern Neural Networks, 2017).

    Args:
        logits: the outputs of a network, shape (nodes, classes), for nodes that it was not trained on.
        target: the true class of each node.

    Example:
        >>> import numpy as np
        >>> logits = np.array([[3.0, 0.0]] * 20)
        >>> round(fit_temperature(logits, np.array([0] * 15 + [1] * 5)), 4)  # log 3 / 3 makes 75 %
        2.7307
        >>> fit_temperature(logits[:3], np.zeros(3, dtype=int)).name
        'FEW_NODES'
    """
    if not np.isfinite(np.asarray(logits, dtype=np.float64)).all():
        return Uncalibrated.NOT_FINITE
    from scipy.optimize import brentq  # a second in all, which whoever does not train need not wait for
    from scipy.special import softmax

    if len(np.asarray(target)) < FEWEST:
        return Uncalibrated.FEW_NODES
    values, truth = checked(logits, target)
    values = values - values.max(1, keepdims=True)
    chosen = values[np.arange(truth.size), truth]

    def slope(beta: float) -> float:
        return float(((softmax(beta * values, 1) * values).sum(1) - chosen).mean())

    if slope(1 / HOTTEST) >= 0:
        return Uncalibrated.NO_BETTER_THAN_CHANCE
    if slope(1 / COLDEST) <= 0:
        return Uncalibrated.ALL_RIGHT
    beta: Any = brentq(slope, 1 / HOTTEST, 1 / COLDEST, xtol=1e-12)
    return float(1 / beta)


def calibrated(logits: Any, temperature: float | None) -> Array:
    """Probabilities from the outputs of a network, with its temperature where it has one.

    Args:
        logits: shape (nodes, classes); one channel stands for two classes, of which it is the second one's lead.
        temperature: from :func:`fit_temperature`; None for 1.

    Example:
        >>> calibrated([[2.0, 0.0]], 2.0).round(3), calibrated([[2.0]], None).round(3)
        (array([[0.731, 0.269]]), array([[0.119, 0.881]]))
    """
    from scipy.special import log_softmax

    return np.exp(log_softmax(as_classes(logits) / (1.0 if temperature is None else temperature), 1))


def as_classes(logits: Any) -> Array:
    """Outputs with a column for each class: a single channel is the lead of the second of two.

    Example:
        >>> as_classes([[2.0]])
        array([[0., 2.]])
    """
    values = np.asarray(logits, dtype=np.float64)
    return np.hstack([np.zeros_like(values), values]) if values.shape[1] == 1 else values
