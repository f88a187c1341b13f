"""Layers of unrolled networks, read for what the rule does."""

from dataclasses import dataclass

import pytest
import torch

import unspool as us
from unspool.algorithm import Algorithm
from unspool.objective import Kind

PROBLEM = us.Fidelity(0.3) + us.Smoothness(0.7)


def as_maps(layer):
    return [torch.as_tensor(t, dtype=torch.float64) for t in (layer.fidelity, layer.smoothness, layer.ridge)]


def replayed(found, x, graph):
    """H ← H − (H (a + ridge) + L H b − X a), layer by layer."""
    h = x
    for layer in found.layers:
        a, b, ridge = (m * torch.eye(x.shape[1], dtype=x.dtype) if m.ndim < 2 else m for m in as_maps(layer))
        h = h - h @ (a + ridge) - (graph.laplacian() @ h) @ b + x @ a
    return h


def test_layers_have_their_coefficients():
    alpha = us.Learnable(0.2, per_layer=True, name="α")
    net = us.unroll(
        us.Fidelity(alpha) + us.Smoothness(1 - alpha) + us.Ridge(0.05), us.GradientDescent(step=0.5), depth=3
    )
    with torch.no_grad():
        net.coefficients["α"].copy_(torch.tensor([0.1, -0.5, 3.0]))
    layers = net.read_back().layers
    assert [layer.alpha for layer in layers] == pytest.approx([0.1, -0.5, 3.0], abs=1e-6)
    assert [layer.beta for layer in layers] == pytest.approx([0.9, 1.5, -2.0], abs=1e-6)
    assert [layer.fidelity_psd for layer in layers] == [True, False, True]
    assert [layer.smoothness_psd for layer in layers] == [True, True, False]
    # η·curvature at λ = 0 and 2: α + 0.05 and α + 2β + 0.05
    assert [layer.stable for layer in layers] == [True, False, False]
    assert [layer.descends for layer in layers] == [True, False, False]
    assert [layer.convex for layer in layers] == [True, False, False]
    assert all(layer.ridge == pytest.approx(0.05) for layer in layers)


def test_descends_is_what_the_trace_sees():
    for step, expected in ((0.9, True), (1.2, False)):  # L = 2 (0.1 + 0.9 · 2) = 3.8, 2/L = 0.526 in units of η
        net = us.unroll(us.Fidelity(0.1) + us.Smoothness(0.9), us.GradientDescent(step=step * 2 / 3.8), depth=1)
        assert net.read_back().layers[0].descends is expected


def test_a_relaxed_metric_is_seen():
    w = us.Relaxed(2, initial=torch.tensor([[1.0, 1.0], [0.0, 1.0]]), name="W")
    layer = us.unroll(us.Smoothness(0.5, metric=w), us.GradientDescent(step=0.5), depth=1).read_back().layers[0]
    assert layer.asymmetry > 0.1
    assert not layer.descends
    assert torch.allclose(
        torch.as_tensor(layer.smoothness), 0.5 * torch.tensor([[1.0, 1.0], [0.0, 1.0]], dtype=torch.float64)
    )


def test_a_free_ridge_is_seen():
    ridge = us.Ridge(0.5, metric=us.Relaxed(2, initial=torch.tensor([[0.5, 0.4], [0.0, 0.5]])))
    layer = us.unroll(us.Fidelity(0.5) + ridge, us.GradientDescent(step=0.5), depth=1).read_back().layers[0]
    assert layer.asymmetry > 0.1
    assert not layer.descends


@dataclass(frozen=True, eq=False)
class Half(us.GradientDescent):
    """Half the step that its parent takes."""

    def update(self, state, problem):
        (h,) = state
        return (h - problem.gradient(h) * (0.5 * self.step_size(problem)),)


@dataclass(frozen=True, eq=False)
class Damped(us.GradientDescent):
    """A gradient step, then a part of the way back to zero: a ridge that no term has."""

    def update(self, state, problem):
        (h,) = super().update(state, problem)
        return (h * 0.9,)


class Counting(Algorithm):
    """One iterate, and a number that changes from layer to layer."""

    def init(self, h, problem):
        return (h, 1.0)

    def update(self, state, problem):
        h, size = state
        return (h - problem.gradient(h) * (0.4 * size), size / 2)


@dataclass(frozen=True, eq=False)
class ProximalHalf(us.ProximalGradient):
    """Half the step, then the proximal operator."""

    handles = (Kind.SMOOTH, Kind.PROXIMABLE)

    def update(self, state, problem):
        (h,) = state
        step = 0.5 * self.step_size(problem)
        return (problem.prox(h - problem.gradient(h) * step, step),)


