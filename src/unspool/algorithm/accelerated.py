"""Nesterov's accelerated gradient, with a proximal step where there is one (FISTA)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from unspool.algorithm.algorithm import Problem, State, SteppedAlgorithm, times
from unspool.objective import Kind
from unspool.objective.coefficient import as_coefficient


@dataclass(frozen=True, eq=False)
class Accelerated(SteppedAlgorithm):
    r"""A proximal gradient step from a point beyond the last one (Nesterov 1983; Beck and Teboulle 2009).

    .. math:: Y = H^{(k-1)} + m_k\,(H^{(k-1)} - H^{(k-2)}),\qquad H^{(k)} = \operatorname{prox}_{\eta g}(Y - \eta \nabla f(Y))

    Reaches accuracy 1/K² instead of 1/K. The objective may rise on the way.

    Args:
        step: η, a number or coefficient; 1/L when omitted.
        momentum: m, a number or coefficient; (k − 1)/(k + 2) when omitted.

    Example:
        >>> import torch, unspool as us
        >>> objective = us.Fidelity(0.02) + us.Smoothness(0.98)
        >>> x, graph = torch.eye(12), us.graph.ring(12)
        >>> plain, fast = (us.unroll(objective, a, depth=30).trace(x, graph) for a in (us.GradientDescent(), us.Accelerated()))
        >>> fast.distance[-1] < plain.distance[-1]
        True
    """

    handles = (Kind.SMOOTH, Kind.PROXIMABLE)
    momentum: Any = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.momentum is not None:
            object.__setattr__(self, "momentum", as_coefficient(self.momentum))

    def init(self, h: Any, problem: Problem) -> State:
        """Two equal iterates."""
        return (h, h)

    def update(self, state: State, problem: Problem) -> State:
        """The proximal gradient step at Y."""
        h, before = state
        k = problem.layer
        m = (k - 1) / (k + 2) if self.momentum is None else problem[self.momentum]
        y = h + times(h - before, m)
        step = self.step_size(problem)
        return (problem.prox(y - times(problem.gradient(y), step), step), h)
