"""Primal-dual steps for penalties on differences across edges and other linear images of H."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from unspool.algorithm.algorithm import Problem, State, SteppedAlgorithm, times
from unspool.errors import InputError
from unspool.objective import Kind
from unspool.objective.channel import Map


@dataclass(frozen=True, eq=False)
class PrimalDual(SteppedAlgorithm):
    r"""Minimise f(H) + r(H) + Σ gᵢ(Kᵢ H): one gradient step, one proximal step of r, one dual step for each composite term.

    The primal-dual three-operator splitting PD3O (Yan, 2018), with a dual variable Zᵢ of the shape of Kᵢ H:

    .. math:: Y = 2H - V - \eta\nabla f(H),\quad Z_i \leftarrow \operatorname{prox}_{\sigma_i g_i^*}\bigl(Z_i + \sigma_i K_i(Y - \eta\textstyle\sum_j K_j^\top Z_j)\bigr),
        \quad V \leftarrow H - \eta\nabla f(H) - \eta\textstyle\sum_i K_i^\top Z_i,\quad H \leftarrow \operatorname{prox}_{\eta r}(V)

    Without r it is the predictor-corrector of ElasticGNN (PAPC). The dual steps are
    :math:`\sigma_i = \text{balance} / (m\,\eta\lVert K_i\rVert^2)` for m composite terms, which converges for η < 2/L and balance ≤ 1.

    Args:
        step: η, a number or coefficient; 1/L of the smooth part when omitted.
        balance: share of the largest dual step that is taken, above 0 and at most 1.

    Example:
        >>> import torch, unspool as us
        >>> objective = us.Fidelity(0.5) + us.Smoothness(0.5) + us.EdgeSparse(0.3)
        >>> net = us.unroll(objective, us.PrimalDual(), depth=400)
        >>> x, graph = torch.eye(6), us.graph.ring(6)
        >>> torch.allclose(net(x, graph), us.minimise(objective, x, graph), atol=1e-4)
        True
    """

    handles = (Kind.SMOOTH, Kind.PROXIMABLE, Kind.COMPOSITE)
    keeps_duals = True
    balance: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.balance <= 1:
            raise InputError("balance", self.balance, "a number above 0 and at most 1")

    def init(self, h: Any, problem: Problem) -> State:
        """The iterate, the point before its proximal step, Σ Kᵀ Z, and a dual variable of zeros for each composite term."""
        graph = problem.given.graph
        zero = (h.detach() if isinstance(h, Tensor) else h) * 0.0
        return (h, h, zero, *(term.operator(zero, graph) for term in problem.composite_terms))

    def update(self, state: State, problem: Problem) -> State:
        """One step of PD3O."""
        h, v, pull, *duals = state
        step = self.step_size(problem)
        down = problem.descend(h, step)
        ahead = _less(down, pull, step)
        if problem.objective.proximable_terms:
            ahead = ahead + (h - v)
        moved: list[Any] = []
        if not duals:
            pull = down * 0.0  # not the old one, which would stay
        for place, (z, term) in enumerate(zip(duals, problem.composite_terms, strict=True)):
            dual, back = term.dual_step(z, self.dual_step(step, problem, term), ahead, problem.given)
            moved.append(dual)
            pull = back if place == 0 else pull + back
        v = _less(down, pull, step)
        return (problem.prox(v, step), v, pull, *moved)

    def dual_step(self, step: Map, problem: Problem, term: Any) -> Map:
        """σ of one composite term."""
        bound = len(problem.composite_terms) * term.operator.squared_norm(problem.given.graph)
        return self.balance / (step * bound)


def _less(h: Any, pull: Any, step: Map) -> Any:
    """h − step · pull, in one pass where the step is a plain number."""
    if isinstance(h, Tensor) and isinstance(pull, Tensor) and isinstance(step, float):
        return torch.add(h, pull, alpha=-step)
    return h - times(pull, step)
