"""Rows that are probabilities: the constraint, and a fidelity in their own geometry."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from unspool.errors import InputError
from unspool.objective.channel import Map, spectral_norm
from unspool.objective.coefficient import Fixed, as_coefficient
from unspool.objective.formula import leading
from unspool.objective.proximable import _indicator, _indicator_times  # pyright: ignore[reportPrivateUsage]
from unspool.objective.term import Given, ProximableTerm, SmoothTerm, Term
from unspool.ops import prox

_ONE = Fixed(1.0)


@dataclass(frozen=True, eq=False)
class Simplex(ProximableTerm):
    r"""Every row is a probability vector: the indicator of :math:`\{H \ge 0,\ H 1 = 1\}`.

    Proximal rules project onto it; :class:`~unspool.algorithm.MirrorDescent` never leaves it.

    Example:
        >>> import torch, unspool as us
        >>> h = torch.tensor([[0.6, 0.6, -1.0]])
        >>> us.Simplex().prox(h, 0.5, us.Given(h, us.graph.path(1)))
        tensor([[0.5000, 0.5000, 0.0000]])
    """

    uses_input = False

    def value(self, h: Tensor, given: Given) -> Tensor:
        """0, or ∞ where an entry is negative or a row does not sum to 1, beyond rounding."""
        blur = 100 * torch.finfo(h.dtype).eps
        fine = (h >= -blur) & ((h.sum(-1, keepdim=True) - 1).abs() <= blur * h.shape[-1])
        return _indicator(fine, h)

    def prox(self, v: Tensor, step: Map, given: Given) -> Tensor:
        """The projection."""
        return prox.simplex(v)

    def scaled(self, factor: Any) -> Term:
        """An indicator stays what it is under a positive factor."""
        return _indicator_times(self, factor)

    def formula(self) -> str:
        """ι[rows of H are probabilities]."""
        return "ι[rows of H are probabilities]"


@dataclass(frozen=True, eq=False)
class KLFidelity(SmoothTerm):
    r"""Probabilities stay close to given ones: :math:`\alpha\,\mathrm{KL}(H\,\Vert\,X) = \alpha\sum_{ij} h_{ij}\log(h_{ij}/x_{ij}) - h_{ij} + x_{ij}`.

    On ‖·‖², distant probabilities of rare classes look alike; here ratios count. The logarithm has no bounded slope at 0, so below
    ``floor`` the function h log h is continued by the parabola that touches it there, and X is raised to the floor. The
    Lipschitz constant α/floor is then finite but large; give :class:`~unspool.algorithm.MirrorDescent` a step of its own, at most 1/α.
    The exact minimiser takes steps as short as that says: tens of thousands of them to ten digits, or a tenth with a floor of 1e-4.

    Args:
        weight: α, a number or coefficient.
        floor: from where on down the logarithm is continued.

    Example:
        >>> import torch, unspool as us
        >>> h, x = torch.tensor([[0.5, 0.5]]), torch.tensor([[0.75, 0.25]])
        >>> round(float(us.KLFidelity().value(h, us.Given(x, us.graph.path(1)))), 4)
        0.1438
    """

    weight: Any = _ONE
    floor: float = 1e-6

    def __post_init__(self) -> None:
        object.__setattr__(self, "weight", as_coefficient(self.weight))
        if not self.weight.number:
            raise TypeError("the weight of KLFidelity is not a single number")
        if not 0 < self.floor < 1:
            raise InputError("floor", self.floor, "a number between 0 and 1")

    def value(self, h: Tensor, given: Given) -> Tensor:
        """α Σ h log(h/x) − h + x."""
        x, inside, below = given.x.clamp_min(self.floor), h.clamp_min(self.floor), (h - self.floor).clamp_max(0)
        # h log h = ε log ε + (1 + log ε) d + d²/2ε with d = h − ε below ε, and itself above.
        entropy = inside * inside.log() + below * (1 + inside.log()) + below.square() / (2 * self.floor)
        return (entropy - h * x.log() - h + x).sum((-2, -1)) * given[self.weight]

    def gradient(self, h: Tensor, given: Given) -> Tensor:
        """α log(h/x)."""
        x, inside, below = given.x.clamp_min(self.floor), h.clamp_min(self.floor), (h - self.floor).clamp_max(0)
        return (inside.log() - x.log() + below / self.floor) * given[self.weight]

    def lipschitz(self, given: Given) -> Map:
        """|α| / floor."""
        return spectral_norm(given[self.weight]) / self.floor

    def formula(self) -> str:
        """α KL(H ‖ X)."""
        return f"{leading(self.weight)}KL(H ‖ X)"


__all__ = ["KLFidelity", "Simplex"]
