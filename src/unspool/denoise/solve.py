"""From a noisy signal to a clean one: choose the weight, solve the problem exactly."""

from __future__ import annotations

import numbers
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from unspool.algorithm.exact import find_minimiser
from unspool.algorithm.solvers import Solution
from unspool.denoise.noise import Covariance
from unspool.denoise.weight import SURE, Choice, Criterion
from unspool.errors import InputError
from unspool.graph import Graph, check_input
from unspool.objective import Fidelity, Fixed, Objective, Smoothness
from unspool.ops import SolveReport


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


def denoise(x: Tensor, graph: Graph, weight: Any = None, noise_covariance: Any = None) -> Denoised:
    r"""Solve :math:`\min_H \alpha\lVert H-X\rVert_T^2 + (1-\alpha)\lVert BH\rVert^2` exactly.

    Args:
        x: signals, shape (nodes, channels); all channels share one weight.
        graph: an undirected graph.
        weight: α in (0, 1], or a rule that chooses it: :class:`SURE` (when omitted) or :class:`GCV`.
        noise_covariance: Σ, of the noise over channels, as one variance per channel or a matrix. T is its inverse times
            the mean variance; the identity when omitted.

    Example:
        >>> import torch, unspool as us
        >>> x = torch.tensor([[1.0], [0.0], [1.0], [0.0]])
        >>> print(denoise(x, us.graph.ring(4), weight=0.5).objective)
        0.5 ‖H − X‖²  +  0.5 ‖B H‖²
        >>> two = torch.cat([x, x], dim=1)
        >>> print(denoise(two, us.graph.ring(4), weight=0.5, noise_covariance=[1.0, 0.1]).objective)
        0.5 ‖H − X‖²_σ²Σ⁻¹  +  0.5 ‖B H‖²
    """
    check_input(x, graph)
    known = None if noise_covariance is None else Covariance.read(noise_covariance, x.shape[-1])
    choice = choose(x, graph, weight, known)
    found = solve(x, graph, choice.weight, known)
    return Denoised(found.h, choice, problem(choice.weight, known), found.report)


def choose(x: Tensor, graph: Graph, weight: Any = None, covariance: Covariance | None = None) -> Choice:
    """The weight of a signal: as given, or by a rule."""
    rule = SURE() if weight is None else weight
    if isinstance(rule, Criterion):
        return rule.choose(x.reshape(graph.nodes, -1), graph, covariance)
    if not (isinstance(rule, numbers.Real) and 0 < float(rule) <= 1):
        raise InputError("weight", rule, "a number in (0, 1], or a rule such as SURE() or GCV()")
    return Choice(float(rule))


def problem(weight: float, covariance: Covariance | None = None) -> Objective:
    """α‖H − X‖²_T + (1 − α)‖BH‖², with T = σ²Σ⁻¹ for noise of covariance Σ."""
    if covariance is None:
        return Fidelity(weight) + Smoothness(1 - weight)
    return Fidelity(weight, metric=Fixed(covariance.metric, "σ²Σ⁻¹")) + Smoothness(1 - weight)


def solve(x: Tensor, graph: Graph, weight: float, covariance: Covariance | None = None) -> Solution:
    """The minimiser of :func:`problem`; in the principal channels of the noise, where each is solved alone."""
    if covariance is None:
        return find_minimiser(problem(weight), x, graph)
    by_channel = problem(weight, Covariance(covariance.variance, None))
    found = find_minimiser(by_channel, covariance.to_principal(x), graph)
    return Solution(covariance.from_principal(found.h), found.report)
