"""Gradient descent."""

from __future__ import annotations

from dataclasses import dataclass

from unspool.algorithm.algorithm import Problem, State, SteppedAlgorithm


@dataclass(frozen=True, eq=False)
class GradientDescent(SteppedAlgorithm):
    r"""Plain gradient steps: :math:`H \leftarrow H - \eta \nabla f(H)`, the paper's Section 3.1.

    On α‖H−X‖² + (1−α)‖BH‖² with η = 1/2 one step is (1−α) A H + α X, a layer of APPNP.

    Args:
        step: η, a number or coefficient; 1/L of the objective when omitted.

    Example:
        >>> import unspool as us
        >>> net = us.unroll(us.Fidelity(0.1) + us.Smoothness(0.9), us.GradientDescent(step=0.5), depth=2)
        >>> net.hops(us.graph.ring(4)).numpy().round(2)
        array([0.1 , 0.09, 0.81], dtype=float32)
    """

    def update(self, state: State, problem: Problem) -> State:
        """H − η ∇f(H)."""
        (h,) = state
        return (problem.descend(h, self.step_size(problem)),)  # eq. (5)
