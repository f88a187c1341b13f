"""
A term of your own
==================

A term of your own: an elastic ridge ρ ‖H‖² + κ Σ log cosh(h), quadratic for small and linear for large entries.
"""

from dataclasses import dataclass
from pathlib import Path

import matplotlib.pyplot as plt
import torch

import unspool as us


@dataclass(frozen=True, eq=False)
class ElasticRidge(us.SmoothTerm):
    weight: us.Coefficient
    softness: float = 1.0

    def value(self, h, given):
        return (h.square() + self.softness * torch.log(torch.cosh(h))).sum((-2, -1)) * given[self.weight]

    def gradient(self, h, given):
        return (2 * h + self.softness * torch.tanh(h)) * given[self.weight]

    def lipschitz(self, given):
        return (2 + self.softness) * abs(given[self.weight])


if __name__ == "__main__":
    rho = us.Learnable(0.05, within=(0, None), name="ρ")
    us.testing.check_term(ElasticRidge(rho))
    net = us.unroll(us.Fidelity(0.3) + us.Smoothness(0.7) + ElasticRidge(rho), us.GradientDescent(), depth=8)
    print(net, "\n\n", net.trace(torch.eye(12), us.graph.grid(3, 4)), sep="")
    figure, axis = plt.subplots(figsize=(5.4, 3.2), layout="constrained")
    axis.plot(net.trace(torch.eye(12), us.graph.grid(3, 4)).after, marker="o")
    axis.set(xlabel="layer", ylabel="objective")
    Path("out").mkdir(exist_ok=True)
    figure.savefig("out/own_term.png", dpi=110)
