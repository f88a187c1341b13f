"""Proximal gradient descent."""

from __future__ import annotations

from dataclasses import dataclass

from unspool.algorithm.algorithm import Problem, State, SteppedAlgorithm
from unspool.objective import Kind


@dataclass(frozen=True, eq=False)
class ProximalGradient(SteppedAlgorithm):
    r"""A gradient step on the smooth terms, then the proximal operator of the rest, the paper's Section 3.2.

    .. math:: H \leftarrow \operatorname{prox}_{\eta g}\bigl(H - \eta \nabla f(H)\bigr)

    With a non-negativity constraint the layer ends in a ReLU, with ‖H − X‖₂,₁ in AirGNN's adaptive residual.

    Args:
        step: η, a number or coefficient; 1/L of the smooth part when omitted.

    Example:
        >>> import torch, unspool as us
        >>> net = us.unroll(us.Smoothness(0.6) + us.RowSparseFidelity(0.4), us.ProximalGradient(), depth=3)
        >>> net(torch.eye(4), us.graph.ring(4)).shape
        torch.Size([4, 4])
    """

    handles = (Kind.SMOOTH, Kind.PROXIMABLE)

    def update(self, state: State, problem: Problem) -> State:
        """prox(H − η ∇f(H), η)."""
        (h,) = state
        step = self.step_size(problem)
        return (problem.prox(problem.descend(h, step), step),)  # eq. (9)
