"""Minimisers of one denoising problem for one weight after another, each started where the last one ended."""

from __future__ import annotations

from torch import Tensor

from unspool.algorithm.algorithm import Problem
from unspool.algorithm.exact import find_minimiser
from unspool.algorithm.solvers import Effort, Solution
from unspool.algorithm.splitting import Split, solve_split
from unspool.denoise.problem import DenoisingProblem
from unspool.graph import Graph
from unspool.objective import Given

#: Most steps of a splitting.
_LIMIT = 20_000


class Fitter:
    """Solves a problem on one signal for many weights.

    Args:
        problem: what is minimised.
        x: the signal, of shape (nodes, features), with any number at entries that are missing.
        graph: of the dtype of the signal.
        seen: the entries that are not missing; None for all.
        tolerance: of every solve that is no linear system; 1e-6 when omitted, which leaves the objective right to about 1e-8.

    Example:
        >>> import torch, unspool as us
        >>> from unspool.denoise.problem import Smooth
        >>> x = torch.tensor([[1.0], [9.0], [3.0]])
        >>> graph = us.graph.path(3, normalise=us.Normalisation.NONE)
        >>> seen = torch.tensor([[True], [False], [True]])
        >>> Fitter(Smooth(), x, graph, seen).fit(0.999).h.flatten().numpy().round(2)
        array([1., 2., 3.], dtype=float32)
    """

    def __init__(
        self,
        problem: DenoisingProblem,
        x: Tensor,
        graph: Graph,
        seen: Tensor | None = None,
        tolerance: float | None = None,
    ) -> None:
        self.problem, self.x, self.graph, self.seen, self.asked = problem, x, graph, seen, tolerance
        self._warm: Split | None = None

    def fit(self, weight: float) -> Solution:
        """The minimiser for a weight α."""
        objective = self.problem.objective(weight, self.seen)
        if objective.quadratic and self.seen is None:
            return find_minimiser(objective, self.x, self.graph, tolerance=self.asked)
        tolerance = 1e-6 if self.asked is None else self.asked
        effort = Effort.of(tolerance, _LIMIT, self.x.dtype)
        found = solve_split(Problem(objective, Given(self.x, self.graph)), self.x, effort, self._warm)
        if found is None:
            return find_minimiser(objective, self.x, self.graph, tolerance=tolerance, limit=_LIMIT)
        solution, self._warm = found
        effort.hand_in(solution.report, self.x.dtype)
        return solution
