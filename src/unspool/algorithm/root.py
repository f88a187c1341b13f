r"""The solution of an equation as a differentiable function of what the equation depends on, to any order.

Where :math:`G(h, \theta) = 0`, the implicit function theorem says :math:`dh = -J^{-1}\,\partial_\theta G\,d\theta` with
:math:`J = \partial_h G`. A gradient v of h is therefore sent to θ as :math:`-w^\top \partial_\theta G` with
:math:`J^\top w = v`. That w is itself the solution of an equation, a linear one, in (v, h, θ): attached in the same way it
makes the second derivative right, and so on.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

#: A linear map on signals.
Linear = Callable[[Tensor], Tensor]


class Equation(ABC):
    """G(h, θ) = 0 with an invertible Jacobian J = ∂G/∂h at the solution."""

    @abstractmethod
    def residual(self, h: Tensor, theta: tuple[Tensor, ...]) -> Tensor:
        """G(h, θ), differentiable in both."""

    @abstractmethod
    def jacobian(self, h: Tensor, theta: tuple[Tensor, ...], transposed: bool) -> Linear:
        """J or Jᵀ at a point, differentiable in the point too."""

    @abstractmethod
    def solve(self, apply: Linear, v: Tensor) -> Tensor:
        """The solution w of apply(w) = v, where apply is J or Jᵀ; numbers only, no derivatives."""

    def adjoint(self, v: Tensor, h: Tensor, theta: tuple[Tensor, ...]) -> tuple[Equation, tuple[Tensor, ...]]:
        """The equation of w in Jᵀ w = v, and what it depends on."""
        return _LinearSystem(self, True), (v, h, *theta)


@dataclass(frozen=True, eq=False)
class _LinearSystem(Equation):
    """J w = v, or Jᵀ w = v, at the solution of another equation; depends on (v, h, θ)."""

    of: Equation
    transposed: bool

    def residual(self, h: Tensor, theta: tuple[Tensor, ...]) -> Tensor:
        v, at, *rest = theta
        return self.of.jacobian(at, tuple(rest), self.transposed)(h) - v

    def jacobian(self, h: Tensor, theta: tuple[Tensor, ...], transposed: bool) -> Linear:
        _, at, *rest = theta
        return self.of.jacobian(at, tuple(rest), self.transposed != transposed)

    def solve(self, apply: Linear, v: Tensor) -> Tensor:
        return self.of.solve(apply, v)

    def adjoint(self, v: Tensor, h: Tensor, theta: tuple[Tensor, ...]) -> tuple[Equation, tuple[Tensor, ...]]:
        return _LinearSystem(self.of, not self.transposed), (v, *theta[1:])


def attach(equation: Equation, h: Tensor, theta: tuple[Tensor, ...]) -> Tensor:
    """The solution h as a function of θ, differentiable to any order.

    Args:
        equation: G.
        h: its solution at θ, as numbers.
        theta: tensors that G depends on; gradients flow to those that ask for them.

    Example:
        >>> class Root(Equation):
        ...     def residual(self, h, theta):
        ...         return h * h - theta[0]
        ...     def jacobian(self, h, theta, transposed):
        ...         return lambda w: 2 * h * w
        ...     def solve(self, apply, v):
        ...         return v / apply(torch.ones_like(v))
        >>> square = torch.tensor(4.0, requires_grad=True)
        >>> root = attach(Root(), torch.tensor(2.0), (square,))
        >>> (slope,) = torch.autograd.grad(root, square, create_graph=True)
        >>> (bend,) = torch.autograd.grad(slope, square)
        >>> slope.item(), bend.item()
        (0.25, -0.03125)
    """
    return _Attached.apply(equation, h.detach(), *theta)


class _Attached(torch.autograd.Function):
    """h on the way forward; on the way back another attached solution, when derivatives of derivatives are asked for."""

    @staticmethod
    def forward(ctx: Any, equation: Equation, h: Tensor, *theta: Tensor) -> Tensor:
        ctx.equation = equation
        out = h.clone()
        ctx.save_for_backward(out, *theta)
        return out

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        h, *given = ctx.saved_tensors
        theta, equation, again = tuple(given), ctx.equation, torch.is_grad_enabled()
        linear, depends = equation.adjoint(grads[0], h, theta)
        with torch.no_grad():
            apply = equation.jacobian(h.detach(), tuple(t.detach() for t in theta), True)
            w = equation.solve(apply, grads[0])
        if again:
            w = attach(linear, w, depends)
        with torch.enable_grad():
            # Trap: h depends on θ through this very function. Aliases of θ ask for the partial derivative at a fixed h,
            # which still knows how it changes with h.
            alias = tuple(_alias(t, again) for t in theta)
            residual = equation.residual(h if again else h.detach(), alias)
            wanted = [a for a in alias if a.requires_grad]
            if not residual.requires_grad:
                return (None,) * (2 + len(theta))
            found = iter(torch.autograd.grad(residual, wanted, -w, create_graph=again, allow_unused=True))
        return None, None, *(next(found) if a.requires_grad else None for a in alias)


def _alias(t: Tensor, attached: bool) -> Tensor:
    if not attached:
        return t.detach().requires_grad_(t.requires_grad)
    return t.view_as(t) if t.requires_grad else t


def pulled_back(function: Linear, at: Tensor) -> Linear:
    """w ↦ (∂function/∂at)ᵀ w, differentiable in w and in ``at``; the function is called once."""
    alias, image = _image(function, at)

    def apply(w: Tensor) -> Tensor:
        again = torch.is_grad_enabled()
        with torch.enable_grad():
            return torch.autograd.grad(image, alias, w, create_graph=again, retain_graph=True)[0]

    return apply


def pushed_forward(function: Linear, at: Tensor) -> Linear:
    """w ↦ (∂function/∂at) w: the pull-back is linear, so its own pull-back is what it was made from."""
    alias, image = _image(function, at)
    with torch.enable_grad():
        dummy = torch.zeros_like(image).requires_grad_()
        (pulled,) = torch.autograd.grad(image, alias, dummy, create_graph=True)

    def apply(w: Tensor) -> Tensor:
        again = torch.is_grad_enabled()
        with torch.enable_grad():
            return torch.autograd.grad(pulled, dummy, w, create_graph=again, retain_graph=True)[0]

    return apply


def _image(function: Linear, at: Tensor) -> tuple[Tensor, Tensor]:
    with torch.enable_grad():
        alias = at.view_as(at) if at.requires_grad else at.detach().requires_grad_()
        return alias, function(alias)
