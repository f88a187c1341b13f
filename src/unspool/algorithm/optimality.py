"""The conditions under which H is the minimiser of a problem, as equations that can be differentiated."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from unspool.algorithm.algorithm import Problem
from unspool.algorithm.root import Equation, Linear, pulled_back, pushed_forward
from unspool.errors import IncompatibleError
from unspool.objective import CompositeTerm, EdgeSmoothness, ProximableTerm, SmoothTerm, StencilTerm, Term
from unspool.objective.belongings import depends_on_strangers
from unspool.objective.channel import Map, is_zero, rank
from unspool.objective.coefficient import Leaf
from unspool.objective.term import stencil_gradient

#: Solves apply(w) = v; chosen by whoever knows tolerance and limit.
Solver = Callable[[Linear, Tensor], Tensor]


def hessian(problem: Problem, like: Tensor) -> Linear:
    """The Hessian of a quadratic problem as a function, differentiable in the coefficients.

    Stencils are applied without their part in X. Other quadratic terms only have a gradient, from which the constant must be
    subtracted; they are asked far out, where it costs no digits of small vectors (the gradients of a mean loss, say).
    """
    stencil = problem.objective.stencil(problem.given)
    bare = stencil.homogeneous
    others = [t for t in problem.objective.smooth_terms if not isinstance(t, StencilTerm)]
    if not others:
        return lambda u: stencil_gradient(bare, u, problem.given)
    zero = torch.zeros_like(like)
    constant = [term.gradient(zero, problem.given) for term in others]
    far = 1e3 * (1.0 + max(float(c.detach().abs().amax()) for c in (problem.given.x, *constant)))

    def apply(u: Tensor) -> Tensor:
        total = stencil_gradient(bare, u, problem.given)
        longest = float(u.detach().abs().amax())
        if not math.isfinite(ratio := far / longest if longest > 0 else 1.0):
            names = " and ".join(term.formula() for term in others)
            raise IncompatibleError(f"the gradient of {names} is beyond the range of numbers; scale its weight down")
        size = 2.0 ** round(math.log2(ratio))
        for term, at_zero in zip(others, constant, strict=True):
            total = total + (term.gradient(u * size, problem.given) - at_zero) / size
        return total

    return apply


def separable(problem: Problem) -> bool:
    """Whether the Hessian is known to leave every channel alone, so that channels converge each at its own pace."""
    if not all(isinstance(t, StencilTerm | EdgeSmoothness) for t in problem.objective.smooth_terms):
        return False
    stencil = problem.objective.stencil(problem.given)
    return max(rank(t) for t in stencil.of_h) < 2


def solver_step(problem: Problem) -> Map:
    """1/L, or the network's own step where a term stands for φ/η and is another term at any other step."""
    own = problem.given.step
    if own is not None and any(getattr(t, "per_step", False) for t in problem.objective.terms):
        return own
    lipschitz = problem.lipschitz()
    if is_zero(lipschitz):
        raise IncompatibleError(
            f"the smooth part of {problem.objective} is flat, so there is no step 1/L; add a smooth term, such as a small Ridge"
        )
    return 1 / (lipschitz.amax() if isinstance(lipschitz, Tensor) else lipschitz)


@dataclass(frozen=True, eq=False)
class Dependences:
    """What the minimiser of a problem depends on: input, raw parameters and step, as far as they ask for gradients."""

    problem: Problem

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        """The tensors, in a fixed order."""
        return tuple(t for t in self._all() if t.requires_grad)

    @property
    def learnt(self) -> tuple[Leaf | None, ...]:
        """The coefficients that the tensors belong to, in their order; None for input and step."""
        return tuple(leaf for leaf, t in zip((None, None, *self._leaves), self._all(), strict=True) if t.requires_grad)

    def filled(self, theta: tuple[Tensor, ...]) -> Problem:
        """The same problem with other tensors in their place."""
        rest = iter(theta)
        x, step, *raw = [next(rest) if t.requires_grad else t for t in self._all()]
        given = self.problem.given
        values = dict(zip(self._leaves, raw, strict=True)) if self._leaves else given.values
        here = replace(given, x=x, values=values, step=step if isinstance(given.step, Tensor) else given.step)
        return replace(self.problem, given=here)

    def detached(self) -> Problem:
        """The same problem as numbers."""
        return self.filled(tuple(t.detach() for t in self.tensors))

    @property
    def _leaves(self) -> tuple[Leaf, ...]:
        return () if self.problem.given.values is None else self.problem.objective.leaves

    def _all(self) -> list[Tensor]:
        given = self.problem.given
        step = given.step if isinstance(given.step, Tensor) else torch.empty(0)
        raw = [] if given.values is None else [given.values[leaf] for leaf in self._leaves]
        return [given.x, step, *raw]


@dataclass(frozen=True, eq=False)
class Stationary(Equation):
    """∇f(H, θ) = 0: smooth problems. The Jacobian is the Hessian, its own transpose."""

    on: Dependences
    solver: Solver

    def residual(self, h: Tensor, theta: tuple[Tensor, ...]) -> Tensor:
        """The gradient."""
        return self.on.filled(theta).gradient(h)

    def jacobian(self, h: Tensor, theta: tuple[Tensor, ...], transposed: bool) -> Linear:
        """The Hessian: from the terms where it is the same everywhere, by autograd otherwise."""
        problem = self.on.filled(theta)
        return hessian(problem, h) if problem.objective.quadratic else pulled_back(problem.gradient, h)

    def solve(self, apply: Linear, v: Tensor) -> Tensor:
        """Conjugate gradients."""
        return self.solver(apply, v)


