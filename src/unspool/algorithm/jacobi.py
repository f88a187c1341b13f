"""Steps scaled node by node."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from unspool.algorithm.algorithm import Problem, State, SteppedAlgorithm


@dataclass(frozen=True, eq=False)
class Jacobi(SteppedAlgorithm):
    r"""A gradient step that every node takes at its own pace: :math:`H \leftarrow H - \eta\,D(H)^{-1}\nabla f(H)`.

    D is the diagonal of the Hessian, or of the quadratic that touches a robust penalty at H, so nodes of high degree take
    shorter steps, and degrees are those of the edges that are left. The layers of TWIRLS and of p-Laplacian networks are such
    steps. A penalty that rises faster than the quadratic (Power above p = 2) may be overshot; a smaller η helps.

    Args:
        step: η, a number or coefficient; 1 when omitted.

    Example:
        >>> import torch, unspool as us
        >>> objective = us.Fidelity(1.0) + us.EdgePenalty(us.Log(0.5), 2.0)
        >>> net = us.unroll(objective, us.Jacobi(), depth=5)
        >>> net(torch.eye(4), us.graph.ring(4)).shape
        torch.Size([4, 4])
    """

    step: Any = 1.0

    def update(self, state: State, problem: Problem) -> State:
        """H − η ∇f(H) / D(H)."""
        (h,) = state
        return (h - problem.gradient(h) * (self.step_size(problem) / problem.diagonal(h)),)
