"""Frequencies of a graph: exact where that is possible, as a density where it is not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from unspool.errors import IncompatibleError
from unspool.graph.graph import Graph
from unspool.graph.normalise import Normalisation
from unspool.ops import Lanczos, Operator
from unspool.ops.spmm import spmm

#: Above this many nodes a dense eigendecomposition takes minutes and gigabytes.
LARGEST_EXACT = 5000
#: So many products Lanczos' method may take, and how probable it may be that its bound is too low.
STEPS, CHANCE = 500, 1e-12


@dataclass(frozen=True, eq=False)
class Density:
    """How a graph's frequencies are spread: ``value`` per unit of ``frequency``, integrating to one.

    ``edges`` bound the cells around the frequencies.
    """

    frequency: Tensor
    value: Tensor
    edges: Tensor

    def mass(self, low: float, high: float) -> float:
        """The share of frequencies in [low, high]."""
        share = np.concatenate([[0.0], (self.value * self._measure()).cumsum(0).numpy()])
        below, above = np.interp([low, high], self.edges.numpy(), share)
        return float(above - below)

    def _measure(self) -> Tensor:
        # Cells are even in the angle, where λ = scale (1 − cos θ); their measure there is scale sin θ dθ.
        scale = float(self.edges[-1]) / 2
        angle = torch.arccos(1 - self.frequency / scale)
        return scale * torch.sin(angle) * (torch.pi / self.frequency.numel())


def smoother_of(graph: Graph) -> Operator:
    """S with L = scale · (I − S) and its spectrum in [−1, 1], or a refusal: other graphs have no frequencies.

    Example:
        >>> import unspool as us
        >>> us.graph.smoother_of(us.graph.path(3, normalise=us.Normalisation.NONE).with_general_laplacian())
        Traceback (most recent call last):
            ...
        unspool.errors.IncompatibleError: I − A stands in for the Laplacian of this graph and has no frequencies in [0, 2]; build it without directed=True and with Normalisation.SYMMETRIC
    """
    smoother = graph.require_laplacian()
    if not smoother.symmetric or (graph.normalisation is Normalisation.NONE and smoother is graph.operator):
        raise IncompatibleError(
            "I − A stands in for the Laplacian of this graph and has no frequencies in [0, 2]; "
            "build it without directed=True and with Normalisation.SYMMETRIC"
        )
    return smoother


def frequencies(graph: Graph) -> Tensor:
    """All eigenvalues of the Laplacian in rising order, exactly (float64).

    Under symmetric normalisation they lie in [0, 2]. Graphs above :data:`LARGEST_EXACT` nodes are refused: use
    :func:`spectral_density`.

    Example:
        >>> import unspool as us
        >>> us.graph.frequencies(us.graph.complete(4, loops=0)).abs().numpy().round(4)
        array([0.    , 1.3333, 1.3333, 1.3333])
    """
    return frequencies_and_modes(graph)[0]


def frequencies_and_modes(graph: Graph) -> tuple[Tensor, Tensor]:
    """Eigenvalues λ and orthonormal eigenvectors U of the Laplacian, L = U diag(λ) Uᵀ (float64)."""
    if graph.nodes > LARGEST_EXACT:
        raise IncompatibleError(
            f"exact eigenvalues of {graph.nodes} nodes need a dense matrix; use spectral_density(graph) (limit {LARGEST_EXACT})"
        )
    exact = graph.to("cpu").to(torch.float64)
    smoother = smoother_of(exact).to_dense()
    value, mode = torch.linalg.eigh(exact.scale * (torch.eye(graph.nodes, dtype=torch.float64) - smoother))
    return value, mode


def largest_frequency(graph: Graph) -> float:
    r"""The largest eigenvalue of the Laplacian, or a number slightly above it where the eigenvalues crowd.

    Exact on small graphs. On others Lanczos' method runs from a random start. It ends when the answer stands to ten digits,
    or after :data:`STEPS` products, since on chains and rings it would need as many as there are nodes. Then the answer is
    raised to what it cannot exceed (Kuczyński and Woźniakowski, 1992: after k steps on n nodes the found value is short by
    a share of more than ε with a probability of at most :math:`1.648 \sqrt n\, e^{-\sqrt\varepsilon (2k - 1)}`, here
    :data:`CHANCE`), so that a step size made from it is never too long.

    Example:
        >>> import unspool as us
        >>> 2.0 - 1e-12 <= us.graph.path(20_000, loops=0).largest_frequency <= 2.0
        True
    """
    if graph.nodes <= 500:
        return float(frequencies(graph)[-1])
    exact = graph.to("cpu").to(torch.float64)
    smoother: Any = smoother_of(exact).to_scipy()
    start = np.random.default_rng(0).standard_normal(graph.nodes)  # a seeded start: same graph, same number
    run, top = Lanczos(lambda v: v - smoother @ v, start), 0.0
    for step in range(1, STEPS + 1):
        run.step()
        ended = run.beside[-1] < 1e-12  # the start was made of so few modes
        if ended or step % 20 == 0:
            top, miss = run.ritz(-1)
            if ended or miss < 1e-10:
                return exact.scale * min(top + miss, 2.0)
    short = (np.log(1.648 * np.sqrt(graph.nodes) / CHANCE) / (2 * STEPS - 1)) ** 2
    return exact.scale * min(top / (1.0 - short), 2.0)


def spectral_density(graph: Graph, points: int = 201, degree: int = 80, probes: int = 16, seed: int = 0) -> Density:
    r"""Estimate the density of the Laplacian's eigenvalues on a graph of any size, by the kernel polynomial method.

    Chebyshev moments :math:`\mu_m = \frac1n \operatorname{tr} T_m(S)` are estimated with random signs, damped with
    Jackson's kernel and summed. Costs ``degree`` sparse products with ``probes`` columns; the resolution is about
    :math:`\pi / \text{degree}` in the middle of the spectrum.

    Args:
        graph: an undirected graph.
        points: how many frequencies the density is evaluated at.
        degree: number of moments; more resolve finer detail.
        probes: number of random vectors; more reduce noise.
        seed: of the random signs.

    Example:
        >>> import unspool as us
        >>> density = us.graph.spectral_density(us.graph.ring(300))
        >>> round(density.mass(0.0, 2 / 3), 1), round(density.mass(0.0, 2.0), 3)
        (0.5, 1.0)
    """
    moments = _moments(graph, degree, probes, seed)
    order = torch.arange(degree, dtype=torch.float64)
    wave = torch.pi / (degree + 1)
    jackson = ((degree - order + 1) * torch.cos(wave * order) + torch.sin(wave * order) / np.tan(wave)) / (degree + 1)
    # Chebyshev points in angle resolve both ends of the spectrum; s = cos(angle), λ = scale (1 − s).
    angle = (torch.arange(points, dtype=torch.float64) + 0.5) * (torch.pi / points)
    series = torch.cos(order[:, None] * angle) * (jackson * moments)[:, None]
    value = (2 * series.sum(0) - series[0]) / (torch.pi * torch.sin(angle) * graph.scale)
    frequency = graph.scale * (1 - torch.cos(angle))
    edges = graph.scale * (1 - torch.cos(torch.linspace(0, torch.pi, points + 1, dtype=torch.float64)))
    return Density(frequency, value.clamp_min(0), edges)


def _moments(graph: Graph, degree: int, probes: int, seed: int) -> Tensor:
    smoother = smoother_of(graph)
    generator = torch.Generator().manual_seed(seed)
    sign = torch.randint(0, 2, (graph.nodes, probes), generator=generator).to(graph.dtype) * 2 - 1
    sign = sign.to(graph.device)
    before, now = sign, spmm(smoother, sign)
    moments = [1.0, float((sign * now).mean())]
    while len(moments) < degree:
        before, now = now, 2 * spmm(smoother, now) - before
        moments.append(float((sign * now).mean()))
    return torch.tensor(moments[:degree], dtype=torch.float64)
