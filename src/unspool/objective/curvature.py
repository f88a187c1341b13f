"""The smallest curvature of a quadratic sum on a graph, for terms with a stencil and without."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from unspool.errors import IncompatibleError
from unspool.objective.term import Given, StencilTerm, stencil_gradient
from unspool.ops.lanczos import Lanczos

if TYPE_CHECKING:
    from unspool.objective.objective import Objective

#: Up to so many unknowns the Hessian is written out.
DENSE = 256
#: So many products with the Hessian Lanczos' method may take.
STEPS = 2000


@torch.no_grad()
def smallest_curvature(objective: Objective, given: Given) -> tuple[float, float]:
    """Bounds on the smallest eigenvalue of the Hessian of all quadratic terms together, on this graph.

    Terms with a stencil are diagonal in the graph's frequencies, so theirs is known. Where it is positive and the other
    terms say that they are convex, it bounds the sum from below. Otherwise the Hessian of the sum itself is looked at, dense if
    it is small and by Lanczos' method if not: the upper bound is then certain, and the lower one agrees with it to a
    hundredth, or says nothing where the eigenvalues crowd too closely.
    """
    rest = [
        t for t in objective.smooth_terms if getattr(t, "affine_gradient", False) and not isinstance(t, StencilTerm)
    ]
    plain = any(isinstance(term, StencilTerm) for term in objective.smooth_terms)
    low = float(objective.curvature(given)[0]) if plain else 0.0
    if plain and low <= 0:
        low = float(objective.curvature(given, exact=True)[0])
    if not rest:
        return low, low
    convex = all(term.is_convex(given) for term in rest)
    if low > 0 and convex:
        return low, math.inf
    apply, like = _hessian(objective, rest, given)
    value, miss, largest = _dense(apply, like) if like.numel() <= DENSE else _lanczos(apply, like)
    rounding = 100 * torch.finfo(like.dtype).eps * largest
    if abs(value) <= rounding and miss <= rounding:
        return 0.0, 0.0
    if miss <= 0.1 * abs(value):
        return value - miss, value
    return (0.0 if low >= 0 and convex else -math.inf), value


def _hessian(objective: Objective, rest: list[Any], given: Given) -> tuple[Callable[[Tensor], Tensor], Tensor]:
    """The Hessian of the quadratic terms as a function, and a zero of the shape that it takes."""
    stencil = objective.stencil(given)
    plain = stencil.homogeneous
    widths = [t.shape[-1] for t in plain.of_h if isinstance(t, Tensor) and t.ndim > 0]
    if (
        max(widths, default=given.x.shape[-1]) != given.x.shape[-1]
    ):  # asked without a signal: as wide as the metrics are
        given = replace(given, x=given.x.new_zeros(given.graph.nodes, max(widths)))
    zero = torch.zeros_like(given.x)
    constant = sum(term.gradient(zero, given) for term in rest)
    # Asked far out, where subtracting what does not depend on H costs no digits.
    far = 1e3 * (1.0 + float(torch.as_tensor(constant).abs().max()))

    def apply(u: Tensor) -> Tensor:
        bent = sum(term.gradient(u * far, given) for term in rest) - constant
        return stencil_gradient(plain, u, given) + bent / far

    return apply, zero


def _dense(apply: Callable[[Tensor], Tensor], like: Tensor) -> tuple[float, float, float]:
    """Smallest eigenvalue, its error, and the size of the largest."""
    unit = torch.eye(like.numel(), dtype=like.dtype, device=like.device)
    matrix = torch.stack([apply(row.view(like.shape)).flatten() for row in unit])
    if not bool(torch.isfinite(matrix).all()):
        raise IncompatibleError(
            "the curvature of the quadratic terms is beyond the range of numbers; scale their weights down"
        )
    value = torch.linalg.eigvalsh((matrix + matrix.mT).double() / 2)
    return float(value[0]), 0.0, float(value.abs().max())


def _lanczos(apply: Callable[[Tensor], Tensor], like: Tensor) -> tuple[float, float, float]:
    """The same by Lanczos' method."""
    start = torch.randn(like.shape, dtype=torch.float64, generator=torch.Generator().manual_seed(0)).to(like)
    run = Lanczos(lambda v: apply(v.view(like.shape)).flatten(), start.flatten())
    value, miss, largest = math.inf, math.inf, 0.0
    tiny = torch.finfo(like.dtype).eps
    for step in range(1, STEPS + 1):
        run.step()
        ended = run.beside[-1] <= tiny * max(largest, 1e-30)  # the start was made of so few modes
        if ended or step % 20 == 0:
            value, miss = run.ritz(0)
            largest = max(abs(value), abs(run.ritz(-1)[0]))
            if ended or value < -100 * tiny * largest or miss <= max(0.01 * value, 10 * tiny * largest):
                break
    return value, miss, largest
