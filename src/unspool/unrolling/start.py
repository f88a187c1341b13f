"""Where the first iterate comes from."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Input:
    """Start at the input: H⁽⁰⁾ = X, the paper's choice.

    Example:
        >>> import torch
        >>> Input().tensor(torch.ones(2, 1)).flatten()
        tensor([1., 1.])
    """

    def tensor(self, x: Tensor) -> Tensor:
        """X."""
        return x


@dataclass(frozen=True)
class Zero:
    """Start at zero.

    Example:
        >>> import torch
        >>> Zero().tensor(torch.ones(2, 1)).flatten()
        tensor([0., 0.])
    """

    def tensor(self, x: Tensor) -> Tensor:
        """0."""
        return torch.zeros_like(x)


@dataclass(frozen=True, eq=False)
class From:
    """Start at a tensor of one's own, of the shape of X."""

    value: Tensor

    def __post_init__(self) -> None:
        if self.value.requires_grad:
            raise TypeError("the start is a tensor that requires gradients, which the network would not own; detach it")

    def tensor(self, x: Tensor) -> Tensor:
        """The tensor, in the dtype and on the device of X."""
        if self.value.shape[-2:] != x.shape[-2:]:
            raise ValueError(
                f"the start has shape {tuple(self.value.shape)}, but x has {tuple(x.shape)}: they must agree in nodes and features"
            )
        return self.value.to(x).expand(x.shape)


Start = Input | Zero | From
