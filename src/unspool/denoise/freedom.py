r"""Degrees of freedom of denoisers that are not linear: how far a result follows its input, on average over the entries.

Stein's identity needs the divergence :math:`\sum_{ij}\partial h_{ij}/\partial x_{ij}` of a denoiser h(X), which is tr S for a linear
one. Here it is measured: with random signs b, :math:`\langle b, h(X + \epsilon b) - h(X)\rangle/\epsilon` has this mean (Ramani, Blu and
Unser 2008). For total variation of one channel it is the number of regions, for every penalty ‖KH‖₁ the dimension of the
signals that K leaves as flat as the result (Tibshirani and Taylor 2012).
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from unspool.denoise.content import random_signs
from unspool.denoise.fit import Fitter
from unspool.denoise.problem import DenoisingProblem
from unspool.graph import Graph

#: Candidates are compared by results of this tolerance; changes by ε are far larger.
_ROUGHLY = 1e-4


def residuals_and_freedom(
    problem: DenoisingProblem,
    x: Tensor,
    graph: Graph,
    weights: Tensor,
    noise: float,
    probes: int,
    seed: int,
    progress: Callable[[int, int], None] | None = None,
) -> tuple[Tensor, Tensor]:
    """‖X − h(X)‖² and the degrees of freedom of every channel on average, for each weight α.

    Args:
        problem: what is minimised.
        x: a complete signal in float64.
        graph: in float64.
        weights: candidates, each solved for once, and once more for every probe.
        noise: the standard deviation of the noise: ε is a small share of it.
        probes, seed: how many random signs are drawn, the same ones for all candidates, and how.
        progress: called with how many solves of how many are done.

    Example:
        >>> import torch, unspool as us
        >>> from unspool.denoise.problem import TotalVariation
        >>> x = torch.tensor([[0.0], [0.1], [-0.1], [5.1], [5.0], [4.9]], dtype=torch.float64)
        >>> graph = us.graph.path(6, normalise=us.Normalisation.NONE, loops=0).to(torch.float64)
        >>> residual, freedom = residuals_and_freedom(TotalVariation(), x, graph, torch.tensor([0.5]), 0.01, 64, 0)
        >>> round(float(freedom))  # regions
        2
    """
    step = _step(x, noise)
    nudges = [random_signs(graph.nodes, x.shape[-1], seed * 1000 + k) for k in range(probes)]
    plain = Fitter(problem, x, graph, tolerance=_ROUGHLY)
    nudged = [Fitter(problem, x + step * b, graph, tolerance=_ROUGHLY) for b in nudges]
    residual, freedom = list[float](), list[float]()
    for weight in weights.tolist():
        h = plain.fit(weight).h
        found = list[float]()
        for b, fitter in zip(nudges, nudged, strict=True):
            found.append(float((b * (fitter.fit(weight).h - h)).sum()) / step)
            if progress is not None:
                progress(len(residual) * probes + len(found), len(weights) * probes)
        residual.append(float((x - h).square().sum()))
        freedom.append(sum(found) / probes / x.shape[-1])
    return torch.tensor(residual, dtype=torch.float64), torch.tensor(freedom, dtype=torch.float64)


def _step(x: Tensor, noise: float) -> float:
    """ε: 2σ/N^0.3 for N entries (Deledalle, Vaiter, Fadili and Peyré 2014); by the signal's own spread where there is no noise."""
    spread = 0.1 * float(x.std(correction=0)) if not noise > 0 else noise
    return 2 * (spread if spread > 0 else 1.0) / x.numel() ** 0.3
