"""A signal and its graph by frequency: all that a rule for choosing a smoothing weight needs to know.

The denoiser of weight α multiplies the part of a signal at graph frequency λ by s(λ) = α / (α + (1 − α) λ). Its residual
and its trace are sums over frequencies, so one look at the graph serves every α. Channels that have weights of their own are
kept apart.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from unspool.graph import Graph, frequencies_and_modes
from unspool.ops import Lanczos
from unspool.ops.spmm import spmm

#: Up to this many nodes eigenvalues are computed exactly; above, by Lanczos quadrature with random signs.
LARGEST_EXACT = 2000


@dataclass(frozen=True, eq=False)
class Content:
    """Weights at frequencies, of the signal (``energy``, summing to ‖X‖²) and of the graph (``count``, summing to n).

    ``frequency`` and ``energy`` have a row for all channels together, or one for each.

    Example:
        >>> import torch, unspool as us
        >>> content = Content.of(torch.ones(4, 1, dtype=torch.float64), us.graph.ring(4).to(torch.float64))
        >>> float(content.energy.sum().round(decimals=6)), float(content.count.sum())
        (4.0, 4.0)
    """

    frequency: Tensor
    energy: Tensor
    mode: Tensor
    count: Tensor

    @staticmethod
    def of(
        x: Tensor, graph: Graph, probes: int = 32, steps: int = 80, seed: int = 0, by_channel: bool = False
    ) -> Content:
        """Look at a float64 signal on a float64 graph: exactly if it is small, with random probes if it is large."""
        if graph.nodes <= LARGEST_EXACT:
            value, vector = frequencies_and_modes(graph)
            value = value.clamp_min(0)
            energy = (vector.T @ x).square().T
            energy = energy if by_channel else energy.sum(0, keepdim=True)
            return Content(value.expand_as(energy), energy, value, torch.ones_like(value))
        sign = random_signs(graph.nodes, probes, seed)
        frequency, energy = _quadrature(graph, x, steps)
        mode, count = _quadrature(graph, sign, steps)
        if not by_channel:
            frequency, energy = frequency.reshape(1, -1), energy.reshape(1, -1)
        return Content(frequency, energy, mode.flatten(), count.flatten() / probes)

    def residual(self, weight: Tensor) -> Tensor:
        """‖X − S X‖² for each weight α; of each row for weights of shape (candidates, rows)."""
        if weight.ndim == 1:
            return self.residual(weight[:, None].expand(-1, len(self.energy))).sum(1)
        rows = zip(self.energy, self.frequency, weight.T, strict=True)
        return torch.stack([(energy * (1 - _passed(alpha, at)).square()).sum(-1) for energy, at, alpha in rows], dim=1)

    def trace(self, weight: Tensor) -> Tensor:
        """tr S, the degrees of freedom that are left, for each weight α; of each row for (candidates, rows)."""
        if weight.ndim == 2:
            return torch.stack([self.trace(alpha) for alpha in weight.T], dim=1)
        return (self.count * _passed(weight, self.mode)).sum(-1)


def random_signs(nodes: int, probes: int, seed: int) -> Tensor:
    """Columns of ±1, for stochastic traces: zᵀ M z is tr M on average."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(0, 2, (nodes, probes), generator=generator).double() * 2 - 1


def _passed(weight: Tensor, frequency: Tensor) -> Tensor:
    alpha = weight[:, None]
    return alpha / (alpha + (1 - alpha) * frequency)


def _quadrature(graph: Graph, columns: Tensor, steps: int) -> tuple[Tensor, Tensor]:
    r"""Frequencies and weights with :math:`\sum_c v_c^\top f(L) v_c \approx \sum_j w_j f(\lambda_j)`, a row for each column."""
    smoother = graph.require_laplacian()
    run = Lanczos(lambda v: spmm(smoother, v), columns)
    for _ in range(min(steps, graph.nodes)):
        run.step()
    value, weight = run.quadrature()
    return (graph.scale * (1 - value)).clamp_min(0), weight
