"""Conjugate gradients for symmetric positive definite maps on signals, with an honest account of how they went."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from unspool.ops.convergence import SolveReport

#: Rounding of a product and its sums, in multiples of the machine's precision.
_ROUNDING = 10.0


@dataclass(frozen=True, eq=False)
class Solved:
    """A solution and how it came about.

    Attributes:
        h: the solution.
        report: iterations and residual; None where nothing could be looked at (inside a CUDA graph).
        bent: a direction of negative curvature was met, so the map is not positive definite.
        exhausted: all iterations were used up.
    """

    h: Tensor
    report: SolveReport | None
    bent: bool
    exhausted: bool


@torch.no_grad()
def conjugate_gradients(
    apply: Callable[[Tensor], Tensor],
    right: Tensor,
    start: Tensor | None,
    tolerance: float,
    limit: int,
    per_channel: bool,
    look_every: int = 1,
) -> Solved:
    """Solve apply(H) = right, with a recurrence of its own for every channel, or one for all.

    The residual of the recurrence drifts away from the true one by rounding. So when it claims to be small enough, the true one
    is computed; if that is not, the solve begins again from there, until it has converged or no longer gains anything.

    Args:
        apply: the map; it may write into one buffer again and again.
        right: shape (..., nodes, channels).
        start: where to begin; zero when None.
        tolerance: of the residual, in the norm, relative to ``right``, for every channel (or signal).
        limit: most iterations.
        per_channel: whether the map leaves every channel alone.
        look_every: how often to look whether it has converged (a GPU would wait); 0 for never: then all iterations run.
    """
    dims = (-2,) if per_channel else (-2, -1)
    # Squares of small numbers vanish in float32, so every channel is brought to size 1 first.
    unit = right.abs().amax(dims, keepdim=True)
    unit = torch.where(unit > 0, unit, torch.ones_like(unit))
    right = right / unit
    total = lambda a, b: (a * b).sum(dims, keepdim=True)  # noqa: E731
    size = total(right, right)
    goal = tolerance**2 * size
    idle = ~torch.isfinite(size)  # a channel that is not finite stays so, and nobody waits for it
    h = torch.zeros_like(right) if start is None else torch.where(size > 0, start / unit, torch.zeros_like(right))
    residual = right - apply(h) if start is not None else right.clone()
    direction, squared = residual.clone(), total(residual, residual)
    length, top, bent = squared, torch.zeros_like(squared), torch.zeros_like(squared, dtype=torch.bool)
    zero, one = torch.zeros_like(squared), torch.ones_like(squared)
    eps, best, k, exhausted = torch.finfo(right.dtype).eps, float("inf"), 0, True
    while k < limit:
        if look_every and k % look_every == 0 and bool(((squared <= goal) | idle).all()):
            residual = right - apply(h)
            direction, squared = residual.clone(), total(residual, residual)
            length = squared
            worst = _worst(squared, goal, idle)
            if worst <= 1.0 or worst > best / 4:
                exhausted = False
                break
            best = worst
        image = apply(direction)
        bend = total(direction, image)
        live = squared > goal
        stuck = live & ~(bend > 0)
        bent = bent | (stuck & (bend < -1e3 * eps * top * length))
        top = torch.maximum(top, torch.where(length > 0, bend / torch.where(length > 0, length, one), zero))
        step = torch.where(live & (bend > 0), squared / torch.where(bend > 0, bend, one), zero)
        h.addcmul_(step, direction)
        residual.addcmul_(step, image, value=-1)
        fresh = total(residual, residual)
        turn = torch.where(live, fresh / torch.where(live, squared, one), zero)
        direction.mul_(turn).add_(residual)
        squared, length = fresh, fresh + turn * turn * length
        k += 1
        if look_every and k % look_every == 0 and bool((stuck | bent | (~torch.isfinite(squared) & ~idle)).any()):
            break
    h = torch.where(idle, torch.full_like(h, float("nan")), h * unit)
    if not look_every:
        return Solved(h, None, False, False)
    if exhausted:
        residual = right - apply(h / unit)
        squared = total(residual, residual)
    left = _worst(squared, size, idle) ** 0.5
    rounding = _ROUNDING * eps * (1 + _worst(total(h / unit, h / unit) * top * top, size, idle) ** 0.5)
    report = SolveReport("conjugate gradients", k, left, tolerance, rounding)
    return Solved(h, report, bool(bent.any()), exhausted)


def _worst(part: Tensor, whole: Tensor, idle: Tensor) -> float:
    """The largest ratio over channels, zero where there is nothing, infinite where it is not finite."""
    ratio = torch.where(whole > 0, part / torch.where(whole > 0, whole, torch.ones_like(whole)), torch.zeros_like(part))
    ratio = torch.where(idle, torch.zeros_like(ratio), ratio)
    found = float(ratio.amax()) if ratio.numel() else 0.0
    return found if math.isfinite(found) else math.inf
