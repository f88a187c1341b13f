"""Conjugate gradients inside a layer: tensors only, differentiable, each signal (and channel, where it may) at its own pace."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from unspool.errors import IncompatibleError
from unspool.objective import Given, Objective, channel

#: A residual of so many roundings of the first one is nothing, and its direction is noise.
_ROUNDING = 10.0


def stands_in(objective: Objective, given: Given) -> bool:
    """Whether an objective looks at an L that stands in for BᵀB and is not symmetric: it has steps, and no Hessian."""
    smoother = given.graph.smoother
    if smoother is None or smoother.symmetric:
        return False
    return any(not channel.is_zero(t) for t in objective.stencil(given).of_h[1:])


def require_symmetric_graph(name: str, objective: Objective, given: Given) -> None:
    """Refuse such an L, in the name of a rule that takes conjugate gradient steps."""
    if stands_in(objective, given):
        raise IncompatibleError(
            f"{name} takes conjugate gradient steps, which need an undirected graph; build it without directed=True, or use GradientDescent()"
        )


def inner_product(a: Tensor, b: Tensor, alone: bool) -> Tensor:
    """⟨a, b⟩ per signal, or per channel of each signal; kept broadcastable."""
    return (a * b).sum((-2,) if alone else (-2, -1), keepdim=True)


def safe_ratio(top: Tensor, bottom: Tensor) -> Tensor:
    """top / bottom where bottom is positive, else 0 with a gradient of 0."""
    fine = bottom > 0
    return torch.where(fine, top / torch.where(fine, bottom, torch.ones_like(bottom)), torch.zeros_like(top))


def negligible(squared: Tensor, first: Tensor) -> Tensor:
    """Whether a squared residual is rounding of the first one."""
    return squared <= (_ROUNDING * torch.finfo(squared.dtype).eps) ** 2 * first


def solve_roughly(apply: Callable[[Tensor], Tensor], right: Tensor, iterations: int, alone: bool) -> Tensor:
    """Some conjugate gradient iterations on apply(D) = right, from D = 0.

    A signal whose residual is nothing but rounding stays where it is, and so does one that meets a direction without
    positive curvature.

    Example:
        >>> import torch
        >>> solve_roughly(lambda d: 4 * d, torch.ones(2, 1), 3, alone=True).flatten()
        tensor([0.2500, 0.2500])
    """
    found, residual, direction = torch.zeros_like(right), right, right
    first = squared = inner_product(right, right, alone)
    for _ in range(iterations):
        image = apply(direction)
        step = safe_ratio(squared, inner_product(direction, image, alone))
        step = torch.where(negligible(squared, first), torch.zeros_like(step), step)
        found, residual = found + step * direction, residual - step * image
        fresh = inner_product(residual, residual, alone)
        direction, squared = residual + safe_ratio(fresh, squared) * direction, fresh
    return found
