"""A step in lowest terms is the step: H − η∇f(H), value and gradient, for all plain objectives."""

import itertools
import math

import pytest
import torch

import unspool as us
from reference.cases import build
from unspool import models
from unspool.algorithm import Problem
from unspool.algorithm.fused import fused_step
from unspool.models.convolutions import convolution_objective
from unspool.objective import as_objective

pytestmark = pytest.mark.long


W = torch.tensor([[0.4, 0.3, 0.0], [-0.2, 0.5, 0.1], [0.0, 0.2, 0.6]])
TERMS = {"fidelity": us.Fidelity, "smoothness": us.Smoothness, "ridge": us.Ridge}
SETS = [s for count in (1, 2, 3) for s in itertools.combinations(TERMS, count)]


def weights():
    alpha, layer = us.Learnable(0.2, name="α"), us.Learnable(0.3, per_layer=True, within=(0, 1), name="β")
    return {
        "fixed": (0.3, 0.7, 0.2),
        "learnt": (alpha, 1 - alpha, 2 * alpha),
        "per layer": (layer, 1 - layer, us.Schedule(lambda k: math.log(0.5 / k + 1), name="θ")),
        "products": (alpha * layer, layer / alpha, alpha * (1 - layer) + 0.5),
    }


def metrics():
    w, each, theta = us.Relaxed(3, initial=W, name="W"), us.Relaxed(3, initial=W, per_layer=True, name="V"), us.Learnable(0.4, name="ρ")  # fmt: skip
    return {
        "none": (None, None, None),
        "fixed": (us.Fixed(W.double()), us.Fixed(W.double().T), None),
        "free": (w, w, 1 - w),
        "per layer": (each, 1 - each, each),
        "leaning": (theta * w + (1 - theta), theta * w + (1 - theta), 1 - (theta * w + (1 - theta))),
        "channels": (
            us.Learnable(torch.tensor([0.1, 0.2, 0.3]), name="c"),
            us.Fixed(torch.tensor([0.5, 0.4, 0.1])),
            None,
        ),
        "kinds": (us.Symmetric(3, name="S"), us.Diagonal(3, name="D"), us.LowRank(3, 1, name="L")),
    }


STEPS = {"fixed": lambda: 0.4, "learnt": lambda: us.Learnable(0.4, name="η"), "per layer": lambda: us.Learnable(0.4, per_layer=True, name="η")}  # fmt: skip
COMBINATIONS = [
    (terms, weight, metric, step)
    for i, (terms, weight, metric) in enumerate(itertools.product(SETS, weights(), metrics()))
    for step in (list(STEPS)[i % 3],)
]


def network(terms, weight, metric, step):
    parts = []
    for name, strength, how in zip(TERMS, weights()[weight], metrics()[metric], strict=True):
        if name in terms:
            parts.append(TERMS[name](strength) if how is None else TERMS[name](strength, metric=how))
    objective = sum(parts[1:], as_objective(parts[0])) if len(parts) > 1 else parts[0]
    net = us.unroll(objective, us.GradientDescent(step=STEPS[step]()), depth=3, adjoint=us.Stored()).double()
    generator = torch.Generator().manual_seed(len(terms))
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.add_(0.2 * torch.randn(parameter.shape, dtype=torch.float64, generator=generator))
    return net


@pytest.mark.parametrize(("terms", "weight", "metric", "step"), COMBINATIONS)
def test_fused_is_unfused(terms, weight, metric, step, graph, x):
    net = network(terms, weight, metric, step)
    h = torch.cos(x).requires_grad_()
    for layer in (1, 3):
        problem = net.problem(x, graph, layer)
        plain = Problem(problem.objective, problem.given, layer)
        assert problem.fused is not None
        size = net.algorithm.step_size(plain)
        fused, expected = problem.fused(h, problem.given), h - plain.gradient(h) * size
        assert torch.allclose(fused, expected, rtol=1e-12, atol=1e-12)
        assert torch.equal(problem.descend(h, size), fused)
        wanted = [h, *(p for p in net.parameters() if p.requires_grad)]
        mine, theirs = (
            torch.autograd.grad(out.square().sum(), wanted, allow_unused=True, materialize_grads=True)
            for out in (fused, expected)
        )
        assert all(torch.allclose(a, b, rtol=1e-10, atol=1e-11) for a, b in zip(mine, theirs, strict=True))


def test_a_graph_with_another_scale_takes_the_plain_step(x):
    graph = us.graph.grid(3, 4, normalise=us.Normalisation.NONE).to(torch.float64)
    net = us.unroll(us.Fidelity(0.3) + us.Smoothness(0.7), us.GradientDescent(step=0.05), 4, adjoint=us.Stored())
    assert graph.scale != 1
    lowered = us.unroll(us.Fidelity(0.3) + us.Smoothness(0.7), us.GradientDescent(step=0.05), 4)
    assert torch.allclose(net(x, graph), lowered(x, graph), atol=1e-12)


@pytest.mark.parametrize(
    ("objective", "step"),
    [
        (us.Fidelity(0.3) + us.Smoothness(0.7), us.InverseLipschitz()),
        (us.Fidelity(0.3) + us.EdgeSmoothness(torch.ones(17)), us.Fixed(0.5)),
        (us.Fidelity(0.3, metric=us.Relaxed(3, name="U") * us.Relaxed(3, name="V")), us.Fixed(0.5)),
        (us.Smoothness(0.7), 0.5),
    ],
)
def test_what_cannot_be_collected_is_left_alone(objective, step):
    assert fused_step(as_objective(objective), step) is None


def test_layers_that_keep_nothing_of_h():
    gcn = fused_step(convolution_objective(3), us.Fixed(0.5))
    assert gcn.h.zero
    assert gcn.x.zero
    assert list(gcn.sh.parts.values()) == [1.0]  # A H W, as it is written
    for name in ("GCNII", "GCNII-constant"):
        gcnii = build(name, teleport=0.2).propagation._fused
        assert gcnii.h.zero
        assert gcnii.ratio == pytest.approx(0.25)  # ((1 − a) A H + a X) T: one product with T
    air = models.AirGNN(3, 2, residual=0.4).propagation._fused
    assert air.h.zero
    assert air.x.zero
    assert air.sh.at(None) == pytest.approx(1.0)
    appnp = models.APPNP(3, 2, teleport=0.1).propagation._fused
    assert appnp.h.zero
    assert appnp.sh.at(None) == pytest.approx(0.9)
    assert appnp.x.at(None) == pytest.approx(0.1)


def test_a_step_that_forgets_everything_gives_zero(graph, x):
    net = us.unroll(us.Ridge(1.0), us.GradientDescent(step=0.5), 2, adjoint=us.Stored())
    assert torch.equal(net(x, graph), torch.zeros_like(x))


class HalfStep(us.GradientDescent):
    """A rule that takes half of the step it names."""

    def update(self, state, problem):
        (h,) = state
        return (problem.descend(h, 0.5 * self.step_size(problem)),)


def test_a_rule_that_takes_another_step_gets_it():
    graph = us.graph.ring(7).to(torch.float64)
    x = torch.randn(7, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    objective = us.Fidelity(0.3) + us.Smoothness(0.7)
    half = us.unroll(objective, HalfStep(step=0.5), depth=3, adjoint=us.Stored())
    plain = us.unroll(objective, us.GradientDescent(step=0.25), depth=3, adjoint=us.Stored())
    assert torch.allclose(half(x, graph), plain(x, graph), atol=1e-12)
