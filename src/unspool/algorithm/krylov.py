"""Conjugate gradients inside a layer: tensors only, differentiable, each signal (and channel, where it may) at its own pace."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from unspool.errors import IncompatibleError
from unspool.objective import Given, Objective, StencilTerm, channel

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


@torch.no_grad()
def short_step(objective: Objective, given: Given, damping: float = 0.0) -> Tensor:
    """A step of at most 1/L as a number; 0 where there is none.

    Where nothing is left of a residual, the length of a conjugate gradient step is 0/0, and any will do. This one lets the
    step follow the coefficients: its derivative is that of a gradient step.

    Example:
        >>> import torch, unspool as us
        >>> x, graph = torch.eye(3), us.graph.ring(3)
        >>> short_step(us.Fidelity(0.5) + us.Smoothness(0.25), us.Given(x, graph))
        tensor(0.5000)
    """
    total: channel.Map = damping
    try:
        for term in objective.smooth_terms:
            if not isinstance(term, StencilTerm):
                total = total + term.lipschitz(given)
    except IncompatibleError:  # no bound on a slope
        total = float("inf")
    total = total + channel.largest_norm(objective.stencil(given).of_h, 2.0 * given.graph.scale, channel.row_sum)
    # Trap: a number is made where it is needed; a copy from the host could not be captured on a GPU.
    bound = total.to(given.x) if isinstance(total, Tensor) else given.x.new_full((), total)
    fine = (bound > 0) & (bound < float("inf"))
    return torch.where(fine, 1 / torch.where(fine, bound, torch.ones_like(bound)), torch.zeros_like(bound))


def step_length(top: Tensor, bottom: Tensor, squared: Tensor, first: Tensor, short: Tensor) -> Tensor:
    """top / bottom; 0 where the residual is rounding of the first one, and the short step where nothing is left of it at all."""
    length = safe_ratio(top, bottom)
    length = torch.where(negligible(squared, first), torch.zeros_like(length), length)
    return torch.where(squared > 0, length, short.expand_as(length))


def solve_roughly(
    apply: Callable[[Tensor], Tensor], right: Tensor, iterations: int, alone: bool, short: Tensor
) -> Tensor:
    """Some conjugate gradient iterations on apply(D) = right, from D = 0.

    A signal whose residual is nothing but rounding stays where it is, and so does one that meets a direction without
    positive curvature. One whose residual is 0 takes short steps, of which only the derivative is not 0.

    Example:
        >>> import torch
        >>> solve_roughly(lambda d: 4 * d, torch.ones(2, 1), 3, alone=True, short=torch.tensor(0.25)).flatten()
        tensor([0.2500, 0.2500])
    """
    found, residual, direction = torch.zeros_like(right), right, right
    first = squared = inner_product(right, right, alone)
    for _ in range(iterations):
        image = apply(direction)
        step = step_length(squared, inner_product(direction, image, alone), squared, first, short)
        found, residual = found + step * direction, residual - step * image
        fresh = inner_product(residual, residual, alone)
        direction, squared = residual + safe_ratio(fresh, squared) * direction, fresh
    return found
