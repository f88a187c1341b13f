r"""Activations as proximity operators (Combettes and Pesquet, 2020).

A function σ of one variable is the proximity operator of some convex φ exactly when it rises and never faster than the
identity (0 ≤ σ' ≤ 1). Then :math:`\varphi(y) = \int (\sigma^{-1}(y) - y)\,dy`, and any such activation can stand in an
objective as the term φ. GELU and SiLU fall somewhere; SELU, and ELU with a > 1, rise faster than the identity: none of
them is a proximity operator.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from unspool.errors import IncompatibleError
from unspool.ops.prox import as_like
from unspool.ops.transforming import transforming

#: Newton steps after a bisection move by no more than this, relatively.
_POLISH = 1e-3


class Potential(ABC):
    """A convex φ of one variable whose proximity operator is a known activation."""

    #: How the potential is printed in formulas.
    symbol: str = "φ"

    @abstractmethod
    def activation(self, v: Tensor) -> Tensor:
        """σ(v) = argmin_y φ(y) + (y − v)²/2."""

    @abstractmethod
    def value(self, y: Tensor) -> Tensor:
        """φ(y), entry by entry; infinite outside the domain."""

    def slope(self, v: Tensor) -> Tensor:
        """σ'(v), in [0, 1]."""
        if torch.compiler.is_compiling() or transforming():
            return torch.func.vjp(self.activation, v)[1](torch.ones_like(v))[0]
        # Trap: torch.func does not go with the hooks of checkpoints, and torch.autograd.grad not with torch.func.
        again = torch.is_grad_enabled() and self.activation(v).requires_grad
        with torch.enable_grad():
            at = v.view_as(v) if v.requires_grad else v.detach().requires_grad_()
            return torch.autograd.grad(self.activation(at), at, torch.ones_like(v), create_graph=again)[0]

    def prox(self, v: Tensor, weight: float | Tensor) -> Tensor:
        r"""The proximity operator of weight · φ, which is the activation itself only for weight = 1.

        With u = σ⁻¹(y) the optimality condition reads (1 − w) σ(u) + w u = v: one rising equation per entry,
        bracketed and bisected, with two Newton steps at the end that also carry first and second derivatives.
        """
        if not isinstance(weight, Tensor) and weight <= 0:
            if weight < 0:
                raise IncompatibleError(
                    f"{self!r} with the weight {weight:g} is not convex and has no proximity operator; keep weights non-negative"
                )
            return v
        w = as_like(weight, v)
        with torch.no_grad():
            u = self._solve(v, w)
        for _ in range(2):  # each Newton step makes one more order of derivative exact
            move = ((1 - w) * self.activation(u) + w * u - v) / (w + (1 - w) * self.slope(u))
            # Trap: for weights beyond 1e15 nothing but rounding is left of this; a step that is no polish is not taken.
            u = torch.where(move.abs() <= _POLISH * (1 + u.abs()), u - move, u)
        return self.activation(u)

    def _solve(self, v: Tensor, w: Tensor) -> Tensor:
        # The equation rises with a slope between w and 1, so its root is no further from v than its residual at v allows.
        limits = torch.finfo(v.dtype)
        other = v - (1 - w) * (self.activation(v) - v) / w.clamp(limits.tiny, 1.0)
        other = other.clamp(limits.min / 4, limits.max / 4)
        # Trap: for tiny weights the root may be anywhere up to 1/w, so halves are taken of its logarithm, arsinh u.
        low, high = torch.minimum(v, other).arcsinh(), torch.maximum(v, other).arcsinh()
        for _ in range(70 if v.dtype == torch.float64 else 40):
            middle = (low + high) / 2
            u = middle.sinh()
            above = (1 - w) * self.activation(u) + w * u > v
            low, high = torch.where(above, low, middle), torch.where(above, middle, high)
        return ((low + high) / 2).sinh()

    def __str__(self) -> str:
        return self.symbol


def _inside(y: Tensor, ok: Tensor, value: Tensor) -> Tensor:
    return torch.where(ok, value, torch.full_like(y, math.inf))


@dataclass(frozen=True)
class ReLU(Potential):
    """max(0, v): φ is zero on y ≥ 0 and infinite below.

    Example:
        >>> import torch
        >>> ReLU().value(torch.tensor([-1.0, 2.0]))
        tensor([inf, 0.])
    """

    symbol = "ι[h≥0]"

    def activation(self, v: Tensor) -> Tensor:
        """max(0, v)."""
        return torch.relu(v)

    def value(self, y: Tensor) -> Tensor:
        """0 or ∞."""
        return _inside(y, y >= 0, torch.zeros_like(y))

    def prox(self, v: Tensor, weight: float | Tensor) -> Tensor:
        """A projection, whatever the weight."""
        return torch.relu(v)


