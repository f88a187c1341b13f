"""A term: smoothness that forgives large differences between neighbours."""

from dataclasses import dataclass
from typing import Any

import torch

import unspool as us


@dataclass(frozen=True, eq=False)
class HuberSmoothness(us.SmoothTerm):
    """w Σₑ φ((B H)ₑ) with Huber's φ: d²/2 up to ``bend``, a straight line beyond, entry by entry."""

    weight: Any
    bend: float = 0.1
    uses_input = False

    def value(self, h, given):
        d = (given.graph.incidence() @ h).abs()
        phi = torch.where(d <= self.bend, d.square() / 2, self.bend * (d - self.bend / 2))
        return phi.sum((-2, -1)) * given[self.weight]

    def gradient(self, h, given):
        b = given.graph.incidence()
        return (b.T @ (b @ h).clamp(-self.bend, self.bend)) * given[self.weight]

    def lipschitz(self, given):
        return 2 * given.graph.scale * given[self.weight]  # φ'' ≤ 1, and the largest frequency is at most 2

    def formula(self):
        return f"{us.objective.leading(self.weight)}Σₑ φ((B H)ₑ)"
