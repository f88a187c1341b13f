"""An algorithm: gradient descent with momentum."""

from dataclasses import dataclass
from typing import Any

import unspool as us


@dataclass(frozen=True, eq=False)
class HeavyBall(us.Algorithm):
    """H ← H − η ∇f(H) + μ (H − H_before)."""

    step: Any = 0.3
    momentum: Any = 0.3

    def init(self, h, problem):
        return (h, h)

    def update(self, state, problem):
        h, before = state
        return (h - self.step_size(problem) * problem.gradient(h) + problem[self.momentum] * (h - before), h)