RULES = [us.GradientDescent(step=0.5), us.GradientDescent(), us.ProximalGradient(step=0.4), Half(step=0.8), Damped(step=0.5), Counting(), ProximalHalf(step=0.6)]  # fmt: skip


@pytest.mark.parametrize("rule", RULES, ids=lambda r: r.name)
@pytest.mark.parametrize("scaled", [False, True])
def test_what_was_read_is_what_the_network_does(rule, scaled, graph, x):
    """The law behind reading: replaying the layers gives the network's output, whatever the rule inherits."""
    where = us.graph.path(12, normalise=us.Normalisation.NONE, loops=0).to(torch.float64) if scaled else graph
    metric = us.Fixed(torch.tensor([[1.0, 0.2, 0.0], [0.2, 0.5, 0.1], [0.0, 0.1, 0.8]], dtype=torch.float64), "T")
    problem = us.Fidelity(0.3) + us.Smoothness(0.1, metric=metric) + us.Ridge(0.05)
    net = us.unroll(problem, rule, depth=3)
    assert torch.allclose(replayed(net.read_back(where), x, where), net(x, where), atol=1e-12)


def test_a_subclass_is_not_read_as_its_parent():
    parent, child = (
        us.unroll(PROBLEM, kind(step=0.5), depth=1).read_back().layers[0] for kind in (us.GradientDescent, Half)
    )
    assert (parent.alpha, parent.beta) == (pytest.approx(0.3), pytest.approx(0.7))
    assert (child.alpha, child.beta) == (pytest.approx(0.15), pytest.approx(0.35))


def test_a_proximal_step_of_ones_own_is_named(graph, x):
    net = us.unroll(PROBLEM + us.NonNegative(), ProximalHalf(step=0.5), depth=2)
    found = net.read_back()
    assert "NonNegative" in found.note
    h = x
    for layer in found.layers:
        h = torch.relu(h - (h - x) * layer.alpha - (graph.laplacian() @ h) * layer.beta)
    assert torch.allclose(h, net(x, graph), atol=1e-12)


class TwoHops(Algorithm):
    """Two gradient steps in one layer."""

    def update(self, state, problem):
        (h,) = state
        for _ in range(2):
            h = h - problem.gradient(h) * 0.4
        return (h,)


class Rounded(Algorithm):
    """Does something to an iterate that polynomials cannot."""

    def update(self, state, problem):
        (h,) = state
        return (torch.round(h),)


@dataclass(frozen=True, eq=False)
class Twice(us.ProximalGradient):
    """Goes on after the proximal operator."""

    handles = (Kind.SMOOTH, Kind.PROXIMABLE)

    def update(self, state, problem):
        (h,) = super().update(state, problem)
        return (h - problem.gradient(h) * 0.1,)


@pytest.mark.parametrize(
    ("net", "true", "false"),
    [
        (lambda: us.unroll(PROBLEM, us.Accelerated(), depth=2), "keeps 2 iterates", "reaches"),
        (lambda: us.unroll(PROBLEM, TwoHops(), depth=2), "reaches further", "iterates"),
        (lambda: us.unroll(PROBLEM, Rounded(), depth=2), "more than add, scale", "iterates"),
        (lambda: us.unroll(PROBLEM + us.NonNegative(), Twice(step=0.5), depth=2), "more than one proximal", "iterates"),
        (lambda: us.unroll(PROBLEM, us.Exact()), "minimiser", "iterates"),
        (lambda: us.unroll(PROBLEM, us.GradientDescent(), depth=3, adjoint=us.Implicit()), "minimiser", "iterates"),
    ],
    ids=["momentum", "two hops", "not linear", "after the prox", "exact", "implicit"],
)  # fmt: skip
def test_refusals_say_what_is_true(net, true, false):
    with pytest.raises(us.IncompatibleError, match=true) as refusal:
        net().read_back()
    assert false not in str(refusal.value)


@pytest.mark.parametrize("rule", [us.Accelerated(), us.Chebyshev(), TwoHops()], ids=lambda r: r.name)
def test_the_way_out_of_several_iterates_leads_somewhere(rule, graph, x):
    net = us.unroll(PROBLEM, rule, depth=4)
    with pytest.raises(us.IncompatibleError, match="reads the whole network"):
        net.read_back()
    found = us.read_back_hops(net.hops(graph), basis=net.adjoint.basis)
    assert torch.allclose(replayed(found, x, graph), net(x, graph), atol=1e-9)
