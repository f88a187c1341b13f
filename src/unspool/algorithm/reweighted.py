"""Majorise-minimise: robust penalties are replaced by the quadratics that touch them, layer by layer."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch

from unspool.algorithm.algorithm import Algorithm, Problem, State, check_fit, handled_kinds, require_count
from unspool.errors import IncompatibleError, InputError
from unspool.objective import EdgePenalty, Objective, Term
from unspool.objective.channel import Map
from unspool.objective.edge_penalty import FrozenEdges
from unspool.objective.learnt_edges import LearntEdges

#: Terms that have a quadratic which touches them from above.
_MAJORISED = (EdgePenalty, LearntEdges)


@dataclass(frozen=True, eq=False)
class Reweighted(Algorithm):
    r"""Freeze the edge weights Γ of every edge penalty (:class:`~unspool.objective.EdgePenalty`, :class:`~unspool.objective.LearntEdges`) at the iterate, then take steps of another rule.

    .. math:: \Gamma_e = \rho'(\lVert (BH)_e\rVert^2),\qquad H \leftarrow \text{steps of the inner rule on } f(H) + \beta\textstyle\sum_e \Gamma_e\lVert (BH)_e\rVert^2

    Iteratively reweighted least squares (Holland and Welsch 1977; majorise-minimise, Hunter and Lange 2004). Where ρ is concave
    (Log, Capped, Power up to p = 2) the quadratic lies above the penalty, so whatever lowers it lowers the objective. Rules for
    quadratic objectives, such as :class:`~unspool.algorithm.ConjugateGradient`, fit inside. Γ is differentiated like everything else.

    The inner rule begins anew in every layer, on a new problem; a rule with dual variables keeps them.

    Args:
        inner: the rule.
        steps: how many of its steps are taken with the same Γ.

    Example:
        >>> import torch, unspool as us
        >>> objective = us.Fidelity(1.0) + us.EdgePenalty(us.Log(0.5), 2.0)
        >>> net = us.unroll(objective, us.Reweighted(us.ConjugateGradient(), steps=4), depth=5)
        >>> net(torch.eye(4), us.graph.ring(4)).shape
        torch.Size([4, 4])
    """

    inner: Any
    steps: int = 1

    def __post_init__(self) -> None:
        if not isinstance(self.inner, Algorithm):
            raise InputError("inner", self.inner, "an algorithm, such as us.GradientDescent()")
        require_count("steps", self.steps)

    @property
    def handles(self) -> Any:  # pyright: ignore[reportIncompatibleVariableOverride]
        """What the inner rule handles."""
        return handled_kinds(self.inner)

    @property
    def keeps_duals(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Whether the inner rule does."""
        return self.inner.keeps_duals

    @property
    def random(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Whether the inner rule is."""
        return self.inner.random

    def check(self, objective: Objective) -> None:
        """Penalties lie below the quadratics that touch them, and the inner rule fits the objective with these in their place."""
        for term in objective.terms:
            if isinstance(term, EdgePenalty) and not term.penalty.concave:
                raise IncompatibleError(
                    f"{term.formula()} lies above the quadratic that touches it, so reweighted steps need not lower it; use Newton()"
                )
        check_fit(self.inner, outline(objective))

    def step_size(self, problem: Problem) -> Map:
        """The inner rule's."""
        return self.inner.step_size(replace(problem, objective=outline(problem.objective)))

    def init(self, h: Any, problem: Problem) -> State:
        """What the inner rule keeps."""
        return self.inner.init(h, majorised(problem, h)) if self.keeps_duals else (h,)

    def update(self, state: State, problem: Problem) -> State:
        """New weights, then the inner steps."""
        surrogate = majorised(problem, state[0])
        before = (problem.layer - 1) * self.steps if self.keeps_duals else 0
        if not self.keeps_duals:
            state = self.inner.init(state[0], surrogate)
        for k in range(1, self.steps + 1):
            state = self.inner.update(state, replace(surrogate, layer=before + k))
        return state if self.keeps_duals else (state[0],)


def outline(objective: Objective) -> Objective:
    """The objective with quadratics in the place of edge penalties, their weights left open: what it is, and its Lipschitz constant."""
    open_weights = torch.zeros(0)
    terms: list[Term] = []
    for term in objective.terms:
        if isinstance(term, EdgePenalty):
            terms.append(FrozenEdges(open_weights, term.weight, steepest=term.penalty.steepest))
        else:
            terms.append(FrozenEdges(open_weights, term.weight) if isinstance(term, LearntEdges) else term)
    return Objective(tuple(terms))


def majorised(problem: Problem, h: Any) -> Problem:
    """The problem with every edge penalty replaced by the quadratic that touches it at h; itself where there is none."""
    terms = problem.objective.terms
    if not any(isinstance(t, _MAJORISED) for t in terms):
        return problem
    given = problem.given
    frozen = tuple(t.majoriser(h, given) if isinstance(t, _MAJORISED) else t for t in terms)
    return replace(problem, objective=Objective(frozen), fused=None)
