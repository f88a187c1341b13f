"""How well classes are told apart, class by class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from unspool.errors import InputError

Array = np.ndarray[Any, Any]

#: Confusion matrices of more classes than this are not kept: nobody reads ten thousand cells.
MOST_CLASSES = 50


@dataclass(frozen=True)
class ClassScores:
    """Scores of predicted classes against the true ones.

    What cannot be computed is None: the recall of a class that no node has, the precision of one that is never predicted, the area under
    the curve of more than two classes.

    Attributes:
        nodes: how many there were.
        accuracy: the share of nodes whose class is right.
        balanced_accuracy: the mean recall of the classes that occur; 1/C for whoever always answers the same.
        macro_f1: the mean F1 of the classes that occur or are predicted.
        majority: the share of the most common class, which is the accuracy of always answering it.
        precision, recall, f1: class by class.
        support: how many nodes have each class.
        confusion: how often each true class (rows) was predicted as each class (columns); None for more than :data:`MOST_CLASSES`.
        auc: for two classes, the area under the ROC curve of the second one's probability.
        average_precision: for two classes, the area under its precision-recall curve, in steps.
    """

    nodes: int
    accuracy: float
    balanced_accuracy: float
    macro_f1: float
    majority: float
    precision: tuple[float | None, ...]
    recall: tuple[float | None, ...]
    f1: tuple[float | None, ...]
    support: tuple[int, ...]
    confusion: tuple[tuple[int, ...], ...] | None = None
    auc: float | None = None
    average_precision: float | None = None


def score_classes(probabilities: Any, target: Any) -> ClassScores:
    r"""Compare probabilities (or any scores) of classes with the classes themselves.

    .. math:: \text{precision}_c = \frac{M_{cc}}{\sum_t M_{tc}}, \quad \text{recall}_c = \frac{M_{cc}}{\sum_p M_{cp}}, \quad
        F_{1,c} = \frac{2 M_{cc}}{\sum_t M_{tc} + \sum_p M_{cp}}

    Args:
        probabilities: shape (nodes, classes); the largest decides.
        target: the true class of each node.

    Example:
        >>> import numpy as np
        >>> found = score_classes(np.eye(3)[[0, 1, 1, 2]], np.array([0, 1, 2, 2]))
        >>> found.confusion, found.recall, found.accuracy
        (((1, 0, 0), (0, 1, 0), (0, 1, 1)), (1.0, 1.0, 0.5), 0.75)
    """
    values, truth = checked(probabilities, target)
    count = values.shape[1]
    predicted = values.argmax(1)
    matrix = np.bincount(truth * count + predicted, minlength=count * count).reshape(count, count)
    right, support, answers = np.diag(matrix), matrix.sum(1), matrix.sum(0)
    precision, recall = _shares(right, answers), _shares(right, support)
    f1 = _shares(2 * right, support + answers)
    two = count == 2 and support.min() > 0
    return ClassScores(
        nodes=int(truth.size),
        accuracy=float(right.sum() / truth.size),
        balanced_accuracy=float(np.mean([r for r in recall if r is not None])),
        macro_f1=float(np.mean([f for f in f1 if f is not None])),
        majority=float(support.max() / truth.size),
        precision=precision,
        recall=recall,
        f1=f1,
        support=tuple(int(n) for n in support),
        confusion=tuple(tuple(int(n) for n in row) for row in matrix) if count <= MOST_CLASSES else None,
        auc=_area(values[:, 1], truth) if two else None,
        average_precision=_average_precision(values[:, 1], truth) if two else None,
    )


def checked(probabilities: Any, target: Any) -> tuple[Array, Array]:
    """Finite scores of at least one node, and classes that are among them.

    Example:
        >>> checked([[0.5, 0.5]], [1])[1]
        array([1])
    """
    values, truth = np.asarray(probabilities, dtype=np.float64), np.asarray(target)
    if values.ndim != 2 or truth.shape != values.shape[:1] or not truth.size:
        raise InputError(
            "probabilities", values.shape, f"one row for each of the {truth.size} nodes, and at least one node"
        )
    if not np.isfinite(values).all():
        raise InputError("probabilities", float("nan"), "finite numbers")
    truth = truth.astype(np.int64)
    if truth.min() < 0 or truth.max() >= values.shape[1]:
        raise InputError("target", int(truth.max()), f"classes from 0 to {values.shape[1] - 1}")
    return values, truth


def _shares(part: Array, whole: Array) -> tuple[float | None, ...]:
    return tuple(float(a / b) if b else None for a, b in zip(part.tolist(), whole.tolist(), strict=True))


def _area(value: Array, yes: Array) -> float:
    many = int(yes.sum())
    _, place, equal = np.unique(value, return_inverse=True, return_counts=True)
    ranks = np.cumsum(equal) - (equal - 1) / 2  # the mean rank of equal values; scipy.stats takes a second to import
    above = ranks[place][yes == 1].sum() - many * (many + 1) / 2
    return float(above / (many * (yes.size - many)))


def _average_precision(value: Array, yes: Array) -> float:
    """Σ (recall − recall before) · precision over falling thresholds; nodes with the same value come together."""
    order = np.argsort(-value, kind="stable")
    ordered, found = value[order], yes[order].cumsum()
    last = np.append(np.flatnonzero(np.diff(ordered)), ordered.size - 1)
    gained = np.diff(found[last], prepend=0) / found[-1]
    return float((gained * found[last] / (last + 1)).sum())
