"""A term of your own: an elastic ridge ρ ‖H‖² + κ Σ log cosh(h), quadratic for small and linear for large entries."""

from dataclasses import dataclass

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
