"""Terms that enter through their proximal operator: constraints, sparsity, activations."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from unspool.errors import IncompatibleError
from unspool.objective.channel import Map
from unspool.objective.coefficient import Fixed, as_coefficient
from unspool.objective.formula import leading
from unspool.objective.term import Given, ProximableTerm, Term
from unspool.ops import prox
from unspool.ops.activation import Potential, potential_of

_ONE = Fixed(1.0)
#: Where activations that have a limit have reached it, and what is no limit.
_FAR, _ENDLESS = 1e30, 1e15


def _indicator(ok: Tensor, h: Tensor) -> Tensor:
    inside = ok.flatten(-2).all(-1)
    return torch.where(
        inside,
        torch.zeros((), dtype=h.dtype, device=h.device),
        torch.full((), math.inf, dtype=h.dtype, device=h.device),
    )


def _indicator_times(term: Term, factor: Any) -> Term:
    by = as_coefficient(factor)
    if isinstance(by, Fixed) and (not by.number or float(by.value) <= 0):
        raise IncompatibleError(
            f"{by} times {term.formula()} is not a constraint any more; an indicator takes a positive factor"
        )
    return term


@dataclass(frozen=True, eq=False)
class NonNegative(ProximableTerm):
    r"""Every entry is non-negative: the indicator :math:`\iota_{\{H \ge 0\}}`, whose proximal operator is the ReLU.

    Example:
        >>> import torch, unspool as us
        >>> h = torch.tensor([[-1.0], [2.0], [0.0]])
        >>> us.NonNegative().prox(h, 0.5, us.Given(h, us.graph.ring(3))).flatten()
        tensor([0., 2., 0.])
    """

    separable = True
    interval = True
    uses_input = False

    def value(self, h: Tensor, given: Given) -> Tensor:
        """0 or ∞."""
        return _indicator(h >= 0, h)

    def prox(self, v: Tensor, step: Map, given: Given) -> Tensor:
        """ReLU."""
        return prox.non_negative(v)

    def scaled(self, factor: Any) -> Term:
        """An indicator stays what it is under a positive factor."""
        return _indicator_times(self, factor)

    def formula(self) -> str:
        """ι[H ≥ 0]."""
        return "ι[H ≥ 0]"


@dataclass(frozen=True, eq=False)
class Box(ProximableTerm):
    """Every entry lies in [low, high].

    Example:
        >>> import unspool as us
        >>> print(us.Box(0.0, 1.0))
        ι[0 ≤ H ≤ 1]
    """

    low: float
    high: float
    separable = True
    interval = True
    uses_input = False

    def __post_init__(self) -> None:
        if not self.low <= self.high:
            raise ValueError(f"Box({self.low}, {self.high}) is empty: low must not exceed high")

    def value(self, h: Tensor, given: Given) -> Tensor:
        """0 or ∞."""
        return _indicator((h >= self.low) & (h <= self.high), h)

    def prox(self, v: Tensor, step: Map, given: Given) -> Tensor:
        """Clip."""
        return prox.box(v, self.low, self.high)

    def scaled(self, factor: Any) -> Term:
        """An indicator stays what it is under a positive factor."""
        return _indicator_times(self, factor)

    def formula(self) -> str:
        """ι[low ≤ H ≤ high]."""
        return f"ι[{self.low:g} ≤ H ≤ {self.high:g}]"


@dataclass(frozen=True, eq=False)
class _Norm(ProximableTerm):
    """A weighted norm."""

    weight: Any = _ONE

    def __post_init__(self) -> None:
        object.__setattr__(self, "weight", as_coefficient(self.weight))
        if not self.weight.number:
            raise TypeError(f"the weight of {self.name} must be a single number")

    def radius(self, step: Map, given: Given) -> Map:
        """How far one proximal step pulls."""
        return step * given[self.weight]


@dataclass(frozen=True, eq=False)
class Sparse(_Norm):
    r"""Few entries differ from zero: :math:`\rho \lVert H\rVert_1`.

    Example:
        >>> import unspool as us
        >>> print(us.Sparse(0.3))
        0.3 ‖H‖₁
    """

    separable = True
    uses_input = False

    def value(self, h: Tensor, given: Given) -> Tensor:
        """ρ Σ |h|."""
        return h.abs().sum((-2, -1)) * given[self.weight]

    def prox(self, v: Tensor, step: Map, given: Given) -> Tensor:
        """Soft thresholding."""
        return prox.soft_threshold(v, self.radius(step, given))

    def formula(self) -> str:
        """ρ ‖H‖₁."""
        return f"{leading(self.weight)}‖H‖₁"


@dataclass(frozen=True, eq=False)
class RowSparse(_Norm):
    r"""Few nodes differ from zero: :math:`\rho \lVert H\rVert_{2,1}`.

    Example:
        >>> import unspool as us
        >>> print(us.RowSparse(0.3))
        0.3 ‖H‖₂,₁
    """

    uses_input = False

    def value(self, h: Tensor, given: Given) -> Tensor:
        """ρ Σᵢ ‖hᵢ‖."""
        return torch.linalg.vector_norm(h, dim=-1).sum(-1) * given[self.weight]

    def prox(self, v: Tensor, step: Map, given: Given) -> Tensor:
        """Shrink rows towards zero."""
        return prox.row_shrink(v, self.radius(step, given))

    def formula(self) -> str:
        """ρ ‖H‖₂,₁."""
        return f"{leading(self.weight)}‖H‖₂,₁"


@dataclass(frozen=True, eq=False)
class RowSparseFidelity(_Norm):
    r"""Few nodes leave their input: :math:`\rho \lVert H - X\rVert_{2,1}`, AirGNN's robust fidelity.

    Example:
        >>> import unspool as us
        >>> print(us.Smoothness(0.6) + us.RowSparseFidelity(0.4))
        0.6 ‖B H‖²  +  0.4 ‖H − X‖₂,₁
    """

    def value(self, h: Tensor, given: Given) -> Tensor:
        """ρ Σᵢ ‖hᵢ − xᵢ‖."""
        return torch.linalg.vector_norm(h - given.x, dim=-1).sum(-1) * given[self.weight]

    def prox(self, v: Tensor, step: Map, given: Given) -> Tensor:
        """Shrink rows towards the input."""
        return prox.row_shrink(v, self.radius(step, given), given.x)

    def formula(self) -> str:
        """ρ ‖H − X‖₂,₁."""
        return f"{leading(self.weight)}‖H − X‖₂,₁"


@dataclass(frozen=True, eq=False)
class Activation(ProximableTerm):
    r"""The convex potential behind an activation function: :math:`w \sum_{ij} \varphi(h_{ij})`.

    One proximal step of size η on φ/η *is* the activation, so without a ``weight`` the term carries exactly 1/η,
    whatever step the algorithm takes. With a weight of its own it is an ordinary term, and its proximal operator
    prox_{ηwφ} is the activation only when η w = 1.

    Args:
        potential: a :class:`~unspool.ops.activation.Potential`, or a torch activation module that has one.
        weight: a number or coefficient; 1/η when omitted.

    Example:
        >>> import torch, unspool as us
        >>> print(us.Smoothness(1.0) + us.Activation(torch.nn.ELU()))
        ‖B H‖²  +  (1/η) Σ φ[ELU](H)
        >>> us.Activation(torch.nn.SiLU())
        Traceback (most recent call last):
            ...
        unspool.errors.IncompatibleError: SiLU is not a proximity operator: it falls near v = -1.28, and a proximity operator never falls
    """

    potential: Any
    weight: Any = None
    separable = True
    uses_input = False

    def __post_init__(self) -> None:
        if isinstance(self.potential, torch.nn.Module):
            object.__setattr__(self, "potential", potential_of(self.potential))
        if not isinstance(self.potential, Potential):
            raise TypeError(
                f"{self.potential!r} is not a potential: give one from unspool.ops.activation or a torch activation module"
            )
        if self.weight is not None:
            object.__setattr__(self, "weight", as_coefficient(self.weight))
            if not self.weight.number:
                raise TypeError("the weight of Activation must be a single number")

    @property
    def per_step(self) -> bool:
        """Whether the term stands for φ/η, and is another term at another step."""
        return self.weight is None

    def value(self, h: Tensor, given: Given) -> Tensor:
        """w Σ φ(h)."""
        total = self.potential.value(h).sum((-2, -1))
        if self.weight is not None:
            return total * given[self.weight]
        if given.step is None:
            raise IncompatibleError(
                f"{self.potential!r} stands for φ/η, so its value depends on the step: pass step=η, or give the term a weight"
            )
        return total / given.step

    def prox(self, v: Tensor, step: Map, given: Given) -> Tensor:
        """The activation, or the proximal operator of a multiple of its potential."""
        if self.weight is None:
            return self.potential.activation(v)
        return self.potential.prox(v, step * given[self.weight])

    def is_convex(self, given: Given) -> bool:
        """Potentials are convex; a weight must not be negative."""
        return self.weight is None or super().is_convex(given)

    def scaled(self, factor: Any) -> Term:
        """A term that carries 1/η cannot be scaled without losing its meaning."""
        if self.weight is None:
            raise IncompatibleError(
                f"{self.potential!r} stands for φ/η and cannot be scaled; give the term a weight first"
            )
        return super().scaled(factor)

    def formula(self) -> str:
        """w Σ φ(H)."""
        lead = "(1/η) " if self.weight is None else leading(self.weight)
        return f"{lead}Σ {self.potential}(H)"


def _bounds(term: ProximableTerm) -> tuple[float, float]:
    """The least and the greatest entry at which a term of this package is finite."""
    if isinstance(term, NonNegative):
        return (0.0, math.inf)
    if isinstance(term, Box):
        return (term.low, term.high)
    if isinstance(term, Activation):  # a potential is finite where the activation leads
        low, high = term.potential.activation(torch.tensor([-_FAR, _FAR], dtype=torch.float64)).tolist()
        return (low if low > -_ENDLESS else -math.inf, high if high < _ENDLESS else math.inf)
    return (-math.inf, math.inf)


def check_room(terms: tuple[ProximableTerm, ...]) -> None:
    """Refuse constraints that no number keeps together.

    Of intervals that meet, one projection after the other is that onto what they share; of others it is not.

    Example:
        >>> check_room((NonNegative(), Box(-2.0, -1.0)))
        Traceback (most recent call last):
            ...
        unspool.errors.IncompatibleError: no signal keeps both ι[H ≥ 0] and ι[-2 ≤ H ≤ -1]; give constraints that meet, or leave one out
    """
    if len(terms) < 2:
        return
    low, high = max(terms, key=lambda term: _bounds(term)[0]), min(terms, key=lambda term: _bounds(term)[1])
    if _bounds(low)[0] > _bounds(high)[1]:
        raise IncompatibleError(
            f"no signal keeps both {low.formula()} and {high.formula()}; give constraints that meet, or leave one out"
        )
