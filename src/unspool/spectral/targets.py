"""Filters with a name, as functions of the frequency to fit and compare with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch import Tensor


@dataclass(frozen=True)
class Target:
    """A wanted response: a callable of λ that knows its name.

    Example:
        >>> import torch
        >>> halve = Target("one half", lambda f: torch.full_like(f, 0.5))
        >>> halve, halve(torch.zeros(2))
        (one half, tensor([0.5000, 0.5000]))
    """

    name: str
    curve: Callable[[Tensor], Tensor] = field(compare=False)

    def __call__(self, frequency: Tensor) -> Tensor:
        """h(λ)."""
        return self.curve(frequency)

    def __repr__(self) -> str:
        return self.name


def low_pass(cut: float, width: float = 0.1) -> Target:
    r"""Keep frequencies below ``cut``: :math:`h(\lambda) = 1 / (1 + e^{(\lambda - c)/w})`.

    Args:
        cut: the frequency that is halved, in [0, 2].
        width: of the transition; 0 asks for the ideal step, which no polynomial follows closely.

    Example:
        >>> import torch
        >>> low_pass(0.5)(torch.tensor([0.0, 0.5, 2.0]))
        tensor([9.9331e-01, 5.0000e-01, 3.0590e-07])
        >>> low_pass(0.5, width=0)(torch.tensor([0.0, 0.5, 2.0]))
        tensor([1., 1., 0.])
    """
    _check(cut, width)
    return Target(f"low_pass({cut:g}{_wide(width)})", lambda f: _step(cut - f, width))


def high_pass(cut: float, width: float = 0.1) -> Target:
    r"""Keep frequencies above ``cut``: :math:`h(\lambda) = 1 / (1 + e^{(c - \lambda)/w})`.

    Args:
        cut: the frequency that is halved, in [0, 2].
        width: of the transition; 0 asks for the ideal step.

    Example:
        >>> import torch
        >>> high_pass(1.0, width=0)(torch.tensor([0.0, 0.9, 1.1]))
        tensor([0., 0., 1.])
    """
    _check(cut, width)
    return Target(f"high_pass({cut:g}{_wide(width)})", lambda f: _step(f - cut, width))


def band_pass(low: float, high: float, width: float = 0.1) -> Target:
    r"""Keep frequencies between ``low`` and ``high``: a high-pass at one times a low-pass at the other.

    Args:
        low: where the band begins, in [0, 2].
        high: where it ends.
        width: of both transitions; 0 asks for the ideal band.

    Example:
        >>> import torch
        >>> band_pass(0.5, 1.0, width=0)(torch.tensor([0.4, 0.7, 1.1]))
        tensor([0., 1., 0.])
    """
    _check(low, width)
    _check(high, width)
    if low >= high:
        raise ValueError(f"band_pass({low:g}, {high:g}): the first edge must lie below the second")
    return Target(
        f"band_pass({low:g}, {high:g}{_wide(width)})", lambda f: _step(f - low, width) * _step(high - f, width)
    )


def comb(teeth: int) -> Target:
    r"""Keep ``teeth`` separate bands: :math:`h(\lambda) = \sin^2(\pi n \lambda / 2)`, with n maxima in [0, 2].

    Args:
        teeth: how many.

    Example:
        >>> import torch
        >>> comb(2)(torch.tensor([0.0, 0.5, 1.0, 1.5, 2.0])).abs().numpy().round(6)
        array([0., 1., 0., 1., 0.], dtype=float32)
    """
    if int(teeth) != teeth or teeth < 1:
        raise ValueError(f"comb({teeth}): expected a whole number of at least 1")
    return Target(f"comb({teeth})", lambda f: torch.sin(torch.pi * teeth * f / 2).square())


def _step(distance: Tensor, width: float) -> Tensor:
    return torch.sigmoid(distance / width) if width > 0 else (distance >= 0).to(distance.dtype)


def _wide(width: float) -> str:
    return "" if width == 0.1 else f", width={width:g}"


def _check(cut: float, width: float) -> None:
    if not 0 <= cut <= 2:
        raise ValueError(f"{cut:g} is not a graph frequency: they lie in [0, 2]")
    if width < 0:
        raise ValueError(f"width={width:g}: expected 0 (ideal) or more")
