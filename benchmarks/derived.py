"""Two networks that nobody named, as their users write them: what the engine does with models that it has never seen.

Used by trials.py as ``derived:GPRGNN`` and ``derived:Own``; their loops in PyG are in pyg_peers.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

import unspool as us


class GPRGNN(us.models.Model):
    """GPRGNN written again: a perceptron, and a filter of the graph that is learnt."""

    hidden: int = us.setting(64, "width of the perceptron", at_least=1)
    depth: int = us.setting(10, "degree of the filter", at_least=1)
    dropout: float = us.setting(0.5, "rate", at_least=0, below=1)
    teleport: float = us.setting(0.1, "where the filter begins", above=0, at_most=1)

    def build(self) -> None:
        widths = [self.in_features, self.hidden, self.out_features]
        self.p_pre = us.nn.Perceptron(widths, self.dropout, after=self.dropout)
        begin = self.teleport * (1 - self.teleport) ** torch.arange(self.depth + 1)
        begin[-1] = (1 - self.teleport) ** self.depth
        self.propagation = us.HopNetwork(begin)


@dataclass(frozen=True, eq=False)
class Forgiving(us.SmoothTerm):
    """w Σ 2δ² (√(1 + (d/δ)²) − 1) with d = H − X: a square for small differences, and no more than linear for large ones."""

    weight: Any
    width: float = 1.0

    def value(self, h: torch.Tensor, given: Any) -> torch.Tensor:
        root = (1 + ((h - given.x) / self.width).square()).sqrt()
        return (2 * self.width**2 * (root - 1)).sum((-2, -1)) * given[self.weight]

    def gradient(self, h: torch.Tensor, given: Any) -> torch.Tensor:
        d = h - given.x
        return 2 * given[self.weight] * d / (1 + (d / self.width).square()).sqrt()

    def lipschitz(self, given: Any) -> Any:
        return 2 * given[self.weight]


class Own(us.models.Model):
    """A perceptron whose predictions are smoothed, where a node that differs much from its own prediction is forgiven."""

    hidden: int = us.setting(64, "width of the perceptron", at_least=1)
    depth: int = us.setting(10, "number of steps", at_least=1)
    dropout: float = us.setting(0.5, "rate", at_least=0, below=1)
    pull: float = us.setting(0.1, "how strongly a node keeps its own prediction", above=0, below=1)

    def build(self) -> None:
        self.p_pre = us.nn.Perceptron([self.in_features, self.hidden, self.out_features], self.dropout)
        objective = Forgiving(self.pull) + us.Smoothness(1 - self.pull)
        self.propagation = us.unroll(objective, us.GradientDescent(step=0.5), self.depth)


if __name__ == "__main__":
    us.testing.check_term(Forgiving(0.3, 0.7))
    for kind in (GPRGNN, Own):
        us.testing.check_model(lambda kind=kind: kind(6, 3, hidden=5, depth=4, dropout=0.3), features=6)
        print(kind(6, 3).propagation)
