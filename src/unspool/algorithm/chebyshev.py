"""Chebyshev semi-iteration: the best fixed polynomial for a quadratic objective with known curvature bounds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from unspool.algorithm.algorithm import Algorithm, Problem, State, require_quadratic, times
from unspool.errors import IncompatibleError
from unspool.graph import ring
from unspool.objective import Given, Objective
from unspool.objective.channel import Map
from unspool.objective.term import StencilTerm


@dataclass(frozen=True, eq=False)
class Chebyshev(Algorithm):
    r"""Chebyshev semi-iteration (Golub and Varga 1961) for strictly convex quadratic objectives.

    With curvature in [μ, L], c = (L + μ)/2 and d = (L − μ)/2,

    .. math:: H^{(k)} = H^{(k-2)} + \omega_k\,(H^{(k-1)} - \nabla f(H^{(k-1)})/c - H^{(k-2)}),\qquad \omega_k = \frac{1}{1 - (d/2c)^2 \omega_{k-1}}

    (ω₁ = 1, ω₂ = 1/(1 − d²/2c²)). After K steps the error is as small as any K-step method can guarantee without looking at
    the data, about twice ((√κ−1)/(√κ+1))ᴷ with κ = L/μ. It has no step size to choose.

    Example:
        >>> import torch, unspool as us
        >>> objective = us.Fidelity(0.1) + us.Smoothness(0.9)
        >>> trace = us.unroll(objective, us.Chebyshev(), depth=40).trace(torch.eye(9), us.graph.ring(9))
        >>> trace.distance[-1] < 1e-4
        True
    """

    def check(self, objective: Objective) -> None:
        """Every term must be quadratic with a stencil."""
        require_quadratic(self, objective)
        for term in objective.terms:
            if not isinstance(term, StencilTerm):
                raise IncompatibleError(
                    f"Chebyshev needs bounds on the curvature, which {term.name} does not give; use Accelerated()"
                )
        probe = ring(3).to(torch.float64)
        _require_curved(objective, objective.curvature(Given(probe.degree, probe))[0])

    def init(self, h: Any, problem: Problem) -> State:
        """Two iterates and ω."""
        return (h, h, 0.0)

    def update(self, state: State, problem: Problem) -> State:
        """One step of the three-term recurrence."""
        h, before, omega = state
        low, high = problem.curvature()
        if not isinstance(low, Tensor):
            _require_curved(problem.objective, low)
        centre, half = (high + low) / 2, (high - low) / 2
        ratio = (half / centre) * (half / centre)
        if problem.layer == 1:
            omega = 1.0
        elif problem.layer == 2:
            omega = 1 / (1 - ratio / 2)
        else:
            omega = 1 / (1 - ratio * omega / 4)
        ahead = h - times(problem.gradient(h), 1 / centre)
        return (before + times(ahead - before, omega), h, omega)


def _require_curved(objective: Objective, low: Map) -> None:
    if float(low) <= 0:
        raise IncompatibleError(
            f"Chebyshev needs a strictly convex objective, but the curvature of {objective} falls to {float(low):.3g}; "
            "use GradientDescent()"
        )