@dataclass(frozen=True)
class LeakyReLU(Potential):
    """v for v ≥ 0 and slope · v below: φ(y) = (1/slope − 1) y²/2 for y < 0.

    Example:
        >>> import torch
        >>> LeakyReLU(0.5).activation(torch.tensor([-2.0, 2.0]))
        tensor([-1.,  2.])
    """

    negative_slope: float = 0.01
    symbol = "φ[leaky ReLU]"

    def __post_init__(self) -> None:
        if not 0 < self.negative_slope <= 1:
            raise IncompatibleError(
                f"leaky ReLU with slope {self.negative_slope:g} is not a proximity operator: the slope must lie in (0, 1]"
            )

    def activation(self, v: Tensor) -> Tensor:
        """Identity above zero, slope · v below."""
        return torch.nn.functional.leaky_relu(v, self.negative_slope)

    def value(self, y: Tensor) -> Tensor:
        """A half parabola below zero."""
        return (1 / self.negative_slope - 1) * torch.relu(-y) ** 2 / 2


@dataclass(frozen=True)
class ELU(Potential):
    """v for v ≥ 0 and a (eᵛ − 1) below, with 0 < a ≤ 1: φ(y) = (y + a) log(1 + y/a) − y − y²/2 on −a ≤ y < 0.

    Example:
        >>> ELU(1.5)
        Traceback (most recent call last):
            ...
        unspool.errors.IncompatibleError: ELU with a = 1.5 is not a proximity operator: its slope reaches 1.5, above 1; use 0 < a ≤ 1
    """

    a: float = 1.0
    symbol = "φ[ELU]"

    def __post_init__(self) -> None:
        if not 0 < self.a <= 1:
            why = f"its slope reaches {self.a:g}, above 1" if self.a > 1 else "it does not rise below zero"
            raise IncompatibleError(f"ELU with a = {self.a:g} is not a proximity operator: {why}; use 0 < a ≤ 1")

    def activation(self, v: Tensor) -> Tensor:
        """Identity above zero, a (eᵛ − 1) below."""
        return torch.nn.functional.elu(v, self.a)

    def value(self, y: Tensor) -> Tensor:
        """Entropy-like below zero, infinite below −a."""
        t = torch.clamp(y, -self.a, 0.0)
        below = torch.xlogy(t + self.a, 1 + t / self.a) - t - t**2 / 2
        return _inside(y, y >= -self.a, torch.where(y < 0, below, torch.zeros_like(y)))


@dataclass(frozen=True)
class Tanh(Potential):
    """The hyperbolic tangent: φ(y) = y artanh y + log(1 − y²)/2 − y²/2 on [−1, 1].

    Example:
        >>> import torch
        >>> Tanh().value(torch.tensor([0.0, 2.0]))
        tensor([0., inf])
    """

    symbol = "φ[tanh]"

    def activation(self, v: Tensor) -> Tensor:
        """The hyperbolic tangent."""
        return torch.tanh(v)

    def value(self, y: Tensor) -> Tensor:
        """Entropy on [−1, 1] minus a parabola."""
        t = torch.clamp(y, -1.0, 1.0)
        entropy = (torch.xlogy(1 + t, 1 + t) + torch.xlogy(1 - t, 1 - t)) / 2
        return _inside(y, y.abs() <= 1, entropy - t**2 / 2)


@dataclass(frozen=True)
class Sigmoid(Potential):
    """The logistic function: φ(y) = y log y + (1 − y) log(1 − y) − y²/2 on [0, 1].

    Example:
        >>> import torch
        >>> Sigmoid().activation(torch.tensor([0.0]))
        tensor([0.5000])
    """

    symbol = "φ[sigmoid]"

    def activation(self, v: Tensor) -> Tensor:
        """1 / (1 + e⁻ᵛ)."""
        return torch.sigmoid(v)

    def value(self, y: Tensor) -> Tensor:
        """Entropy on [0, 1] minus a parabola."""
        t = torch.clamp(y, 0.0, 1.0)
        return _inside(y, (y >= 0) & (y <= 1), torch.xlogy(t, t) + torch.xlogy(1 - t, 1 - t) - t**2 / 2)


@dataclass(frozen=True)
class Softsign(Potential):
    """v / (1 + |v|): φ(y) = −|y| − log(1 − |y|) − y²/2 on (−1, 1).

    Example:
        >>> import torch
        >>> Softsign().activation(torch.tensor([1.0]))
        tensor([0.5000])
    """

    symbol = "φ[softsign]"

    def activation(self, v: Tensor) -> Tensor:
        """The ratio v / (1 + |v|)."""
        return torch.nn.functional.softsign(v)

    def value(self, y: Tensor) -> Tensor:
        """A barrier at ±1."""
        t = y.abs().clamp_max(1.0)
        return _inside(y, y.abs() < 1, -t - torch.log1p(-t) - t**2 / 2)


