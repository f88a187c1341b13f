"""Layers that are one op give what the rule gives step by step: values, gradients, masks and their order."""

import copy

import pytest
import torch
from torch import nn
from torch.func import functional_call, stack_module_state, vmap

import unspool as us
from unspool.algorithm import fused
from unspool.unrolling import whole_layer

pytestmark = pytest.mark.long


def gcnii(adjoint=None, rate=0.3):
    torch.manual_seed(0)
    theta, w = us.Schedule(lambda k: 0.5 / k, name="θ"), us.Relaxed(4, per_layer=True, name="W")
    t = theta * w + (1 - theta)
    objective = us.Fidelity(0.2, metric=t) + us.Smoothness(0.8, metric=t) + us.Ridge(1.0, metric=1 - t)
    between = us.nn.Dropout(rate) if rate else None
    rule = us.ProximalGradient(step=0.5)
    return us.unroll(objective + us.NonNegative(), rule, 5, adjoint=adjoint, between=between).double()


@pytest.fixture
def kernels(monkeypatch):
    """As if a kernel were there; the op itself then computes its formula. Counts the layers that were taken."""
    taken = []
    whole = whole_layer.whole_layer

    def counted(*args):
        found = whole(*args)
        taken.append(found is not None)
        return found

    monkeypatch.setattr(fused, "fits", lambda *args: True)
    monkeypatch.setattr(whole_layer, "whole_layer", counted)
    return taken


def results(net, x, graph, count=2):
    """Outputs and gradients of some training calls, which go on counting masks, and of one in evaluation."""
    net, x, found = copy.deepcopy(net), x.clone().requires_grad_(), []
    for _ in range(count):
        out = net.train()(x, graph)
        found += [out, *torch.autograd.grad(out.sin().sum(), (x, *(p for p in net.parameters() if p.requires_grad)))]
    return [*found, net.eval()(x, graph)]


@pytest.mark.parametrize(("adjoint", "rate"), [(None, 0.3), (None, 0), (us.Checkpointed(every=2), 0)])
def test_layers_are_the_steps_of_the_rule(kernels, monkeypatch, adjoint, rate):
    net, graph = gcnii(adjoint, rate), us.graph.grid(3, 4).to(torch.float64)
    x = torch.randn(12, 4, dtype=torch.float64)
    found = results(net, x, graph)
    assert all(kernels)
    monkeypatch.setattr(fused, "fits", lambda *args: False)
    kernels.clear()
    wanted = results(net, x, graph)
    assert not any(kernels)
    assert all(torch.allclose(a, b, atol=1e-12) for a, b in zip(found, wanted, strict=True))
    assert torch.equal(found[0], found[3]) == (rate == 0)  # other masks in the second call


def test_trials_with_layers_of_their_own(kernels):
    nets = [gcnii() for _ in range(3)]
    for i, net in enumerate(nets):
        nn.init.normal_(net.coefficients["W"], std=0.2 + i)
    graph, x = us.graph.grid(3, 4).to(torch.float64), torch.randn(12, 4, dtype=torch.float64)
    held, buffers = stack_module_state(nets)
    out = vmap(lambda p, b: functional_call(nets[0], (p, b), (x, graph)))(held, buffers)
    assert all(kernels)
    assert torch.allclose(out[2], nets[2](x, graph), atol=1e-12)


def test_learnt_numbers_and_unknown_modules_between(kernels, monkeypatch):
    graph, x = us.graph.grid(3, 4).to(torch.float64), torch.randn(12, 4, dtype=torch.float64)
    alpha, w = us.Learnable(0.3, per_layer=True, within=(0, 1), name="α"), us.Relaxed(4, name="W")
    objective = us.Fidelity(alpha, metric=w) + us.Smoothness(1 - alpha, metric=w) + us.Ridge(1.0, metric=1 - w)
    rule = us.ProximalGradient(step=0.5)
    net = us.unroll(objective + us.NonNegative(), rule, 3, between=nn.Tanh()).double()
    nn.init.normal_(net.coefficients["W"])
    found = results(net, x, graph)
    assert kernels[:3] == [False, False, True]  # nothing follows the last one
    seen = []
    watched = gcnii()
    watched.between.register_forward_hook(lambda *args: seen.append(1))
    watched(x, graph)
    assert len(seen) == 5
    monkeypatch.setattr(fused, "fits", lambda *args: False)
    assert all(torch.allclose(a, b, atol=1e-12) for a, b in zip(found, results(net, x, graph), strict=True))


def test_other_rules_and_problems_take_their_own_steps(kernels):
    graph, x = us.graph.grid(3, 4).to(torch.float64), torch.randn(12, 4, dtype=torch.float64)
    w = us.Relaxed(4, name="W")
    smooth = us.Smoothness(1.0, metric=w) + us.Ridge(1.0, metric=1 - w)
    for objective in (smooth + us.Sparse(0.1), us.Fidelity(1.0, metric=w) + us.NonNegative()):
        us.unroll(objective, us.ProximalGradient(step=0.5), 2).double()(x, graph)
    assert not any(kernels)
