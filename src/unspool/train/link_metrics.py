"""How well links are found: AUC, average precision, and the rank of every link among pairs that are not links."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from unspool.train.loss import area_under_curve

Array = np.ndarray[Any, Any]

#: The places that count as a hit.
HITS = (1, 10, 50)


@dataclass(frozen=True)
class LinkMetrics:
    """What is said about scores of pairs; all lie between 0 and 1, and larger is better.

    Attributes:
        auc: the chance that a random link scores above a random other pair; ties count half.
        average_precision: the area under precision by recall, one step for each distinct score (scikit-learn's definition).
        mrr: the mean of 1/rank, where a link is ranked among its own rivals (see :func:`mean_ranks`).
        hits: the share of links of rank k or better, by k.
    """

    auc: float
    average_precision: float
    mrr: float
    hits: Mapping[int, float]

    @staticmethod
    def of(score: Array, yes: Array, ranks: Array) -> LinkMetrics:
        """Count.

        Args:
            score, yes: of pairs: what each scored, and whether it is a link.
            ranks: of links among their rivals.

        Example:
            >>> found = LinkMetrics.of(np.array([0.9, 0.2, 0.4]), np.array([1, 0, 1]), np.array([1.0, 4.0]))
            >>> found.auc, found.mrr, found.hits[1]
            (1.0, 0.625, 0.5)
        """
        area = area_under_curve(torch.as_tensor(score, dtype=torch.float64), torch.as_tensor(yes))
        many = ranks.size if ranks.size else np.nan  # nothing could be ranked: nothing is said
        hits = {k: float((ranks <= k).sum() / many) for k in HITS}
        return LinkMetrics(float(area), average_precision(score, yes), float((1 / ranks).sum() / many), hits)

    def to_plain(self) -> dict[str, float | None]:
        """The same for a card; None for what could not be counted.

        Example:
            >>> LinkMetrics(0.9, 0.8, 0.5, {1: 0.25}).to_plain()
            {'auc': 0.9, 'average_precision': 0.8, 'mrr': 0.5, 'hits@1': 0.25}
        """
        hits = {f"hits@{k}": share for k, share in self.hits.items()}
        held = {"auc": self.auc, "average_precision": self.average_precision, "mrr": self.mrr, **hits}
        return {name: None if np.isnan(value) else value for name, value in held.items()}


def average_precision(score: Array, yes: Array) -> float:
    r"""The area under precision by recall, :math:`\sum_n (R_n - R_{n-1}) P_n` over the distinct scores from above.

    Example:
        >>> average_precision(np.array([0.1, 0.4, 0.35, 0.8]), np.array([0, 0, 1, 1]))
        0.8333333333333333
    """
    order = np.argsort(-score, kind="stable")
    wide, answer = score[order], np.asarray(yes)[order] > 0.5
    last = np.append(np.flatnonzero(np.diff(wide) != 0), wide.size - 1)  # equal scores are taken together
    right = np.cumsum(answer)[last]
    gained = np.diff(right, prepend=0) / right[-1]
    return float(np.sum(gained * right / (last + 1)))


def mean_ranks(found: Array, rivals: Array) -> Array:
    """The rank of each link among its rivals: 1 + how many score higher + half of those that score the same.

    The half is the mean over all orders of the tie, so a score that is the same for all pairs gains nothing.

    Args:
        found: the score of each link, shape (links,).
        rivals: those of its rivals, shape (links, rivals); NaN where a link has fewer of them.

    Example:
        >>> mean_ranks(np.array([2.0, 1.0]), np.array([[1.0, 3.0, 2.0], [1.0, 1.0, np.nan]]))
        array([2.5, 2. ])
    """
    mine = found[:, None]
    return 1 + (rivals > mine).sum(1) + 0.5 * (rivals == mine).sum(1)