@dataclass(frozen=True)
class Arctan(Potential):
    """(2/π) arctan(πv/2): φ(y) = −(4/π²) log cos(πy/2) − y²/2 on (−1, 1).

    Example:
        >>> import torch
        >>> Arctan().activation(torch.tensor([0.0]))
        tensor([0.])
    """

    symbol = "φ[arctan]"

    def activation(self, v: Tensor) -> Tensor:
        """The arctangent, scaled into (−1, 1) with slope 1 at zero."""
        return torch.atan(v * (math.pi / 2)) * (2 / math.pi)

    def value(self, y: Tensor) -> Tensor:
        """A barrier at ±1."""
        t = torch.clamp(y, -1.0, 1.0)
        barrier = -torch.log(torch.cos(t * (math.pi / 2)).clamp_min(torch.finfo(y.dtype).tiny))
        return _inside(y, y.abs() < 1, barrier * (4 / math.pi**2) - t**2 / 2)


@dataclass(frozen=True)
class Softshrink(Potential):
    """Soft thresholding by ``radius``: φ(y) = radius · |y|.

    Example:
        >>> import torch
        >>> Softshrink(0.5).activation(torch.tensor([-2.0, 0.1]))
        tensor([-1.5000,  0.0000])
    """

    radius: float = 0.5
    symbol = "φ[softshrink]"

    def __post_init__(self) -> None:
        if self.radius < 0:
            raise IncompatibleError(
                f"softshrink with radius {self.radius:g} is not a proximity operator: the radius must not be negative"
            )

    def activation(self, v: Tensor) -> Tensor:
        """Pull towards zero."""
        return torch.nn.functional.softshrink(v, self.radius)

    def value(self, y: Tensor) -> Tensor:
        """radius · |y|."""
        return self.radius * y.abs()


@dataclass(frozen=True)
class Hardtanh(Potential):
    """Clip to [low, high]: φ is zero inside and infinite outside.

    Example:
        >>> import torch
        >>> Hardtanh().activation(torch.tensor([-2.0, 0.1]))
        tensor([-1.0000,  0.1000])
    """

    low: float = -1.0
    high: float = 1.0
    symbol = "ι[box]"

    def __post_init__(self) -> None:
        if not self.low < self.high:
            raise ValueError(f"hardtanh needs low < high, not [{self.low:g}, {self.high:g}]")

    def activation(self, v: Tensor) -> Tensor:
        """Clip."""
        return torch.clamp(v, self.low, self.high)

    def value(self, y: Tensor) -> Tensor:
        """0 or ∞."""
        return _inside(y, (y >= self.low) & (y <= self.high), torch.zeros_like(y))

    def prox(self, v: Tensor, weight: float | Tensor) -> Tensor:
        """A projection, whatever the weight."""
        return self.activation(v)


def potential_of(module: torch.nn.Module) -> Potential:
    """The potential behind a torch activation module, or a refusal that says why there is none.

    Example:
        >>> import torch
        >>> potential_of(torch.nn.ELU(0.5))
        ELU(a=0.5)
        >>> potential_of(torch.nn.GELU())
        Traceback (most recent call last):
            ...
        unspool.errors.IncompatibleError: GELU is not a proximity operator: it falls near v = -1.00, and a proximity operator never falls
    """
    nn = torch.nn
    known: dict[type[torch.nn.Module], Callable[[Any], Potential]] = {
        nn.ReLU: lambda m: ReLU(),
        nn.LeakyReLU: lambda m: LeakyReLU(m.negative_slope),
        nn.ELU: lambda m: ELU(m.alpha),
        nn.Tanh: lambda m: Tanh(),
        nn.Sigmoid: lambda m: Sigmoid(),
        nn.Softsign: lambda m: Softsign(),
        nn.Softshrink: lambda m: Softshrink(m.lambd),
        nn.Hardtanh: lambda m: Hardtanh(m.min_val, m.max_val),
        nn.ReLU6: lambda m: Hardtanh(0.0, 6.0),
    }
    make = known.get(type(module))
    if make is not None:
        return make(module)
    reason = not_a_prox(module)
    name = type(module).__name__
    if reason is not None:
        raise IncompatibleError(f"{name} is not a proximity operator: {reason}")
    raise IncompatibleError(
        f"{name} may be a proximity operator, but its potential is not on file; subclass Potential and give its value"
    )


def not_a_prox(activation: torch.nn.Module) -> str | None:
    """Why a function of one variable cannot be a proximity operator, judged on a fine grid; None if nothing speaks against it."""
    v = torch.linspace(-10, 10, 8001, dtype=torch.float64)
    with torch.no_grad():
        slope = activation(v).diff() / v.diff()
    worst = v[1:][slope < -1e-6]
    if worst.numel():
        return f"it falls near v = {float(worst[(worst + 1).abs().argmin()]):.2f}, and a proximity operator never falls"
    if float(slope.max()) > 1 + 1e-6:
        return (
            f"its slope reaches {float(slope.max()):.4f}, and a proximity operator never rises faster than the identity"
        )
    return None
