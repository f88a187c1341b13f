"""From a noisy signal to a clean one: choose the weight, solve the problem."""

from __future__ import annotations

import numbers
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from unspool.algorithm.exact import find_minimiser
from unspool.algorithm.solvers import Solution
from unspool.denoise.constant import tell_of_bent_mean
from unspool.denoise.fit import Fitter
from unspool.denoise.held_out import HeldOut, Progress
from unspool.denoise.missing import check_fillable, observed
from unspool.denoise.noise import Covariance
from unspool.denoise.problem import DenoisingProblem, Smooth, read_problem
from unspool.denoise.weight import SURE, Choice, Criterion
from unspool.errors import IncompatibleError, InputError, mention
from unspool.graph import Graph, check_input
from unspool.objective import Fidelity, Fixed, Objective, Smoothness
from unspool.ops import SolveReport

_SMOOTH = Smooth()


@dataclass(frozen=True, eq=False)
class Denoised:
    """A denoised signal, and how it came about.

    Attributes:
        signal: the minimiser, in the shape of the input.
        choice: the weight, the score of every candidate, and the noise level, as far as the rule knows them.
        objective: the problem that was solved.
        report: iterations and residual of the solve, and whether its tolerance was met.
    """

    signal: Tensor
    choice: Choice
    objective: Objective
    report: SolveReport


def denoise(
    x: Tensor,
    graph: Graph,
    weight: Any = None,
    noise_covariance: Any = None,
    *,
    problem: Any = "smooth",
    progress: Progress | None = None,
) -> Denoised:
    r"""Solve :math:`\min_H \alpha\lVert H-X\rVert_T^2 + (1-\alpha)\lVert BH\rVert^2`, or another problem, exactly.

    Args:
        x: signals, shape (nodes, channels); all channels share one weight. NaN entries are missing, and are filled in.
        graph: an undirected graph.
        weight: α in (0, 1], or a rule that chooses it: :class:`SURE` or :class:`GCV` (not for robust, nor with missing entries), or
            :class:`HeldOut`. When omitted, SURE for smooth signals without missing entries, and HeldOut otherwise.
        noise_covariance: Σ, of the noise over channels, as one variance per channel or a matrix. T is its inverse times
            the mean variance; the identity when omitted. For smooth signals without missing entries.
        problem: ``"smooth"``, ``"tv"`` (regions with sharp borders), ``"slopes"`` (straight lines with few bends), ``"trend"`` (slopes and
            curves that change now and then) or ``"robust"`` (outliers).
        progress: called with how many candidates of how many are done, where they are tried one by one.

    Example:
        >>> import torch, unspool as us
        >>> x = torch.tensor([[1.0], [0.0], [1.0], [0.0]])
        >>> print(denoise(x, us.graph.ring(4), weight=0.5).objective)
        0.5 ‖H − X‖²  +  0.5 ‖B H‖²
        >>> two = torch.cat([x, x], dim=1)
        >>> print(denoise(two, us.graph.ring(4), weight=0.5, noise_covariance=[1.0, 0.1]).objective)
        0.5 ‖H − X‖²_σ²Σ⁻¹  +  0.5 ‖B H‖²
        >>> x[2] = float("nan")
        >>> found = denoise(x, us.graph.ring(4), weight=0.9, problem="robust")
        >>> print(found.objective, bool(found.signal.isfinite().all()))
        0.9 ‖C ⊙ (H − X)‖₂,₁  +  0.1 ‖B H‖² True
    """
    kind, seen = read_problem(problem), observed(x)
    check_input(x if seen is None else torch.where(seen, x, 0.0), graph)
    known = None if noise_covariance is None else Covariance.read(noise_covariance, x.shape[-1])
    choice = choose(x, graph, weight, known, kind, progress)
    found = solve(x, graph, choice.weight, known, kind)
    return Denoised(found.h, choice, objective_of(choice.weight, known, kind, seen), found.report)


def choose(
    x: Tensor,
    graph: Graph,
    weight: Any = None,
    covariance: Covariance | None = None,
    problem: DenoisingProblem = _SMOOTH,
    progress: Progress | None = None,
) -> Choice:
    """The weight of a signal: as given, or by a rule."""
    x, seen = x.reshape(graph.nodes, -1), observed(x.reshape(graph.nodes, -1))
    if seen is not None:
        check_fillable(seen, graph)
    tell_of_bent_mean(x, graph)
    plain = problem == _SMOOTH and seen is None
    what = f"the problem {problem.name}" if problem != _SMOOTH else "a signal with missing values"
    if covariance is not None and not plain:
        raise IncompatibleError(
            f"{mention('noise_covariance')} is for smooth signals without missing values, and this is {what}; leave one of them out"
        )
    rule = (SURE() if plain else HeldOut()) if weight is None else weight
    if isinstance(rule, HeldOut):
        if covariance is not None:
            raise IncompatibleError(
                f"HeldOut() does not know a covariance of the noise; leave out {mention('noise_covariance')}, or choose by SURE() or GCV()"
            )
        return rule.choose(x, graph, problem, progress)
    if isinstance(rule, Criterion):
        if seen is not None:
            raise IncompatibleError(
                f"{type(rule).__name__} scores denoisers of complete signals, and this is a signal with missing values; choose by HeldOut(), or "
                "give a number"
            )
        if not problem.white_noise:
            raise IncompatibleError(
                f"{type(rule).__name__} takes values that are far off for signal, and the problem {problem.name} is there to leave them out; choose by "
                "HeldOut(), or give a number"
            )
        return rule.choose(x, graph, covariance, problem, progress)
    if not (isinstance(rule, numbers.Real) and 0 < float(rule) <= 1):
        raise InputError("weight", rule, "a number in (0, 1], or a rule such as SURE() or GCV()")
    return Choice(float(rule))


def objective_of(
    weight: float,
    covariance: Covariance | None = None,
    problem: DenoisingProblem = _SMOOTH,
    seen: Tensor | None = None,
) -> Objective:
    """What is minimised for a weight; α‖H − X‖²_T + (1 − α)‖BH‖² with T = σ²Σ⁻¹ for noise of covariance Σ."""
    if covariance is None:
        return problem.objective(weight, seen)
    return Fidelity(weight, metric=Fixed(covariance.metric, "σ²Σ⁻¹")) + Smoothness(1 - weight)


def solve(
    x: Tensor,
    graph: Graph,
    weight: float,
    covariance: Covariance | None = None,
    problem: DenoisingProblem = _SMOOTH,
) -> Solution:
    """The minimiser of :func:`objective_of`; with a covariance in the principal channels of the noise, where each is solved alone."""
    if covariance is None:
        seen = observed(x)
        if seen is None:
            return Fitter(problem, x, graph).fit(weight)
        check_fillable(seen, graph)
        if weight == 1:
            raise InputError("weight", weight, "a number below 1 where values are missing: at 1 nothing fills them in")
        return Fitter(problem, torch.where(seen, x, torch.nanmean(x, 0)), graph, seen).fit(weight)
    by_channel = objective_of(weight, Covariance(covariance.variance, None))
    found = find_minimiser(by_channel, covariance.to_principal(x), graph)
    return Solution(covariance.from_principal(found.h), found.report)
