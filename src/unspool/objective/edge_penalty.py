"""Penalties on differences across edges that forgive large ones: robust smoothness, and the attention that comes out of it."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from unspool.errors import IncompatibleError, InputError
from unspool.objective import channel
from unspool.objective.channel import Map
from unspool.objective.coefficient import Coefficient, Fixed, as_coefficient
from unspool.objective.formula import leading
from unspool.objective.quadratic import EdgeSmoothness
from unspool.objective.term import Given, SmoothTerm

_ONE = Fixed(1.0)


class Penalty(ABC):
    """ρ(s), a function of the squared length s of a difference; concave ones count large differences less."""

    @abstractmethod
    def value(self, s: Tensor) -> Tensor:
        """ρ(s), entry by entry."""

    @abstractmethod
    def slope(self, s: Tensor) -> Tensor:
        """ρ′(s): the weight of an edge in the quadratic that touches the penalty at s."""

    @property
    @abstractmethod
    def steepest(self) -> float:
        """The largest slope; infinite where there is none."""

    @property
    def convex(self) -> bool:
        """Whether ρ(‖·‖²) is convex."""
        return False

    @property
    def concave(self) -> bool:
        """Whether ρ itself is concave, so that the quadratic which touches it lies above."""
        return True

    @abstractmethod
    def formula(self, inner: str) -> str:
        """How ρ(‖inner‖²) is printed."""

    def filled(self, given: Given) -> Penalty:
        """The penalty with numbers in the place of coefficients, which a stack of trials puts there."""
        kept = {name: part for name, part in vars(self).items() if isinstance(part, Coefficient)}
        if not kept:
            return self
        made = copy.copy(self)
        for name, coefficient in kept.items():
            object.__setattr__(made, name, given[coefficient])
        return made


@dataclass(frozen=True)
class Power(Penalty):
    """‖·‖ᵖ, smoothed near 0 for p < 2: (s + ε²)^(p/2) − εᵖ.

    For p > 2 the quadratic that touches it lies below it, not above: ``Reweighted`` refuses it, and ``Jacobi()`` overshoots and may swing for ever.
    ``Newton()`` does not, nor do shorter steps, ``Jacobi(step=1 / (p - 1))``.

    Args:
        p: at least 1.
        smoothing: ε, above 0 for p < 2.

    Example:
        >>> import torch, unspool as us
        >>> us.Power(1.0, smoothing=0.1).slope(torch.tensor([0.0, 1.0])).numpy().round(2)
        array([5. , 0.5], dtype=float32)
    """

    p: float = 1.0
    smoothing: float = 1e-2

    def __post_init__(self) -> None:
        p: Any = self.p
        if isinstance(p, bool) or not isinstance(p, int | float) or not 1 <= p < float("inf"):
            raise InputError("p", self.p, "a number of at least 1; Log and Capped forgive more")
        smoothing: Any = self.smoothing
        if (
            not isinstance(smoothing, int | float)
            or not 0 <= smoothing < float("inf")
            or (self.p < 2 and smoothing == 0)
        ):
            raise InputError("smoothing", self.smoothing, "a number above 0 for p < 2, where the gradient has a kink")

    def value(self, s: Tensor) -> Tensor:
        """(s + ε²)^(p/2) − εᵖ."""
        return (s + self.smoothing**2) ** (self.p / 2) - self.smoothing**self.p

    def slope(self, s: Tensor) -> Tensor:
        """(p/2)(s + ε²)^(p/2 − 1)."""
        return (self.p / 2) * (s + self.smoothing**2) ** (self.p / 2 - 1)

    @property
    def steepest(self) -> float:
        """(p/2) ε^(p−2); 1 for p = 2, and infinite beyond."""
        return float("inf") if self.p > 2 else (self.p / 2) * self.smoothing ** (self.p - 2) if self.p < 2 else 1.0

    @property
    def convex(self) -> bool:
        """Norms to a power of at least 1 are."""
        return True

    @property
    def concave(self) -> bool:
        """Up to p = 2."""
        return self.p <= 2

    def formula(self, inner: str) -> str:
        """‖inner‖ᵖ."""
        power = {1.0: "", 2.0: "²", 3.0: "³", 4.0: "⁴"}.get(self.p, f"^{self.p:g}")
        return f"‖{inner}‖{power}"


@dataclass(frozen=True)
class Log(Penalty):
    """τ log(1 + s/τ), the penalty of Cauchy noise: an edge of squared length s weighs 1/(1 + s/τ).

    Example:
        >>> import torch, unspool as us
        >>> us.Log(0.5).slope(torch.tensor([0.0, 0.5, 50.0])).numpy().round(2)
        array([1.  , 0.5 , 0.01], dtype=float32)
    """

    scale: float = 1.0

    def __post_init__(self) -> None:
        _check_scale(self.scale)

    def value(self, s: Tensor) -> Tensor:
        """τ log(1 + s/τ)."""
        return self.scale * torch.log1p(s / self.scale)

    def slope(self, s: Tensor) -> Tensor:
        """1/(1 + s/τ)."""
        return 1 / (1 + s / self.scale)

    @property
    def steepest(self) -> float:
        """1, at 0."""
        return 1.0

    def formula(self, inner: str) -> str:
        """τ log(1 + ‖inner‖²/τ)."""
        return f"{'' if self.scale == 1 else f'{self.scale:g} '}log(1 + ‖{inner}‖²{'' if self.scale == 1 else f'/{self.scale:g}'})"


@dataclass(frozen=True)
class Capped(Penalty):
    """s − s²/(2τ) up to s = τ and constant beyond: an edge of squared length s weighs max(0, 1 − s/τ), and is cut from τ on.

    Example:
        >>> import torch, unspool as us
        >>> us.Capped(2.0).slope(torch.tensor([0.0, 1.0, 5.0]))
        tensor([1.0000, 0.5000, 0.0000])
    """

    scale: float = 1.0

    def __post_init__(self) -> None:
        _check_scale(self.scale)

    def value(self, s: Tensor) -> Tensor:
        """s − s²/(2τ), at most τ/2."""
        inside = s.clamp(max=self.scale)
        return inside - inside.square() / (2 * self.scale)

    def slope(self, s: Tensor) -> Tensor:
        """max(0, 1 − s/τ)."""
        return torch.relu(1 - s / self.scale)

    @property
    def steepest(self) -> float:
        """1, at 0."""
        return 1.0

    def formula(self, inner: str) -> str:
        """cap_τ(‖inner‖²)."""
        return f"cap(‖{inner}‖², {self.scale:g})"


@dataclass(frozen=True, eq=False)
class EdgePenalty(SmoothTerm):
    r"""Neighbours agree, but not at any price: :math:`\beta\sum_e \rho(\lVert (BH)_e\rVert^2)`.

    A concave ρ lies below its tangent, the quadratic :math:`\sum_e \Gamma_e\lVert (BH)_e\rVert^2` with
    :math:`\Gamma_e = \rho'(\lVert (BH)_e\rVert^2)`. A step on it weighs edges by Γ, the less the more their ends differ: attention
    that comes out of an objective. :meth:`edge_weights` gives Γ at any H.

    Args:
        penalty: ρ: :class:`Log`, :class:`Capped`, :class:`Power`, or one's own :class:`Penalty`.
        weight: β, a number or coefficient.

    Example:
        >>> import torch, unspool as us
        >>> term = us.EdgePenalty(us.Log(0.5), 2.0)
        >>> print(us.Fidelity(1.0) + term)
        ‖H − X‖²  +  2 Σₑ 0.5 log(1 + ‖(B H)ₑ‖²/0.5)
        >>> h = torch.tensor([[0.0], [0.0], [9.0]])
        >>> graph = us.graph.path(3, normalise=us.Normalisation.NONE)
        >>> term.edge_weights(h, us.Given(h, graph)).numpy().round(3)
        array([1.   , 0.006], dtype=float32)
    """

    penalty: Any
    weight: Any = _ONE
    uses_input = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "weight", as_coefficient(self.weight))
        if not isinstance(self.penalty, Penalty):
            raise InputError("penalty", self.penalty, "a penalty, such as us.Log(0.5), us.Capped(1.0) or us.Power(1.5)")
        if not self.weight.number:
            raise TypeError("the weight of EdgePenalty is not a single number")

    def edge_weights(self, h: Tensor, given: Given) -> Tensor:
        """Γ at h, one number for every row of B: shape (..., edges)."""
        return self.penalty.filled(given).slope((given.graph.incidence() @ h).square().sum(-1))

    def value(self, h: Tensor, given: Given) -> Tensor:
        """β Σ ρ(‖(BH)ₑ‖²)."""
        return (
            self.penalty.filled(given).value((given.graph.incidence() @ h).square().sum(-1)).sum(-1)
            * given[self.weight]
        )

    def gradient(self, h: Tensor, given: Given) -> Tensor:
        """2β Bᵀ diag(Γ) B H."""
        b = given.graph.incidence()
        difference = b @ h
        weights = self.penalty.filled(given).slope(difference.square().sum(-1))
        return (b.T @ (difference * weights[..., None])) * (2 * given[self.weight])

    def lipschitz(self, given: Given) -> Map:
        """2 |β| max ρ′ · λmax(L); there is none for p > 2."""
        steepest = self.penalty.filled(given).steepest
        if isinstance(steepest, float) and steepest == float("inf"):
            raise IncompatibleError(
                f"{self.penalty.formula('(B H)ₑ')} has no bound on its slope, so there are no steps of 1/L; unroll Newton(), or give "
                "the algorithm a step"
            )
        return 4 * given.graph.scale * steepest * channel.spectral_norm(given[self.weight])

    def diagonal(self, h: Tensor, given: Given) -> Map:
        """That of 2|β| Bᵀ diag(Γ) B: the quadratic that touches the term at h; a negative β counts by its size, as in EdgeSmoothness."""
        squared = given.graph.squared_incidence
        return (squared.T @ self.edge_weights(h, given)[..., None]) * (2 * channel.spectral_norm(given[self.weight]))

    def majoriser(self, h: Tensor, given: Given) -> FrozenEdges:
        """That quadratic as a term."""
        return FrozenEdges(self.edge_weights(h, given), self.weight, steepest=self.penalty.filled(given).steepest)

    def is_convex(self, given: Given) -> bool:
        """Whether ρ(‖·‖²) is convex and β not negative."""
        return self.penalty.convex and super().is_convex(given)

    def formula(self) -> str:
        """β Σₑ ρ(‖(B H)ₑ‖²)."""
        lead = leading(self.weight)
        return f"{lead}Σₑ {self.penalty.formula('(B H)ₑ')}"


@dataclass(frozen=True, eq=False)
class FrozenEdges(EdgeSmoothness):
    r"""The quadratic :math:`\beta\sum_e \Gamma_e\lVert (BH)_e\rVert^2` that touches a penalty at one H, where Γ was computed.

    A term for one step, made anew at every layer. Its Γ is a tensor that knows how it came from that H, of shape (..., edges),
    so gradients flow through the weights, too.

    Args:
        edges: Γ.
        weight: β.
        steepest: a bound on Γ wherever it is computed; steps of 1/L rest on it, so that signals of a stack do not share a step.
    """

    steepest: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "weight", as_coefficient(self.weight))

    def _edge_weights(self, given: Given) -> Tensor:
        return self.edges

    def lipschitz(self, given: Given) -> Map:
        """2 |β| max Γ · λmax(L), by the bound on Γ."""
        if isinstance(self.steepest, float) and self.steepest == float("inf"):
            raise IncompatibleError(
                "a penalty without a bound on its slope has no step 1/L; give the rule a step, or use Newton()"
            )
        return 4 * given.graph.scale * self.steepest * channel.spectral_norm(given[self.weight])


def _check_scale(scale: Any) -> None:
    if isinstance(scale, bool) or not isinstance(scale, int | float) or not 0 < scale < float("inf"):
        raise InputError("scale", scale, "a number above 0")


__all__ = ["Capped", "EdgePenalty", "FrozenEdges", "Log", "Penalty", "Power"]
