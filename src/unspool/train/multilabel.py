"""Several yes-or-no labels per node, some of which may be unknown."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from unspool.errors import DataError
from unspool.train.loss import Loss


@dataclass(frozen=True)
class MultiLabel(Loss):
    r"""Yes or no for each of several labels, one output channel each; NaN marks what is not known, and does not count.

    .. math:: \frac{1}{|K|} \sum_{(i,l) \in K} \bigl[\log(1 + e^{o_{il}}) - t_{il}\, o_{il}\bigr],
        \qquad K = \{(i, l) : t_{il} \text{ is known}\}

    The score is the micro-averaged F1, 2 TP / (2 TP + FP + FN) over all known entries, with yes where the output is above 0
    (a probability above one half).

    Example:
        >>> import torch
        >>> output, target = torch.tensor([[2.0, -1.0], [1.0, 3.0]]), torch.tensor([[1.0, 0.0], [0.0, float("nan")]])
        >>> round(float(MultiLabel().loss(output, target)), 4), round(float(MultiLabel().score(output, target)), 4)
        (0.5845, 0.6667)
    """

    score_name = "micro-F1"

    def check(self, target: Tensor, ids: Tensor, part: str) -> None:
        """Entries are 0, 1 or NaN, every node of the part has one that is known, and there is something to tell apart."""
        found = target[ids]
        known = torch.isfinite(found)
        bad = torch.nonzero(~torch.isnan(found) & (found != 0) & (found != 1))
        if bad.numel():
            row, column = (int(v) for v in bad[0])
            raise DataError(
                f"node {int(ids[row])}",
                f"label number {column} is {float(found[row, column]):g}, and labels are 1 (yes) or 0 (no)",
                "write NaN where it is not known",
            )
        bare = torch.nonzero(~known.any(-1)).flatten()
        if bare.numel():
            raise DataError(
                f"node {int(ids[bare[0]])}",
                f"it is in the {part} set but none of its labels is known",
                "take it out of the split",
            )
        told = found[known]
        if told.numel() and bool((told == told[0]).all()):
            raise DataError(
                f"the {part} set",
                f"all known labels are {'yes' if bool(told[0]) else 'no'}, so there is nothing to tell apart",
                "choose another split",
            )

    def loss(self, output: Tensor, target: Tensor) -> Tensor:
        """The mean binary cross-entropy of the logits over the known entries."""
        known = torch.isfinite(target).to(output.dtype)
        return (self.each(output, target) * known).sum() / known.sum()

    def each(self, output: Tensor, target: Tensor) -> Tensor:
        """The binary cross-entropy of every entry, shape (nodes, labels); 0 where it is not known."""
        known = torch.isfinite(target)
        answer = torch.where(known, target, 0).to(output.dtype)
        return functional.binary_cross_entropy_with_logits(output, answer, reduction="none") * known

    def weighted(self, output: Tensor, target: Tensor, weight: Tensor) -> Tensor:
        """The mean over the known entries, each with its weight, or that of its node."""
        return super().weighted(output, target, _wide(target, weight))

    def sizes(self, target: Tensor, weight: Tensor | None) -> Tensor:
        """How many entries of every node are known, or the sum of their weights."""
        return (torch.isfinite(target) if weight is None else _wide(target, weight)).sum(-1)

    def score(self, output: Tensor, target: Tensor) -> Tensor:
        """F1 of all known entries together; 0 where nothing is yes, neither said nor true."""
        known = torch.isfinite(target)
        said, true = (output > 0) & known, (target > 0.5) & known
        right, every = (said & true).sum(), said.sum() + true.sum()
        return 2 * right.to(output.dtype) / every.clamp(min=1).to(output.dtype)


def _wide(target: Tensor, weight: Tensor) -> Tensor:
    """A weight for every entry, 0 where it is not known."""
    return (weight if weight.ndim == target.ndim else weight[..., None]) * torch.isfinite(target)
