"""Conjugate gradients as layers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from unspool.algorithm.algorithm import Algorithm, Problem, State, require_quadratic, require_tensor
from unspool.algorithm.krylov import inner_product, require_symmetric_graph, safe_ratio, short_step, step_length
from unspool.algorithm.optimality import separable
from unspool.objective import Objective, require_symmetric


@dataclass(frozen=True, eq=False)
class ConjugateGradient(Algorithm):
    r"""Conjugate gradient steps (Hestenes and Stiefel 1952; the turn is that of Fletcher and Reeves 1964) for quadratic objectives.

    With the residual :math:`R = -\nabla f(H)` and the Hessian Q,

    .. math:: D \leftarrow R + \frac{\lVert R\rVert^2}{\lVert R_{\text{before}}\rVert^2} D,\qquad H \leftarrow H + \frac{\langle R, D\rangle}{\langle D, Q D\rangle} D

    After K steps H is the best point of the Krylov space, better than any polynomial of degree K chosen beforehand; n steps
    reach the minimiser. Step lengths are computed from the iterates, for every signal, and for every channel where the
    objective treats channels alone, so the network is not linear in X and runs step by step. A signal whose residual has
    fallen to rounding stays where it is, with gradients that are finite.

    Where the residual is 0 (a weight that starts at 0, H⁽⁰⁾ = X), the direction of the next step hangs on which coefficient moves
    and by which sign, so there is no derivative. The gradient is then that of gradient steps of about 1/L: K layers give
    :math:`\sum_{k<K} (I - \eta Q)^k \eta\, dR`, which tends to the derivative :math:`Q^{-1} dR` of the minimiser as K grows.

    Example:
        >>> import torch, unspool as us
        >>> objective = us.Fidelity(0.1) + us.Smoothness(0.9)
        >>> trace = us.unroll(objective, us.ConjugateGradient(), depth=5).trace(torch.eye(9), us.graph.ring(9))
        >>> trace.distance[-1] < 1e-5
        True
    """

    def check(self, objective: Objective) -> None:
        """Every term must be quadratic, with a symmetric Hessian."""
        require_quadratic(self, objective)
        for term in objective.smooth_terms:
            require_symmetric(term)

    def init(self, h: Any, problem: Problem) -> State:
        """The iterate, no direction yet, and the squared residuals: the last, and the first."""
        require_tensor(h)
        require_symmetric_graph(self.name, problem.objective, problem.given)
        none = torch.zeros_like(inner_product(h, h, separable(problem)))
        return (h, torch.zeros_like(h), none, none)

    def update(self, state: State, problem: Problem) -> State:
        """One step along the turned direction, as far as the objective falls."""
        h, direction, before, first = state
        alone = separable(problem)
        # The residual is not updated but computed: coefficients may be others in this layer.
        residual = -problem.gradient(h)
        squared = inner_product(residual, residual, alone)
        first = torch.where(first > 0, first, squared)
        direction = residual + safe_ratio(squared, before) * direction
        bend = inner_product(direction, problem.hessian_times(h, direction), alone)
        short = short_step(problem.objective, problem.given)
        length = step_length(inner_product(residual, direction, alone), bend, squared, first, short)
        return (h + length * direction, direction, squared, first)
