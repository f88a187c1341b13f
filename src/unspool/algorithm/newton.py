"""Newton's method with Hessian products."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torch import Tensor

from unspool.algorithm.algorithm import Problem, State, SteppedAlgorithm, require_count, require_tensor
from unspool.algorithm.krylov import require_symmetric_graph, short_step, solve_roughly
from unspool.algorithm.optimality import separable
from unspool.errors import InputError
from unspool.objective import Objective, require_symmetric


@dataclass(frozen=True, eq=False)
class Newton(SteppedAlgorithm):
    r"""Inexact Newton steps (Dembo, Eisenstat and Steihaug 1982) for smooth convex objectives.

    .. math:: H \leftarrow H + \eta D,\qquad (\nabla^2 f(H) + \mu I)\,D \approx -\nabla f(H)

    D comes from a few conjugate gradient iterations on products with the Hessian, which is never written out. Near the
    minimiser the error is squared in every layer, as far as the iterations solve the system. Far from it a full step may lead
    uphill; a step below 1 or some damping helps. Where a direction has no positive curvature the iterations go no further.

    Where the gradient is 0, an iteration has the derivative of a gradient step of about 1/L, as in
    :class:`~unspool.algorithm.ConjugateGradient`, and none where a penalty has no L.

    Args:
        step: η, a number or coefficient; 1 when omitted.
        iterations: of conjugate gradients in each layer.
        damping: μ, at least 0.

    Example:
        >>> import torch, unspool as us
        >>> objective = us.Fidelity(0.5) + us.EdgePenalty(us.Power(1.5, smoothing=0.3), 0.5)
        >>> trace = us.unroll(objective, us.Newton(iterations=20), depth=6).trace(torch.eye(6), us.graph.ring(6))
        >>> trace.distance[-1] < 1e-4
        True
    """

    step: Any = 1.0
    iterations: int = 10
    damping: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        require_count("iterations", self.iterations)
        if not 0 <= self.damping < float("inf"):
            raise InputError("damping", self.damping, "a number of at least 0")

    def check(self, objective: Objective) -> None:
        """The Hessian must be symmetric."""
        for term in objective.smooth_terms:
            require_symmetric(term)

    def init(self, h: Any, problem: Problem) -> State:
        """The iterate."""
        require_symmetric_graph(self.name, problem.objective, problem.given)
        return (h,)

    def update(self, state: State, problem: Problem) -> State:
        """H + η D."""
        (h,) = state
        require_tensor(h)

        def curved(d: Tensor) -> Tensor:
            return problem.hessian_times(h, d) + self.damping * d

        # One recurrence for every channel only where the Hessian is known to leave them alone.
        alone = problem.objective.quadratic and separable(problem)
        short = short_step(problem.objective, problem.given, self.damping)
        found = solve_roughly(curved, -problem.gradient(h), self.iterations, alone, short)
        return (h + found * self.step_size(problem),)
