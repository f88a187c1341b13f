"""What terms claim of themselves is looked at where a minimiser rests on it."""

from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch import nn

import unspool as us
from unspool.algorithm import Problem
from unspool.algorithm.convexity import refuse_rough
from unspool.objective.coefficient import as_coefficient

pytestmark = pytest.mark.long


@dataclass(frozen=True, eq=False)
class Wave(us.SmoothTerm):
    """Σ sin(h): calls itself convex, as every term with a weight that is not negative does unless it says otherwise."""

    weight: Any = 1.0
    uses_input = False

    def __post_init__(self):
        object.__setattr__(self, "weight", as_coefficient(self.weight))

    def value(self, h, given):
        return torch.sin(h).sum((-2, -1)) * given[self.weight]

    def gradient(self, h, given):
        return torch.cos(h) * given[self.weight]

    def lipschitz(self, given):
        return abs(given[self.weight])


@dataclass(frozen=True, eq=False)
class LogCosh(Wave):
    def value(self, h, given):
        return torch.log(torch.cosh(h)).sum((-2, -1)) * given[self.weight]

    def gradient(self, h, given):
        return torch.tanh(h) * given[self.weight]


@dataclass(frozen=True, eq=False)
class Count(us.ProximableTerm):
    """How many entries differ from zero, with hard thresholding for a proximal operator: not convex."""

    weight: Any = 1.0
    uses_input = False

    def value(self, h, given):
        return (h != 0).double().sum((-2, -1)) * given[self.weight]

    def prox(self, v, step, given):
        return torch.where(v.square() > 2 * step * given[self.weight], v, torch.zeros_like(v))


DOORS = {
    "minimise": us.minimise,
    "Exact": lambda o, x, g: us.unroll(o, us.Exact()).to(x.dtype)(x, g),
    "Implicit": lambda o, x, g: us.unroll(o, us.ProximalGradient(), 2, adjoint=us.Implicit()).to(x.dtype)(x, g),
    "trace": lambda o, x, g: _reason(us.unroll(o, us.ProximalGradient(), 2).to(x.dtype).trace(x, g)),
}


def _reason(trace):
    if trace.reason is not None:
        raise us.IncompatibleError(trace.reason)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("shift", [0.0, -1.5, 4.0])
def test_a_false_claim_is_refused_by_name(door, shift, dtype, graph, x):
    """At −1.5 the path lies in a valley: all of it is convex, and other valleys are as deep."""
    weak = us.Fidelity(0.05) + us.Smoothness(0.1) + Wave(1.0)
    with pytest.raises(us.IncompatibleError, match=r"Wave.* is convex and is not"):
        DOORS[door](weak, (0.1 * x + shift).to(dtype), graph.to(dtype))


@pytest.mark.parametrize("door", DOORS)
def test_hard_thresholding_is_not_the_proximal_operator_of_a_convex_term(door, graph, x):
    with pytest.raises(us.IncompatibleError, match=r"Count.* is convex and is not"):
        DOORS[door](us.Fidelity(1.0) + us.Smoothness(0.5) + Count(0.3), x, graph)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize(
    "objective",
    [
        us.Fidelity(1.0) + us.Smoothness(0.5) + Wave(1.0),  # the sum is convex whatever the claim
        us.Fidelity(0.05) + us.Smoothness(0.5) + LogCosh(2.0),
        us.Fidelity(0.05) + LogCosh(0.01) + us.Sparse(0.02),
        us.Fidelity(0.4) + us.Smoothness(0.5) + LogCosh(2.0) + us.Box(-0.2, 0.4),
    ],
    ids=str,
)
@pytest.mark.parametrize("door", DOORS)
def test_true_minimisers_are_not_refused(door, objective, dtype, graph, x):
    for shift in (0.0, 3.0, 100.0):
        DOORS[door](objective, (x + shift).to(dtype), graph.to(dtype))


def test_an_understated_lipschitz_constant_is_not_a_minimiser(graph, x):
    class Steep(LogCosh):
        def gradient(self, h, given):
            return 100 * super().gradient(h, given)

    with pytest.raises(us.IncompatibleError, match="Lipschitz constant of Steep"):
        us.minimise(us.Fidelity(0.5) + us.Smoothness(0.5) + Steep(1.0), x, graph)


class Huber(us.SmoothTerm):
    """Calls itself quadratic and bends away at ``knee``."""

    affine_gradient = True

    def __init__(self, knee):
        self.knee = knee

    def value(self, h, given):
        r = (h - given.x).abs()
        return torch.where(r < self.knee, r.square(), 2 * self.knee * r - self.knee**2).sum((-2, -1))

    def gradient(self, h, given):
        return 2 * (h - given.x).clamp(-self.knee, self.knee)

    def lipschitz(self, given):
        return 2.0


@pytest.mark.parametrize("knee", [0.1, 1.0, 30.0])
def test_what_calls_itself_quadratic_and_is_not_has_no_linear_solution(knee, graph, x):
    objective = Huber(knee) + us.Smoothness(0.5) + us.Ridge(0.1)
    for use in (lambda: us.minimise(objective, x, graph), lambda: us.unroll(objective, us.Exact())(x, graph)):
        with pytest.raises(us.IncompatibleError, match=r"Huber.* calls itself quadratic"):
            use()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("size", [1e-6, 1.0, 1e6])
def test_what_is_quadratic_is_not_suspected(dtype, size, graph, x):
    objective = (
        us.Fidelity(0.02) + us.EdgeSmoothness(torch.linspace(0.1, 3, 17)) + us.EdgeSmoothness(-1e-3 * torch.ones(17))
    )
    h = us.minimise(objective, (size * x).to(dtype), graph.to(dtype))
    assert torch.isfinite(h).all()


class ElasticNet(us.Sparse):
    """ρ (‖H‖₁ + ½ ‖H‖²), a term of one's own."""

    def value(self, h, given):
        return (h.abs() + 0.5 * h.square()).sum((-2, -1)) * given[self.weight]

    def prox(self, v, step, given):
        return super().prox(v, step, given) / (1 + step * given[self.weight])


CONVEX = (
    us.NonNegative(),
    us.Box(-0.5, 0.7),
    *(kind(0.1) for kind in (us.Sparse, us.RowSparse, us.RowSparseFidelity, ElasticNet)),
    *(us.Activation(kind(), 0.1) for kind in (nn.ReLU, nn.LeakyReLU, nn.ELU, nn.Tanh, nn.Sigmoid, nn.Softsign)),
    *(us.Activation(kind(), 0.1) for kind in (nn.Softshrink, nn.Hardtanh)),
    us.Activation(us.ops.activation.Arctan(), 0.1),
)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("term", CONVEX, ids=str)
@pytest.mark.parametrize("seeds", [range(3), pytest.param(range(3, 12), marks=pytest.mark.slow)], ids=str)
def test_a_step_that_only_moves_by_rounding_says_nothing_against_a_term(term, dtype, seeds, graph):
    """With Fidelity alone a step of 1/L ends at the input, so the way from the input to where it ends is rounding."""
    for seed in seeds:
        x = torch.randn(graph.nodes, 3, dtype=dtype, generator=torch.Generator().manual_seed(seed))
        for size in (1e-6, 1e-3, 1.0, 1e3, 1e6):
            problem = Problem(us.Fidelity(0.1) + term, us.Given(size * x, graph.to(dtype)))
            refuse_rough(problem, problem.prox(size * x, 5.0), 5.0)
        us.minimise(us.Fidelity(0.1) + term, x, graph.to(dtype))
