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


class _Recurrence:
    """The state of conjugate gradients, on channels brought to size 1: squares of small numbers vanish in float32."""

    def __init__(
        self,
        apply: Callable[[Tensor], Tensor],
        right: Tensor,
        start: Tensor | None,
        tolerance: float,
        per_channel: bool,
    ) -> None:
        self.apply, self.dims = apply, (-2,) if per_channel else (-2, -1)
        self.tiny, self.eps = torch.finfo(right.dtype).tiny, torch.finfo(right.dtype).eps
        unit = right.abs().amax(self.dims, keepdim=True)
        self.idle = ~torch.isfinite(unit)  # a channel that is not finite stays so, and nobody waits for it
        self.unit = torch.where((unit > 0) & ~self.idle, unit, torch.ones_like(unit))
        self.right = torch.where(self.idle, torch.zeros_like(right), right / self.unit)
        self.size = self.total(self.right, self.right)
        self.goal, self.zero = tolerance**2 * self.size, torch.zeros_like(self.size)
        self.lowest, self.largest = self.zero + torch.inf, self.zero.clone()
        nothing = torch.zeros_like(self.right)
        self.h = nothing if start is None else torch.where(self.size > 0, start / self.unit, nothing)
        if start is None:
            self.begin(self.right.clone())
        else:
            self.renew()

    def total(self, a: Tensor, b: Tensor) -> Tensor:
        return (a * b).sum(self.dims, keepdim=True)

    def begin(self, residual: Tensor) -> None:
        self.residual, self.direction = residual, residual.clone()
        self.length = self.squared = self.total(residual, residual)

    def renew(self) -> None:
        """Begin again at H, with its true residual."""
        self.begin(self.right - self.apply(self.h))

    def advance(self) -> None:
        image = self.apply(self.direction)
        bend = self.total(self.direction, image)
        curvature = bend / self.length.clamp_min(self.tiny)
        self.lowest, self.largest = torch.minimum(self.lowest, curvature), torch.maximum(self.largest, curvature)
        step = torch.where(bend > 0, self.squared / bend, self.zero)
        self.h.addcmul_(step, self.direction)
        self.residual.addcmul_(step, image, value=-1)
        fresh = self.total(self.residual, self.residual)
        turn = fresh / self.squared.clamp_min(self.tiny)
        self.direction.mul_(turn).add_(self.residual)
        # The new residual is orthogonal to the last direction, so the length of their sum is known.
        self.squared, self.length = fresh, torch.addcmul(fresh, turn * turn, self.length)

    @property
    def claims_to_end(self) -> bool:
        return bool((self.squared <= self.goal).all())

    @property
    def bent(self) -> bool:
        """Whether a direction of negative curvature was met, beyond rounding."""
        return bool((self.lowest < -1e3 * self.eps * self.largest).any())

    @property
    def broken(self) -> bool:
        """Whether rounding (or the map) has left no direction to go on in, or numbers have become too large."""
        return bool((((self.lowest <= 0) & (self.squared > self.goal)) | ~torch.isfinite(self.squared)).any())

    def worst(self, part: Tensor) -> float:
        """The largest share of a squared norm in that of the right side, as a ratio of norms; infinite where it is lost."""
        share = torch.where(self.size > 0, part / self.size.clamp_min(self.tiny), self.zero)
        found = float(share.amax()) if share.numel() else 0.0
        return found**0.5 if math.isfinite(found) else math.inf


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
    now = _Recurrence(apply, right, start, tolerance, per_channel)
    best, k, exhausted = math.inf, 0, True
    while k < limit:
        if look_every and k % look_every == 0 and now.claims_to_end:
            now.renew()
            left = now.worst(now.squared)
            if left <= tolerance or not left < best / 2:
                exhausted = False
                break
            best = left
        if look_every and k % 32 == 31 and now.broken:
            now.renew()
            exhausted = False
            break
        now.advance()
        k += 1
    h = torch.where(now.idle, torch.full_like(now.h, math.nan), now.h * now.unit)
    if look_every == 0:
        return Solved(h, None, False, False)
    if exhausted:
        now.renew()
    rounding = _ROUNDING * now.eps * (1 + now.worst(now.total(now.h, now.h) * now.largest**2))
    report = SolveReport("conjugate gradients", k, now.worst(now.squared), tolerance, rounding)
    return Solved(h, report, now.bent, exhausted)
