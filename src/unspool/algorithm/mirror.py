"""Mirror descent on probabilities."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from unspool.algorithm.algorithm import Problem, State, SteppedAlgorithm, require_tensor
from unspool.errors import IncompatibleError, InputError
from unspool.objective import Kind, Objective
from unspool.objective.simplex import Simplex


@dataclass(frozen=True, eq=False)
class MirrorDescent(SteppedAlgorithm):
    r"""Gradient steps in the geometry of probabilities: every row is multiplied, and its sum brought back to 1.

    .. math:: h_i \leftarrow \frac{h_i \exp(-\eta\,\nabla f(H)_i)}{\text{its sum}} = \operatorname{softmax}\bigl(\log h_i - \eta\,\nabla f(H)_i\bigr)

    The entropy is the mirror map (Nemirovski and Yudin 1983; Beck and Teboulle 2003). For smooth terms and one
    :class:`~unspool.objective.Simplex`, which it never leaves: no projection, and every layer ends in a softmax. Steps of at most
    1/L never raise the objective. On α KL(H‖Z) + β‖BH‖² a step is :math:`h_i^{1-\eta\alpha} z_i^{\eta\alpha} \exp(-2\eta\beta (LH)_i)`,
    normalised.

    The start must have positive rows of sum 1: an entry that is 0 would stay 0. Entries of the start below ``floor`` are raised to
    it, and rows divided by their sums, which leaves positive probabilities as they are. From a small floor the way up is long: a
    start of zeros and ones takes tens of steps to leave them. Give raw scores a softmax before the network.

    Args:
        step: η, a number or coefficient; 1/L when omitted.
        floor: least entry of the start.

    Example:
        >>> import torch, unspool as us
        >>> objective = us.Fidelity(0.5) + us.Smoothness(0.5) + us.Simplex()
        >>> net = us.unroll(objective, us.MirrorDescent(), depth=50)
        >>> x, graph = torch.tensor([[0.8, 0.2], [0.4, 0.6], [0.3, 0.7]]), us.graph.path(3)
        >>> torch.allclose(net(x, graph), us.minimise(objective, x, graph), atol=1e-4)
        True
    """

    handles = (Kind.SMOOTH, Kind.PROXIMABLE)
    floor: float = 1e-8

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.floor < 1:
            raise InputError("floor", self.floor, "a number between 0 and 1")

    def check(self, objective: Objective) -> None:
        """The objective must say that rows are probabilities, and ask for nothing else that is not smooth."""
        others = [term for term in objective.proximable_terms if not isinstance(term, Simplex)]
        if others:
            raise IncompatibleError(
                f"MirrorDescent keeps rows in the simplex and takes no proximal steps, so {others[0].name} would be left out; use ProximalGradient()"
            )
        if not objective.proximable_terms:
            raise IncompatibleError(
                f"MirrorDescent keeps rows in the simplex, and {objective} does not ask for that; add Simplex() to it"
            )

    def init(self, h: Any, problem: Problem) -> State:
        """Positive rows of sum 1."""
        require_tensor(h)
        positive = h.clamp_min(self.floor)
        return (positive / positive.sum(-1, keepdim=True),)

    def update(self, state: State, problem: Problem) -> State:
        """softmax(log h − η ∇f)."""
        (h,) = state
        logarithm = h.clamp_min(torch.finfo(h.dtype).tiny).log()
        return (torch.softmax(logarithm - self.step_size(problem) * problem.gradient(h), -1),)
