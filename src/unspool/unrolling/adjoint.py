"""How gradients flow back through an unrolled network: four answers, chosen by type."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torch import Tensor

from unspool.algorithm import Problem
from unspool.algorithm.exact import minimiser
from unspool.errors import IncompatibleError, InputError
from unspool.objective import StencilTerm
from unspool.ops.polynomial import Basis
from unspool.ops.solve import iterations, shifted_solve


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
        if not isinstance(self.every, int) or self.every < 1:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ValueError(f"Checkpointed(every={self.every}): at least one step lies between kept iterates")


@dataclass(frozen=True)
class Implicit:
    """Return the exact minimiser and differentiate it through its optimality condition: the true bilevel gradient.

    The forward pass solves the problem (conjugate gradients, or accelerated steps for objectives that are not quadratic),
    the backward pass solves one linear system with the Hessian, and every further derivative some more; all orders are
    exact (where terms have kinks, away from them). Memory is that of a single step. Needs coefficients tied over layers
    and a strictly convex objective.

    Args:
        tolerance: of both solves, relative; 1e-10 in float64 and 1e-6 in float32 when omitted.
        limit: most iterations of each solve.
    """

    tolerance: float | None = None
    limit: int = 10_000

    def __post_init__(self) -> None:
        _check_effort(self.tolerance, self.limit)


@dataclass(frozen=True)
class FixedPoint:
    """Repeat the network's own rule until it stays where it is, and differentiate the point where it stays.

    Unlike :class:`Implicit`, which solves the problem by a solver of the package, this trusts the rule: dual variables, one's
    own update and what is not convex included. Steps are combined with the last few by Anderson's method, on the way forward and back, so
    a fraction of them is needed where the rule is slow. Memory is that of some dozen states; derivatives of any order are exact
    where the rule has no kinks. The depth counts for nothing. How it went is told to
    :func:`~unspool.ops.convergence.solve_reports`, or warned about if the tolerance was missed.

    Args:
        tolerance: of the state, relative; 1e-10 in float64 and 1e-6 in float32 when omitted.
        limit: most steps, forward and back.

    Example:
        >>> import torch, unspool as us
        >>> objective = us.Fidelity(0.3) + us.Smoothness(0.7)
        >>> x, graph = torch.eye(5), us.graph.ring(5)
        >>> net = us.unroll(objective, us.GradientDescent(), depth=1, adjoint=us.FixedPoint())
        >>> torch.allclose(net(x, graph), us.minimise(objective, x, graph), atol=1e-5)
        True
        >>> with us.solve_reports() as reports:
        ...     h = net(x, graph)
        >>> reports[0].method, reports[0].converged
        ('steps of GradientDescent', True)
    """

    tolerance: float | None = None
    limit: int = 10_000

    def __post_init__(self) -> None:
        _check_effort(self.tolerance, self.limit)


def _check_effort(tolerance: Any, limit: Any) -> None:
    if tolerance is not None and not 0 < tolerance < 1:
        raise InputError("tolerance", tolerance, "a number between 0 and 1")
    if isinstance(limit, bool) or not isinstance(limit, int) or limit < 1:
        raise InputError("limit", limit, "a whole number of at least 1")


Adjoint = Polynomial | Stored | Checkpointed | Implicit | FixedPoint


def implicit_minimiser(problem: Problem, start: Tensor, how: Implicit, who: str = "Implicit") -> Tensor:
    """The minimiser, attached to the coefficients and the input by the implicit function theorem."""
    quick = _scalar_minimiser(problem, how)
    return minimiser(problem, start, how.tolerance, how.limit, who) if quick is None else quick


def _scalar_minimiser(problem: Problem, how: Implicit) -> Tensor | None:
    """The minimiser of a quadratic with fixed numbers for weights: one linear solve, differentiable and stackable as it is."""
    if not problem.objective.quadratic or any(not isinstance(t, StencilTerm) for t in problem.objective.terms):
        return None
    stencil, graph = problem.objective.stencil(problem.given), problem.given.graph
    maps = (stencil.h, stencil.lh, stencil.x)
    if not stencil.plain or any(isinstance(t, Tensor) for t in maps):
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
        raise IncompatibleError(
            "the exact minimiser is found by conjugate gradients, which need an undirected graph; build it without directed=True, or unroll steps"
        )
    # Divided by p, so that weights of any size stay within the range of half precision.
    return shifted_solve(operator, problem.given.x * (-given / p), 1.0, pull / p, how.tolerance)
