"""How many: visits, calls, accidents; whole numbers of at least 0."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from unspool.errors import DataError
from unspool.train.loss import Loss


@dataclass(frozen=True)
class Counts(Loss):
    r"""Counts per node, by a Poisson model with a logarithmic link: the expected count is :math:`e^o`, never negative.

    .. math:: \frac{1}{n} \sum_i 2 \bigl[t_i \log(t_i / \mu_i) - t_i + \mu_i\bigr], \qquad \mu_i = e^{o_i}

    is the mean Poisson deviance. The score is D², the share of the deviance that is explained: 1 − deviance / deviance of the
    mean count, as R² is for squares.

    Example:
        >>> import torch
        >>> target = torch.tensor([[1.0], [2.0], [4.0]])
        >>> round(float(Counts().loss(target.log(), target)), 6), float(Counts().score(target.log(), target))
        (0.0, 1.0)
    """

    score_name = "D²"

    def check(self, target: Tensor, ids: Tensor, part: str) -> None:
        """Every node of the part has a count, none is negative, and those that are learnt from or scored are not all 0."""
        if not ids.numel():
            return
        found = target[ids].reshape(ids.numel(), -1)
        bad = torch.nonzero(~(torch.isfinite(found) & (found >= 0)).all(-1)).flatten()
        if bad.numel():
            worst = found[bad[0]]
            told = "has no count" if bool(torch.isnan(worst).any()) else f"has the count {float(worst.min()):g}"
            raise DataError(
                f"node {int(ids[bad[0]])}",
                f"it is in the {part} set but {told}, and counts are 0, 1, 2, ...",
                "correct it, or take it out of the split",
            )
        if part == "train" and bool((found.sum(0) == 0).any()):
            raise DataError("the train set", "all counts are 0, so there is nothing to learn", "choose another split")
        if part == "test" and bool((found == found[:1]).all()):
            raise DataError(
                "the test set",
                "all counts are equal, and D² compares with the deviance of their mean, which is 0",
                "choose another split",
            )

    def loss(self, output: Tensor, target: Tensor) -> Tensor:
        """The mean Poisson deviance."""
        return self.each(output, target).mean()

    def each(self, output: Tensor, target: Tensor) -> Tensor:
        """The deviance of every node, the mean over its counts."""
        target = target.view(output.shape).to(output.dtype)
        return 2 * (torch.xlogy(target, target) - target * (output + 1) + output.exp()).mean(-1)

    def score(self, output: Tensor, target: Tensor) -> Tensor:
        """D²; NaN where all counts are equal."""
        target = target.view(output.shape).to(output.dtype)
        mean = target.mean(0, keepdim=True).expand_as(target)
        plain = 2 * (torch.xlogy(target, target) - torch.xlogy(target, mean) - target + mean).sum()
        alike = (target == target[:1]).all()  # Trap: the mean of equal numbers may differ from them by a rounding error
        return torch.where(alike, torch.nan, 1 - self.each(output, target).sum() * target.shape[-1] / plain)


def check_counts(targets: Tensor, name: str) -> None:
    """Raise one sentence where known numbers are not counts; NaN is not known.

    Args:
        targets: shape (nodes, counts).
        name: of the data.

    Example:
        >>> import torch
        >>> check_counts(torch.tensor([[1.0], [2.5]]), "visits")
        Traceback (most recent call last):
            ...
        unspool.errors.DataError: visits: the count of node 1 is 2.5, and counts are 0, 1, 2, ...; ...
    """
    bad = torch.nonzero((targets < 0) | (targets != targets.floor()) & ~torch.isnan(targets))
    if bad.numel():
        row, column = (int(v) for v in bad[0])
        raise DataError(
            name,
            f"the count of node {row} is {float(targets[row, column]):g}, and counts are 0, 1, 2, ...",
            "for other numbers use the loss numbers",
        )
