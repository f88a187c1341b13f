"""Two variables in turn: the signal, and the weights of the edges."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from unspool.algorithm.algorithm import Problem, State, SteppedAlgorithm, require_count
from unspool.algorithm.reweighted import outline
from unspool.errors import IncompatibleError
from unspool.objective import Kind, Objective
from unspool.objective.channel import Map
from unspool.objective.learnt_edges import LearntEdges


@dataclass(frozen=True, eq=False)
class BlockCoordinate(SteppedAlgorithm):
    r"""Structure learning by block coordinate descent (Tseng 2001): the best edge weights S for H, then gradient steps in H for that S.

    For an objective with one :class:`~unspool.objective.LearntEdges`,

    .. math:: s_e \leftarrow \max\Bigl(0,\ w_e - \frac{\beta\lVert (BH)_e\rVert^2/w_e + \mu}{2\gamma}\Bigr),\qquad
        H \leftarrow \operatorname{prox}_{\eta r}\bigl(H - \eta(\nabla f(H) + 2\beta B^\top \operatorname{diag}(s/w) B H)\bigr)

    Both lower the joint objective of H and S for steps of at most 1/L. The state is (H, S), so S can be looked at: it is the graph
    that the network has learnt for this input.

    Args:
        step: η, a number or coefficient; 1/L of the problem at S = W when omitted.
        steps: how many steps in H are taken with the same S.

    Example:
        >>> import torch, unspool as us
        >>> objective = us.Fidelity(1.0) + us.LearntEdges(1.0, stay=0.2)
        >>> net = us.unroll(objective, us.BlockCoordinate(), depth=10)
        >>> net(torch.eye(4), us.graph.ring(4)).shape
        torch.Size([4, 4])
    """

    handles = (Kind.SMOOTH, Kind.PROXIMABLE)
    steps: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        require_count("steps", self.steps)

    def check(self, objective: Objective) -> None:
        """There must be one term with edges to learn."""
        count = sum(isinstance(term, LearntEdges) for term in objective.terms)
        if count != 1:
            raise IncompatibleError(
                f"BlockCoordinate learns the edges of one LearntEdges term, but {objective} has {count or 'none'}; "
                f"{'keep one' if count else 'add one, or use ProximalGradient()'}"
            )

    def init(self, h: Any, problem: Problem) -> State:
        """The iterate, and the edges that are best for it."""
        return (h, _learnt(problem).edges(h, problem.given))

    def update(self, state: State, problem: Problem) -> State:
        """The step in S, then those in H."""
        h, _ = state
        s = _learnt(problem).edges(h, problem.given)
        fixed, step = at_edges(problem, s), self.step_size(problem)
        for _ in range(self.steps):
            h = fixed.prox(fixed.descend(h, step), step)
        return (h, s)

    def step_size(self, problem: Problem) -> Map:
        """η, from the problem in H alone."""
        return super().step_size(replace(problem, objective=outline(problem.objective)))


def at_edges(problem: Problem, s: Any) -> Problem:
    """The problem in H that is left at some edge weights."""
    terms = problem.objective.terms
    fixed = tuple(t.at_edges(s, problem.given) if isinstance(t, LearntEdges) else t for t in terms)
    return replace(problem, objective=Objective(fixed), fused=None)


def _learnt(problem: Problem) -> LearntEdges:
    return next(t for t in problem.objective.terms if isinstance(t, LearntEdges))
