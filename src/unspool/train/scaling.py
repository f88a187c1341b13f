"""Numbers to predict at mean 0 and size 1, counts at mean 1: measured on the training nodes of one split, and taken back afterwards."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, eq=False)
class Scaling:
    """Mean and spread of each column of targets, over the nodes that are learnt from and no others.

    Attributes:
        centre: the means, float64 on the CPU; 0 for counts.
        scale: the standard deviations, 1 where all targets are equal; for counts the means.

    Example:
        >>> import torch
        >>> prices = torch.tensor([[10.0], [30.0], [70.0]])
        >>> scaling = Scaling.of(prices, torch.tensor([0, 1]))
        >>> scaling.apply(prices).flatten()
        tensor([-1.,  1.,  5.])
        >>> scaling.undo(scaling.apply(prices)).flatten()
        tensor([10., 30., 70.])
    """

    centre: Tensor
    scale: Tensor

    @staticmethod
    def of(target: Tensor, train: Tensor) -> Scaling:
        """Measured on some nodes: targets of shape (nodes,) or (nodes, numbers)."""
        known = target.detach().cpu().double()[train.cpu()]
        spread = known.std(0, correction=0)
        return Scaling(known.mean(0), torch.where(spread > 0, spread, 1.0))

    @staticmethod
    def by_mean(target: Tensor, train: Tensor) -> Scaling:
        """For counts, which stay at least 0: their mean on some nodes becomes 1."""
        known = target.detach().cpu().double()[train.cpu()].mean(0)
        return Scaling(torch.zeros_like(known), torch.where(known > 0, known, 1.0))

    def apply(self, target: Tensor) -> Tensor:
        """Targets as they are learnt, in torch's default dtype; computed in float64, so that it is rounded in one way."""
        wide = (target.detach().cpu().double() - self.centre) / self.scale
        return wide.to(torch.get_default_dtype()).to(target.device)

    def undo(self, output: Tensor) -> Tensor:
        """What a network says, on the scale of the targets."""
        wide = output.detach().cpu().double() * self.scale + self.centre
        return wide.to(output.dtype).to(output.device)
