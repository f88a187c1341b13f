"""Upper-level losses U(Y, p_pos(X̄)) of the bilevel problem (3), each with the score people read."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional


class Loss(ABC):
    """What training makes small, and the number that is reported beside it (larger is better)."""

    #: The name of the score.
    score_name: str = "score"

    @abstractmethod
    def loss(self, output: Tensor, target: Tensor) -> Tensor:
        """The loss over some nodes, a scalar."""

    @abstractmethod
    def score(self, output: Tensor, target: Tensor) -> Tensor:
        """The score over the same nodes, a scalar."""


@dataclass(frozen=True)
class CrossEntropy(Loss):
    """One of several classes per node; the score is the accuracy.

    Example:
        >>> import torch
        >>> output, target = torch.tensor([[2.0, 0.0], [0.0, 1.0]]), torch.tensor([0, 0])
        >>> round(float(CrossEntropy().loss(output, target)), 4), float(CrossEntropy().score(output, target))
        (0.7201, 0.5)
    """

    score_name = "accuracy"

    def loss(self, output: Tensor, target: Tensor) -> Tensor:
        """The mean negative log likelihood."""
        return functional.cross_entropy(output, target)

    def score(self, output: Tensor, target: Tensor) -> Tensor:
        """The share of nodes whose largest output is the right class."""
        return (output.argmax(-1) == target).to(output.dtype).mean()


@dataclass(frozen=True)
class Binary(Loss):
    """Yes or no per node, from one output channel; the score is the area under the ROC curve.

    Example:
        >>> import torch
        >>> output, target = torch.tensor([[0.1], [0.9], [0.4]]), torch.tensor([0, 1, 1])
        >>> float(Binary().score(output, target))
        1.0
    """

    score_name = "AUC"

    def loss(self, output: Tensor, target: Tensor) -> Tensor:
        """The mean binary cross-entropy of the logits."""
        return functional.binary_cross_entropy_with_logits(output[..., 0], target.to(output.dtype))

    def score(self, output: Tensor, target: Tensor) -> Tensor:
        """The chance that a random yes lies above a random no (ties count half)."""
        value, yes = output[..., 0], target.bool()
        above = value[yes][:, None] - value[~yes]
        return ((above > 0).to(value.dtype) + 0.5 * (above == 0).to(value.dtype)).mean()


@dataclass(frozen=True)
class Regression(Loss):
    """Numbers per node; the score is R².

    Example:
        >>> import torch
        >>> target = torch.tensor([[1.0], [2.0], [3.0]])
        >>> float(Regression().loss(target, target)), float(Regression().score(target, target))
        (0.0, 1.0)
    """

    score_name = "R²"

    def loss(self, output: Tensor, target: Tensor) -> Tensor:
        """The mean squared error."""
        return functional.mse_loss(output, target.view(output.shape).to(output.dtype))

    def score(self, output: Tensor, target: Tensor) -> Tensor:
        """1 − squared error / variance."""
        target = target.view(output.shape).to(output.dtype)
        spread = (target - target.mean(0)).square().sum()
        return 1 - (output - target).square().sum() / spread.clamp_min(torch.finfo(output.dtype).tiny)
