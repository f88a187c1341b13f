"""From a noisy signal to a clean one: choose the weight, solve the problem exactly."""

from __future__ import annotations

import numbers
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from unspool.algorithm import minimise
from unspool.denoise.weight import SURE, Choice, Criterion
from unspool.graph import Graph, check_input
from unspool.objective import Fidelity, Objective, Smoothness


@dataclass(frozen=True, eq=False)
class Denoised:
    """A denoised signal, and how it came about.

    Attributes:
        signal: the minimiser, in the shape of the input.
        choice: the weight, the score of every candidate, and the noise level, as far as the rule knows them.
        objective: the problem that was solved.
    """

    signal: Tensor
    choice: Choice
    objective: Objective


def denoise(x: Tensor, graph: Graph, weight: Any = None) -> Denoised:
    r"""Solve :math:`\min_H \alpha\lVert H-X\rVert^2 + (1-\alpha)\lVert BH\rVert^2` exactly.

    Args:
        x: signals, shape (nodes, channels); all channels share one weight.
        graph: an undirected graph.
        weight: α in (0, 1], or a rule that chooses it: :class:`SURE` (when omitted) or :class:`GCV`.

    Example:
        >>> import torch, unspool as us
        >>> x = torch.tensor([[1.0], [0.0], [1.0], [0.0]])
        >>> print(denoise(x, us.graph.ring(4), weight=0.5).objective)
        0.5 ‖H − X‖²  +  0.5 ‖B H‖²
    """
    check_input(x, graph)
    choice = choose(x, graph, weight)
    objective = problem(choice.weight)
    return Denoised(minimise(objective, x, graph), choice, objective)


def choose(x: Tensor, graph: Graph, weight: Any = None) -> Choice:
    """The weight of a signal: as given, or by a rule."""
    rule = SURE() if weight is None else weight
    if isinstance(rule, Criterion):
        return rule.choose(x.reshape(graph.nodes, -1), graph)
    if not (isinstance(rule, numbers.Real) and 0 < float(rule) <= 1):
        raise ValueError(f"weight={rule!r}: expected a number in (0, 1], SURE() or GCV()")
    return Choice(float(rule))


def problem(weight: float) -> Objective:
    """α‖H − X‖² + (1 − α)‖BH‖²."""
    return Fidelity(weight) + Smoothness(1 - weight)
