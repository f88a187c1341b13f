"""
An algorithm of your own
========================

An algorithm of your own: Polyak's heavy ball. Written with + − × only, so linear problems lower by themselves.
"""

from dataclasses import dataclass
from pathlib import Path

import matplotlib.pyplot as plt
import torch

import unspool as us


@dataclass(frozen=True, eq=False)
class HeavyBall(us.Algorithm):
    step: us.Coefficient
    momentum: us.Coefficient

    def init(self, h, problem):
        return (h, h)

    def update(self, state, problem):
        h, before = state
        return (h - self.step_size(problem) * problem.gradient(h) + problem[self.momentum] * (h - before), h)


if __name__ == "__main__":
    rule = HeavyBall(us.Learnable(0.4, name="η"), us.Learnable(0.3, within=(0, 1), name="m"))
    us.testing.check_algorithm(rule)
    net = us.unroll(us.Fidelity(0.1) + us.Smoothness(0.9), rule, depth=10)
    print(net)  # runs as one polynomial of the graph, in the Chebyshev basis
    print("hop coefficients:", net.hops(us.graph.ring(8)).detach().numpy().round(3))
    print(net.trace(torch.eye(8), us.graph.ring(8)))
    figure, axis = plt.subplots(figsize=(5.4, 3.2), layout="constrained")
    axis.plot(net.trace(torch.eye(8), us.graph.ring(8)).distance, marker="o")
    axis.set(xlabel="layer", ylabel="distance to the minimiser")
    Path("out").mkdir(exist_ok=True)
    figure.savefig("out/own_algorithm.png", dpi=110)
