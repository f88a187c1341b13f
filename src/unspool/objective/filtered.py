"""Quadratic terms with powers of L: higher-order smoothness, and fidelity that counts some frequencies more than others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torch import Tensor

from unspool.errors import InputError
from unspool.objective import channel
from unspool.objective.coefficient import Coefficient, as_coefficient
from unspool.objective.formula import leading
from unspool.objective.operator import LaplacianPower
from unspool.objective.quadratic import Weighted, quadratic_form, squared_norm
from unspool.objective.term import Given, Stencil


@dataclass(frozen=True, eq=False)
class HigherSmoothness(Weighted):
    r"""Neighbourhoods agree: :math:`\beta\operatorname{tr}(H^\top L^p H\,T)`, for p = 2 :math:`\beta\lVert LH\rVert_T^2`.

    Where :class:`Smoothness` asks for signals without slope, p = 2 asks for signals without bends.

    Args:
        weight: β, a number or coefficient.
        metric: T on channels; the identity when omitted.
        power: p, at least 2.

    Example:
        >>> import torch, unspool as us
        >>> print(us.Fidelity(0.5) + us.HigherSmoothness(0.5) + us.HigherSmoothness(0.1, power=3))
        0.5 ‖H − X‖²  +  0.5 ‖L H‖²  +  0.1 ‖B L H‖²
        >>> us.unroll(us.Fidelity(0.5) + us.HigherSmoothness(0.5), us.GradientDescent(), depth=3).hops(us.graph.ring(5)).shape
        torch.Size([7])
    """

    power: Any = 2
    uses_input = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.power, bool) or not isinstance(self.power, int) or self.power < 2:
            raise InputError("power", self.power, "a whole number of at least 2; Smoothness is the power 1")

    def value(self, h: Tensor, given: Given) -> Tensor:
        """β tr(Hᵀ Lᵖ H T)."""
        half = LaplacianPower(self.power // 2)(h, given.graph)
        rest = half if self.power % 2 == 0 else given.graph.laplacian_times(half)
        return quadratic_form(half, rest, given[self.metric]) * given[self.weight]

    def stencil(self, given: Given) -> Stencil:
        """2β Lᵖ H T."""
        return Stencil(more_h=(*(0.0,) * (self.power - 2), self.twice(given)))

    def formula(self) -> str:
        """β ‖L H‖²_T."""
        half = str(LaplacianPower(self.power // 2))
        return squared_norm(f"{'B ' if self.power % 2 else ''}{half} H", self.weight, self.metric)


@dataclass(frozen=True, eq=False)
class FilteredFidelity(Weighted):
    r"""Stay close to the input, at some frequencies more than at others: :math:`\alpha\langle H-X,\ p(L)(H-X)\rangle_T`.

    p(L) = c₀ I + c₁ L + c₂ L² + ... weighs the error at graph frequency λ with p(λ). GNN-HF's fidelity, which keeps high
    frequencies, is ``filter=(1, β)``, GNN-LF's ``filter=(1, μ − 1)``, that is, μ I + (1 − μ) A.

    Args:
        weight: α, a number or coefficient.
        metric: T on channels; the identity when omitted.
        filter: c₀, c₁, ..., numbers or coefficients.

    Example:
        >>> import torch, unspool as us
        >>> print(us.FilteredFidelity(1.0, filter=(1.0, 0.3)) + us.Smoothness(2.0))
        ⟨H − X, (1 + 0.3 L)(H − X)⟩  +  2 ‖B H‖²
        >>> us.spectral.response(us.unroll(us.FilteredFidelity(1.0, filter=(1.0, 2.0)) + us.Smoothness(2.0), us.Exact()))([0.0, 1.0])
        tensor([1.0000, 0.6000], dtype=torch.float64)
    """

    filter: Any = (1.0, 1.0)

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.filter, Coefficient | int | float | Tensor) or len(self.filter) == 0:
            raise InputError("filter", self.filter, "the coefficients of I, L, L², ... in a tuple, such as (1.0, 0.3)")
        object.__setattr__(self, "filter", tuple(as_coefficient(c) for c in self.filter))
        if not all(c.number for c in self.filter):
            raise InputError("filter", self.filter, "a single number for each power of L")

    def value(self, h: Tensor, given: Given) -> Tensor:
        """α ⟨H − X, p(L)(H − X) T⟩."""
        offset = h - given.x
        power, total = offset, offset * given[self.filter[0]]
        for c in self.filter[1:]:
            power = given.graph.laplacian_times(power)
            total = total + power * given[c]
        return quadratic_form(offset, total, given[self.metric]) * given[self.weight]

    def stencil(self, given: Given) -> Stencil:
        """2α p(L)(H − X) T."""
        maps = [channel.compose(given[c], self.twice(given)) for c in self.filter]
        first, second = (*maps, 0.0)[:2]
        back = tuple(channel.negative(t) for t in maps)
        return Stencil(first, second, back[0], tuple(maps[2:]), back[1:])

    def is_convex(self, given: Given) -> bool:
        """Whether p is not negative on [0, 2·scale] and T positive semi-definite."""
        stencil = self.stencil(given)
        low, _ = channel.eigenvalue_bounds(stencil.of_h, 2.0 * given.graph.scale)
        return bool(low >= -1e-12)

    def formula(self) -> str:
        """α ⟨H − X, p(L)(H − X)⟩."""
        metric = "" if str(self.metric) == "1" else f"_{self.metric}"
        lead = leading(self.weight)
        return f"{lead}⟨H − X, ({self._polynomial()})(H − X)⟩{metric}"

    def _polynomial(self) -> str:
        parts = [str(self.filter[0])] if str(self.filter[0]) != "0" else []
        for p, c in enumerate(self.filter[1:], start=1):
            text = str(LaplacianPower(p))
            parts.append(text if str(c) == "1" else f"{c.factor} {text}")
        return " + ".join(parts).replace("+ −", "− ")
