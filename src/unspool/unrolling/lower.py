r"""Lowering: K linear steps become hop coefficients, without touching the graph.

The trick is to run the algorithm itself, not on tensors but on *polynomials of the graph*: a :class:`HopPolynomial`
stands for Σⱼ pⱼ(S) X Mⱼ (and the same with the start in place of X), can be added, scaled, mapped on its channels and
multiplied with S. Since gradients of quadratic terms need no more than that, every linear algorithm, users' own with any
number of momentum states included, lowers through its unchanged ``update``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from unspool.algorithm import Algorithm, Problem
from unspool.errors import IncompatibleError
from unspool.objective.channel import Map, is_zero, rank, trimmed
from unspool.ops.polynomial import Basis
from unspool.unrolling.start import Input, Start, Zero


class CannotLower(IncompatibleError):
    """The network is not a polynomial of the graph.

    Attributes:
        cause: what stands in the way, without the way out.
    """

    def __init__(self, cause: str) -> None:
        super().__init__(f"cannot lower: {cause}; use adjoint=Stored()")
        self.cause = cause

    def __reduce__(self) -> tuple[type[CannotLower], tuple[str]]:
        return CannotLower, (self.cause,)


@dataclass(frozen=True, eq=False)
class HopPolynomial:
    """Σⱼ pⱼ(S) X Mⱼ + Σⱼ pⱼ(S) H⁽⁰⁾ Nⱼ as coefficient tensors by source, each of shape (hops,) + the shape of a map.

    Example:
        >>> import torch
        >>> x = HopPolynomial({"x": torch.ones(1)}, Basis.POWERS)
        >>> ((x + x.shifted()) * 0.5).parts["x"]
        tensor([0.5000, 0.5000])
    """

    parts: dict[str, Tensor]
    basis: Basis

    def __add__(self, other: Any) -> HopPolynomial:
        if not isinstance(other, HopPolynomial):
            if not isinstance(other, Tensor) and other == 0:  # where Python's sum begins
                return self
            raise TypeError("a step that adds anything but iterates and gradients is not linear")
        parts = dict(self.parts)
        for source, hops in other.parts.items():
            parts[source] = _add(parts[source], hops) if source in parts else hops
        return HopPolynomial(parts, self.basis)

    __radd__ = __add__

    def __sub__(self, other: HopPolynomial) -> HopPolynomial:
        return self + -other

    def __neg__(self) -> HopPolynomial:
        return HopPolynomial({s: -h for s, h in self.parts.items()}, self.basis)

    def __mul__(self, factor: Any) -> HopPolynomial:
        if rank(factor) == 2:
            raise TypeError("use h @ T for a matrix on channels")
        return self.mapped(factor)

    __rmul__ = __mul__

    def __truediv__(self, factor: Any) -> HopPolynomial:
        return self.mapped(1 / factor)

    def __matmul__(self, matrix: Tensor) -> HopPolynomial:
        return self.mapped(matrix)

    def mapped(self, t: Map) -> HopPolynomial:
        """Every coefficient followed by the map t on channels."""
        if isinstance(t, HopPolynomial):
            raise TypeError("a product of iterates is not linear")
        return HopPolynomial({s: _then(h, t) for s, h in self.parts.items()}, self.basis)

    def shifted(self) -> HopPolynomial:
        """Multiplied with S: one hop further."""
        return HopPolynomial({s: _shift(h, self.basis) for s, h in self.parts.items()}, self.basis)


@dataclass(frozen=True, eq=False)
class LinearProblem(Problem):
    """A problem whose iterates are hop polynomials."""

    basis: Basis = Basis.POWERS

    def gradient(self, h: HopPolynomial) -> HopPolynomial:
        """H P + L H Q + ... + X R + ... with L = scale · (I − S)."""
        stencil = self.objective.stencil(self.given)
        x = HopPolynomial({"x": self.one()}, self.basis)
        total = h.mapped(stencil.h) + x.mapped(stencil.x)
        for source, maps in ((h, stencil.of_h), (x, stencil.of_x)):
            signal = source
            for t in trimmed(maps)[1:]:
                signal = (signal - signal.shifted()).mapped(self.given.graph.scale)
                total = total if is_zero(t) else total + signal.mapped(t)
        return total

    def prox(self, v: HopPolynomial, step: Map) -> HopPolynomial:
        """Nothing, or a refusal."""
        for term in self.objective.proximable_terms:
            raise CannotLower(f"{term.name} is not quadratic")
        return v

    def one(self) -> Tensor:
        """The hop coefficients (1,) of a signal that has not moved, in the dtype of the coefficients."""
        x = self.given.x
        dtype = torch.float32 if x.dtype in (torch.bfloat16, torch.float16) else x.dtype
        return torch.ones(1, dtype=dtype, device=x.device)


def lower(algorithm: Algorithm, problems: list[LinearProblem], start: Start) -> HopPolynomial:
    """Run the algorithm on polynomials; the result's parts are the hop coefficients of the network."""
    first = problems[0]
    if isinstance(start, Zero):
        parts: dict[str, Tensor] = {}
    else:
        parts = {"x" if isinstance(start, Input) else "start": first.one()}
    state = algorithm.init(HopPolynomial(parts, first.basis), first)
    for problem in problems:
        state = algorithm.update(state, problem)
    return state[0]


