"""Certifying activations: the potential's minimiser is the activation."""

from __future__ import annotations

import torch
from torch import Tensor

from unspool.ops.activation import (
    ELU,
    Arctan,
    Hardtanh,
    LeakyReLU,
    Potential,
    ReLU,
    Sigmoid,
    Softshrink,
    Softsign,
    Tanh,
)

#: One of each kind.
POTENTIALS: tuple[Potential, ...] = (
    ReLU(), LeakyReLU(0.1), ELU(1.0), ELU(0.5), Tanh(), Sigmoid(), Softsign(), Arctan(), Softshrink(0.7), Hardtanh(),
)  # fmt: skip


def advantage(potential: Potential, v: Tensor, random: torch.Generator) -> float:
    """By how much σ(v) beats the best of many random competitors on φ(y) + (y − v)²/2; negative if one is better.

    Example:
        >>> import torch
        >>> v = torch.linspace(-3, 3, 50, dtype=torch.float64)
        >>> advantage(Tanh(), v, torch.Generator().manual_seed(0)) > -1e-12
        True
    """

    def cost(y: Tensor) -> Tensor:
        return potential.value(y) + (y - v).square() / 2

    best = potential.activation(v)
    least = float("inf")
    for scale in (1e-4, 1e-2, 0.1, 1.0, 5.0):
        for _ in range(10):
            rival = best + scale * torch.randn(v.shape, generator=random, dtype=v.dtype)
            least = min(least, float((cost(rival) - cost(best)).min()))
    return least
