"""Classes that have an order: small, medium, large."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from unspool.train.loss import CrossEntropy, Loss


@dataclass(frozen=True)
class Ordinal(Loss):
    r"""One of K ordered classes per node, by a cumulative-link model with a logistic link and K − 1 output channels.

    The first output :math:`z_1` is the log-odds of lying above the lowest class; every further one lowers it by a step that is
    never negative, so the thresholds stay in order:

    .. math::
        P(y \ge k) = \sigma(c_k), \qquad c_1 = z_1, \qquad c_{k+1} = c_k - \log(1 + e^{z_{k+1}}), \qquad
        P(y = k) = P(y \ge k) - P(y \ge k + 1)

    Where the steps are the same at all nodes, this is the proportional-odds model of McCullagh (1980); here a network may
    let them differ. The loss is the mean of :math:`-\log P(y)`. The score is the quadratic weighted kappa of the most
    probable classes, 1 where all are right and 0 for guesses without a link to the truth; to miss by two classes counts four
    times as much as to miss by one.

    Example:
        >>> import torch
        >>> output, target = torch.tensor([[2.0, 4.0], [-3.0, 0.0], [4.0, -2.0]]), torch.tensor([1, 0, 2])
        >>> class_probabilities(output).argmax(-1)
        tensor([1, 0, 2])
        >>> round(float(Ordinal().loss(output, target)), 4), float(Ordinal().score(output, target))
        (0.113, 1.0)
    """

    score_name = "quadratic weighted kappa"

    def check(self, target: Tensor, ids: Tensor, part: str) -> None:
        """Every node of the part has a class, and there is more than one to learn."""
        CrossEntropy().check(target, ids, part)

    def loss(self, output: Tensor, target: Tensor) -> Tensor:
        """The mean negative log likelihood."""
        return self.each(output, target).mean()

    def each(self, output: Tensor, target: Tensor) -> Tensor:
        """The negative log likelihood of every node."""
        return -log_probabilities(output).gather(-1, target[..., None])[..., 0]

    def score(self, output: Tensor, target: Tensor) -> Tensor:
        """1 − squared error / the squared error of independent draws with the same shares; NaN where all are of one class."""
        # Differences of ranks need no confusion matrix: E(t − p)² of independent t and p is var t + var p + (mean t − mean p)².
        said, true = log_probabilities(output).argmax(-1).to(output.dtype), target.to(output.dtype)
        apart = (said - true).square().mean()
        spread = (said - said.mean()).square().mean() + (true - true.mean()).square().mean()
        chance = spread + (said.mean() - true.mean()).square()
        alike = (said == said[:1]).all() & (true == said[:1]).all()
        return torch.where(alike, torch.nan, 1 - apart / chance)


def log_probabilities(output: Tensor) -> Tensor:
    r"""The logarithm of the probability of each of K classes, from K − 1 outputs (see :class:`Ordinal`).

    Uses :math:`\sigma(a) - \sigma(b) = \sigma(a)\,\sigma(-b)\,(1 - e^{b - a})`, and :math:`1 - e^{-\log(1 + e^z)} = \sigma(z)`: no
    difference of nearly equal numbers is formed.

    Example:
        >>> import torch
        >>> log_probabilities(torch.tensor([[0.0, 50.0]]))
        tensor([[ -0.6931,  -0.6931, -50.0000]])
    """
    first, steps = output[..., :1], output[..., 1:]
    above = torch.cat([first, first - functional.softplus(steps).cumsum(-1)], -1)
    certain = torch.zeros_like(first)
    reached = torch.cat([certain, functional.logsigmoid(above)], -1)
    ended = torch.cat([functional.logsigmoid(-above), certain], -1)
    between = torch.cat([certain, functional.logsigmoid(steps), certain], -1)
    return reached + ended + between


def class_probabilities(output: Tensor) -> Tensor:
    """The probability of each class, from the lowest to the highest.

    Example:
        >>> import torch
        >>> class_probabilities(torch.zeros(1, 2))
        tensor([[0.5000, 0.1667, 0.3333]])
    """
    return log_probabilities(output).exp()