def lower_again(algorithm: Algorithm, problems: list[LinearProblem], start: Start) -> HopPolynomial:
    """The same for a rule of a user's own, which could be lowered when the network was made."""
    try:
        return lower(algorithm, problems, start)
    except Exception as problem:
        raise IncompatibleError(
            f"{algorithm.name}.update was linear when the network was made and is not any more ({problem}); "
            "unroll it with adjoint=Stored()"
        ) from problem


# -- coefficient tensors: (hops,), (hops, features) or (hops, features, features) --------------------------------------


def _then(hops: Tensor, t: Map) -> Tensor:
    """Each coefficient followed by t."""
    if rank(t) == 0:
        return hops * t
    if hops.ndim == 3:
        return hops @ t.to(hops.dtype) if rank(t) == 2 else hops * t  # type: ignore[operator, union-attr]
    if rank(t) == 1:
        return (hops[:, None] if hops.ndim == 1 else hops) * t
    return (hops[:, None, None] if hops.ndim == 1 else hops[:, :, None]) * t


def _add(a: Tensor, b: Tensor) -> Tensor:
    length = max(a.shape[0], b.shape[0])
    features = a.shape[1] if a.ndim > 1 else b.shape[1] if b.ndim > 1 else 0
    dims = max(a.ndim, b.ndim)
    return _grown(a, length, dims, features) + _grown(b, length, dims, features)


def _grown(hops: Tensor, length: int, dims: int, features: int) -> Tensor:
    """Pad with zero hops and turn numbers into diagonals or matrices."""
    if hops.ndim == 1 and dims > 1:
        hops = hops[:, None].expand(-1, features)
    if hops.ndim == 2 and dims == 3:
        hops = torch.diag_embed(hops)
    if hops.shape[0] < length:
        hops = torch.cat([hops, hops.new_zeros(length - hops.shape[0], *hops.shape[1:])])
    return hops


def _shift(hops: Tensor, basis: Basis) -> Tensor:
    zero = torch.zeros_like(hops[:1])
    if basis is Basis.POWERS:
        return torch.cat([zero, hops])
    # S T₀ = T₁ and S Tⱼ = (Tⱼ₊₁ + Tⱼ₋₁)/2.
    half = hops[1:] / 2
    up = torch.cat([zero, hops[:1], half])
    return up if half.shape[0] == 0 else up + torch.cat([half, torch.zeros_like(hops[:1]), zero])
