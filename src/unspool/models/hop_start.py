"""Where free hop coefficients begin."""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import Enum
from typing import Any

import torch
from torch import Tensor


class HopStart(Enum):
    """Where the hop coefficients γ₀ ... γ_K of GPRGNN and UGDGNN begin, by the names that GPRGNN's authors use.

    ``UNIFORM``: 1/K each, as UGDGNN begins. ``PPR``: γₖ = α(1−α)ᵏ, the last (1−α)ᴷ (APPNP). ``SGC``: one hop only, the last. ``NPPR``: αᵏ, scaled to Σ|γ| = 1.
    ``RANDOM``: drawn, scaled to Σ|γ| = 1. ``WARM``: values of one's own.
    """

    UNIFORM = "uniform"
    PPR = "ppr"
    SGC = "sgc"
    NPPR = "nppr"
    RANDOM = "random"
    WARM = "warm"


def hop_start(start: Any, depth: int, teleport: float, warm: Sequence[float] | None = None) -> Tensor:
    """The coefficients γ₀ ... γ_K before training.

    Example:
        >>> hop_start(HopStart.NPPR, 2, 0.5)
        tensor([0.5714, 0.2857, 0.1429], dtype=torch.float64)
    """
    if not isinstance(start, HopStart):
        raise TypeError(f"start={start!r}: expected one of {', '.join(f'HopStart.{s.name}' for s in HopStart)}")
    if depth < 1:
        raise ValueError(f"depth={depth}: expected a whole number of at least 1")
    if warm is not None and start is not HopStart.WARM:
        raise ValueError(f"warm= is given, but start=HopStart.{start.name} does not take it; take HopStart.WARM")
    if start is HopStart.UNIFORM:
        return torch.full((depth + 1,), 1 / depth, dtype=torch.float64)
    k, teleport = torch.arange(depth + 1, dtype=torch.float64), float(teleport)
    if start is HopStart.PPR:
        gamma = teleport * (1 - teleport) ** k
        gamma[-1] = (1 - teleport) ** depth
        return gamma
    if start is HopStart.SGC:
        return (k == depth).to(torch.float64)
    if start is HopStart.WARM:
        return _warm(warm, depth)
    if start is HopStart.NPPR:
        gamma = torch.as_tensor(teleport, dtype=torch.float64) ** k
    else:
        bound = math.sqrt(3 / (depth + 1))
        gamma = torch.empty(depth + 1, dtype=torch.float64).uniform_(-bound, bound)
    return gamma / gamma.abs().sum()


def _warm(warm: Any, depth: int) -> Tensor:
    try:
        found = torch.as_tensor(warm, dtype=torch.float64)
    except (TypeError, ValueError, RuntimeError):
        found = torch.empty(0)
    if found.shape != (depth + 1,) or not bool(torch.isfinite(found).all()):
        raise ValueError(f"HopStart.WARM needs warm= with {depth + 1} numbers, γ₀ to γ_{depth}")
    return found
