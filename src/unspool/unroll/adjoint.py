"""How gradients flow back through an unrolled network: four answers, chosen by type."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from unspool.algorithm import Problem
from unspool.algorithm.exact import check_strictly_convex, conjugate_gradients, hessian, separable, solve, solver_step
from unspool.objective import QuadraticTerm
from unspool.ops.polynomial import Basis
from unspool.ops.solve import default_tolerance, iterations, shifted_solve
from unspool.refusal import Refusal


@dataclass(frozen=True)
class Polynomial:
    """Lower the network to one polynomial of the graph; memory for signals does not grow with depth. Linear networks only.

    What does grow is the arithmetic on the coefficients themselves: K² maps on channels, kilobytes for numbers.

    Args:
        basis: powers of A, or Chebyshev polynomials; chosen by the algorithm when omitted (momentum methods need the
            second to keep their digits).
    """

    basis: Any = None

    def __post_init__(self) -> None:
        if self.basis is not None and not isinstance(self.basis, Basis):
            raise TypeError(f"basis={self.basis!r}: expected Basis.POWERS or Basis.CHEBYSHEV")


@dataclass(frozen=True)
class Stored:
    """Keep every step for the backward pass, as ordinary backpropagation does."""


@dataclass(frozen=True)
class Checkpointed:
    """Keep every n-th iterate and recompute the steps between: memory of depth/n + n steps for one more forward pass.

    Such a network cannot be stacked under ``torch.func.vmap``.

    Args:
        every: how many steps lie between kept iterates.
    """

    every: int = 5

    def __post_init__(self) -> None:
        if self.every < 1:
            raise ValueError(f"Checkpointed(every={self.every}): at least one step lies between kept iterates")


@dataclass(frozen=True)
class Implicit:
    """Return the exact minimiser and differentiate it through its optimality condition: the true bilevel gradient.

    The forward pass solves the problem (conjugate gradients, or accelerated steps for objectives that are not smooth),
    the backward pass solves one linear system with the Hessian. Memory is that of a single step. Needs coefficients
    tied over layers and a strictly convex objective.

    Args:
        tolerance: of both solves, relative; 1e-10 in float64 and 1e-6 in float32 when omitted.
        limit: most iterations of each solve.
    """

    tolerance: float | None = None
    limit: int = 10_000


Adjoint = Polynomial | Stored | Checkpointed | Implicit


def implicit_minimiser(problem: Problem, start: Tensor, how: Implicit) -> Tensor:
    """The minimiser, attached to the coefficients and the input by the implicit function theorem."""
    quick = _scalar_minimiser(problem, how)
    if quick is not None:
        return quick
    with torch.no_grad():
        h = solve(problem, start.detach(), how.tolerance, how.limit)
    if not torch.is_grad_enabled():
        return h
    tolerance = how.tolerance or default_tolerance(h.dtype)
    if problem.objective.quadratic:
        # ∇f(H*, θ) = 0, hence dH* = −Hess⁻¹ d∇f: attach θ to the gradient, and send −Hess⁻¹ v back through it.
        def solve_hessian(v: Tensor) -> Tensor:
            start = torch.zeros_like(v)
            return -conjugate_gradients(hessian(problem, v), v, start, tolerance, how.limit, separable(problem))

        return _Attach.apply(h, problem.gradient(h), solve_hessian)
    if check_strictly_convex(problem) <= 0:
        raise Refusal(
            f"Implicit needs a strictly convex smooth part, and that of {problem.objective} is flat somewhere; "
            "add a small Ridge or use adjoint=Stored()"
        )
    # H* = T(H*, θ) with T one proximal step, hence dH* = (I − ∂T)⁻¹ d_θ T: the inverse as a Neumann series.
    step = solver_step(problem)

    def proximal_step(at: Tensor) -> Tensor:
        return problem.prox(at - problem.gradient(at) * step, step)

    leaf = h.detach().requires_grad_()
    image = proximal_step(leaf)

    def solve_fixed_point(v: Tensor) -> Tensor:
        w, goal = v, tolerance * float(torch.linalg.vector_norm(v))
        for _ in range(how.limit):
            (pulled,) = torch.autograd.grad(image, leaf, w, retain_graph=True)
            new = v + pulled
            if float(torch.linalg.vector_norm(new - w)) <= goal:
                return new
            w = new
        raise Refusal(
            f"the implicit gradient of {problem.objective} did not converge in {how.limit} iterations; raise the tolerance"
        )

    return _Attach.apply(h, proximal_step(h), solve_fixed_point)


def _scalar_minimiser(problem: Problem, how: Implicit) -> Tensor | None:
    """The minimiser of a quadratic with fixed numbers for weights: one linear solve, differentiable and stackable as it is."""
    if not problem.objective.quadratic or any(not isinstance(t, QuadraticTerm) for t in problem.objective.terms):
        return None
    stencil, graph = problem.objective.stencil(problem.given), problem.given.graph
    maps = (stencil.own, stencil.laplacian, stencil.given)
    if any(isinstance(t, Tensor) for t in maps):
        return None
    own, smooth, given = (float(t) for t in maps)
    pull = smooth * graph.scale
    p = own + pull
    if p <= abs(pull):
        return None  # not strictly convex for every graph: the general path looks closer, or says so
    if how.limit < iterations(p, pull, how.tolerance or 1e-10):
        return None  # the general path gives up in words
    operator = graph.require_laplacian()
    if not operator.symmetric:
        raise Refusal(
            "the exact minimiser is found by conjugate gradients, which need an undirected graph; build it with symmetrise=True, or unroll steps"
        )
    return shifted_solve(operator, problem.given.x * -given, p, pull, how.tolerance)


class _Attach(torch.autograd.Function):
    """``value`` on the way forward, ``solve(v)`` sent into ``carrier`` on the way back."""

    @staticmethod
    def forward(ctx: Any, value: Tensor, carrier: Tensor, solve: Callable[[Tensor], Tensor]) -> Tensor:
        ctx.solve = solve
        return value.clone()

    @staticmethod
    @torch.autograd.function.once_differentiable  # a second derivative raises instead of being wrong
    def backward(ctx: Any, *grads: Any) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        return None, ctx.solve(grads[0]), None
