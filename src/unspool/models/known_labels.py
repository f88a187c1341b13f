"""Label propagation, and correct and smooth: minimisers of problems in which the known labels stand, with nothing to train."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from unspool.algorithm import Exact, GradientDescent
from unspool.errors import InputError
from unspool.graph import Graph
from unspool.objective import Fidelity, Smoothness, labels
from unspool.unrolling import unroll


@torch.no_grad()
def label_propagation(
    known: Any,
    nodes: Any,
    classes: int,
    graph: Graph,
    *,
    weight: float = 1.0,
    smoothness: float = 1.0,
    prior: Tensor | None = None,
    prior_weight: float = 0.01,
    depth: int | None = None,
) -> Tensor:
    r"""Spread known labels over a graph: the minimiser of :math:`\mu\lVert S(H-Y)\rVert^2 + \alpha\lVert H-Z\rVert^2 + \beta\lVert BH\rVert^2`.

    With K steps instead, :math:`H \leftarrow H - 2\eta[\mu S(H-Y) + \alpha(H-Z) + \beta LH]` from H = Z, with η = 1/L of the sum.

    Args:
        known: a class for every node; what stands at other nodes than ``nodes`` is not looked at.
        nodes: numbers of the nodes whose labels may be used, or True and False for every node.
        classes: how many classes there are.
        graph: an undirected graph.
        weight: μ, how much the known labels count.
        smoothness: β.
        prior: Z, scores of shape (nodes, classes), such as those of a trained model; zeros when omitted.
        prior_weight: α; with 0, parts of the graph without any label have no answer, and are refused.
        depth: K steps in the place of the minimiser.

    Returns:
        Scores of shape (nodes, classes); ``argmax(-1)`` is the class.

    Example:
        >>> import torch, unspool as us
        >>> known, nodes = torch.tensor([0, 9, 9, 1]), torch.tensor([0, 3])
        >>> us.models.label_propagation(known, nodes, 2, us.graph.path(4)).argmax(-1)
        tensor([0, 0, 1, 1])
    """
    prior = torch.zeros(graph.nodes, classes, dtype=graph.dtype, device=graph.device) if prior is None else prior
    _check_scores("prior", prior, graph, classes)
    objective = labels(known, nodes, classes, weight) + Fidelity(prior_weight) + Smoothness(smoothness)
    network = unroll(objective, Exact()) if depth is None else unroll(objective, GradientDescent(), depth)
    return network(prior, graph)


@torch.no_grad()
def correct_and_smooth(
    scores: Tensor,
    known: Any,
    nodes: Any,
    graph: Graph,
    *,
    correction: float = 4.0,
    scale: float = 1.0,
    smoothness: float = 4.0,
) -> Tensor:
    r"""Correct the scores of any model with the labels that it was trained on: two minimisers, one after the other.

    First the errors at the known nodes spread, :math:`E^* = \arg\min\lVert E - S(Y-Z)\rVert^2 + \lambda_c\lVert BE\rVert^2`; then the corrected scores
    Z + sE*, with Y in the place of what is known, are smoothed by :math:`\lVert H - X\rVert^2 + \lambda_s\lVert BH\rVert^2`.

    Args:
        scores: Z, class probabilities of shape (nodes, classes).
        known: a class for every node; what stands at other nodes than ``nodes`` is not looked at.
        nodes: numbers of the nodes whose labels may be used, or True and False for every node.
        graph: an undirected graph.
        correction: λ_c, how far errors spread; 0 corrects the known nodes alone.
        scale: s, how much of the correction is taken.
        smoothness: λ_s, how far labels spread; 0 for no second step.

    Returns:
        Scores of the shape of ``scores``.

    Example:
        >>> import torch, unspool as us
        >>> scores = torch.full((4, 2), 0.5)
        >>> us.models.correct_and_smooth(scores, torch.tensor([0, 9, 9, 1]), torch.tensor([0, 3]), us.graph.path(4)).argmax(-1)
        tensor([0, 0, 1, 1])
    """
    classes = scores.shape[-1]
    _check_scores("scores", scores, graph, classes)
    told = labels(known, nodes, classes)
    target, seen = told.target.to(scores), torch.as_tensor(told.nodes.value).to(scores)[:, None]
    errors = unroll(Fidelity(1.0) + Smoothness(correction), Exact())(seen * (target - scores), graph)
    corrected = scores + scale * errors
    return unroll(Fidelity(1.0) + Smoothness(smoothness), Exact())(seen * target + (1 - seen) * corrected, graph)


def _check_scores(name: str, scores: Tensor, graph: Graph, classes: int) -> None:
    if tuple(scores.shape) != (graph.nodes, classes):
        raise InputError(name, tuple(scores.shape), f"scores of shape ({graph.nodes}, {classes})")