@dataclass(frozen=True, eq=False)
class ProximalFixedPoint(Equation):
    """H = T(H, θ) with T one proximal gradient step: problems with terms that are not smooth, away from their kinks."""

    on: Dependences
    solver: Solver
    step: Map | None  # None: the problem's own, one of the things that it depends on

    def residual(self, h: Tensor, theta: tuple[Tensor, ...]) -> Tensor:
        """H − T(H)."""
        problem = self.on.filled(theta)
        step = solver_step(problem) if self.step is None else self.step
        return h - problem.prox(h - problem.gradient(h) * step, step)

    def jacobian(self, h: Tensor, theta: tuple[Tensor, ...], transposed: bool) -> Linear:
        """I − ∂T, which is not symmetric."""
        return (pulled_back if transposed else pushed_forward)(lambda at: self.residual(at, theta), h)

    def solve(self, apply: Linear, v: Tensor) -> Tensor:
        """A Neumann series: ∂T is a contraction where the smooth part is strictly convex."""
        return self.solver(apply, v)


def check_differentiable(problem: Problem, h: Tensor) -> None:
    """Refuse a term that depends on tensors which the equations do not know, or hides from autograd how it depends on H.

    Args:
        problem: as numbers: nothing that the equations know asks for gradients.
        h: where it is looked at.
    """
    for term in problem.objective.terms:
        with torch.enable_grad():
            strange = depends_on_strangers(lambda term=term: _parts(term, problem, h))
        if strange:
            raise IncompatibleError(
                f"{term.name} depends on a tensor that requires gradients and is not one of its coefficients, so the derivative "
                "of the minimiser would miss it; make it a Learnable coefficient, or detach it"
            )
        if not isinstance(term, StencilTerm) and not _seen(term, problem, h):
            what = "gradient" if isinstance(term, SmoothTerm) else "proximal operator"
            raise IncompatibleError(
                f"autograd cannot see how the {what} of {term.name} depends on H (a detach, a no_grad, or a grad without "
                "create_graph=True inside), so the derivative of the minimiser would be wrong; write it with torch operations"
            )


def check_reached(equation: Equation, on: Dependences, h: Tensor) -> None:
    """Refuse a learnt coefficient that the equation does not depend on as far as autograd can see: it would never train."""
    with torch.enable_grad():
        theta = tuple(t.detach().requires_grad_() for t in on.tensors)
        residual = equation.residual(h, theta)
        if residual.requires_grad:
            reached = torch.autograd.grad(residual.sum(), theta, allow_unused=True)
        else:
            reached = (None,) * len(theta)
    for leaf, slope in zip(on.learnt, reached, strict=True):
        if leaf is not None and slope is None:
            owner = next(t.name for t in on.problem.objective.terms if leaf in t.leaves)
            raise IncompatibleError(
                f"autograd cannot see how {owner} depends on its coefficient {leaf} (a detach, a no_grad or a float() inside), so it "
                "would never train; write it with torch operations, or make the coefficient Fixed"
            )


def _parts(term: Term, problem: Problem, h: Tensor) -> list[Map]:
    if isinstance(term, StencilTerm):
        stencil = term.stencil(problem.given)
        return list(stencil.maps)
    if isinstance(term, SmoothTerm):
        return [term.gradient(h, problem.given)]
    if isinstance(term, CompositeTerm):
        return [term.dual_prox(term.operator(h, problem.given.graph), 1.0, problem.given)]
    return [term.prox(h, float(solver_step(problem)), problem.given)] if isinstance(term, ProximableTerm) else []


def _seen(term: Term, problem: Problem, h: Tensor) -> bool:
    """Whether autograd sees the derivative in H; for gradients against a finite difference, where half missing is no rounding."""
    with torch.enable_grad():
        leaf = h.detach().requires_grad_()
        (image,) = _parts(term, problem, leaf)
        assert isinstance(image, Tensor)
    if not isinstance(term, SmoothTerm):
        return image.requires_grad  # a finite difference of a proximal operator would stumble over its kinks
    eps = torch.finfo(h.dtype).eps
    size = eps ** (1 / 3) * (float(h.abs().amax()) + float(problem.given.x.abs().amax()) + 1e-30)
    along = torch.cos(torch.arange(h.numel(), dtype=h.dtype, device=h.device)).view(h.shape)
    with torch.no_grad():
        # A gradient that is made by autograd inside asks for gradients itself.
        ahead, behind = (term.gradient(h + s * along, problem.given).detach() for s in (size, -size))
    wanted = (ahead - behind) / (2 * size)
    seen = torch.autograd.grad(image, leaf, along, allow_unused=True)[0] if image.requires_grad else None
    gap = float(torch.linalg.vector_norm(wanted if seen is None else wanted - seen))
    noise = 100 * eps * float(torch.linalg.vector_norm(ahead)) / size
    return gap <= 0.5 * float(torch.linalg.vector_norm(wanted)) + noise
