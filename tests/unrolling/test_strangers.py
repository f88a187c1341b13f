"""Nothing trains that the network does not own, and nothing it owns is left out in silence."""

import copy
import pickle
from dataclasses import dataclass
from typing import Any

import pytest
import torch

import unspool as us

LAYER = torch.nn.Linear(3, 3, bias=False).double()
TRAINED = torch.full((), 0.3, dtype=torch.float64, requires_grad=True)


@dataclass(frozen=True, eq=False)
class Through(us.SmoothTerm):
    """½ Σ h f(h) with a function that hides where its numbers come from."""

    function: Any
    uses_input = False

    def value(self, h, given):
        return (h * self.function(h)).sum((-2, -1)) / 2

    def gradient(self, h, given):
        return self.function(h)

    def lipschitz(self, given):
        return 2.0


class Global(us.StencilTerm):
    uses_input = False

    def value(self, h, given):
        return TRAINED * h.square().sum((-2, -1))

    def stencil(self, given):
        return us.Stencil(h=2 * TRAINED)


class Threshold(us.Sparse):
    def radius(self, step, given):
        return step * TRAINED


class Damped(us.Algorithm):
    handles = (us.Kind.SMOOTH, us.Kind.PROXIMABLE)

    def update(self, state, problem):
        (h,) = state
        return (h - problem.gradient(h) * 0.3 * TRAINED,)


class ByAutograd(Through):
    """Makes tensors that ask for gradients, but only for its own use."""

    def gradient(self, h, given):
        with torch.enable_grad():
            at = h.view_as(h) if h.requires_grad else h.detach().requires_grad_()
            return torch.autograd.grad(self.value(at, given).sum(), at, create_graph=True)[0]


def plain(h):
    return 0.5 * h


STRANGE = {
    "closure": (Through(lambda h: 1.0 * LAYER(h)), us.GradientDescent(0.3)),
    "bound method": (Through(LAYER.forward), us.GradientDescent(0.3)),
    "global stencil": (Global(), us.GradientDescent(0.3)),
    "global threshold": (Threshold(0.1), us.ProximalGradient(0.3)),
    "algorithm": (us.Smoothness(0.5), Damped()),
}


@pytest.mark.parametrize("adjoint", [None, us.Stored(), us.Checkpointed(every=2)], ids=str)
@pytest.mark.parametrize("name", STRANGE)
def test_what_the_network_would_not_own_is_refused_by_name(name, adjoint, graph, x):
    term, algorithm = STRANGE[name]
    net = us.unroll(us.Fidelity(0.5) + term, algorithm, 3, adjoint=adjoint).double()
    culprit = algorithm.name if name == "algorithm" else term.name
    with pytest.raises(us.IncompatibleError, match=f"{culprit} depends on a tensor that requires gradients"):
        net(x, graph)
    with torch.no_grad():
        net(x, graph)  # nothing trains
    with pytest.raises(us.IncompatibleError, match=culprit):
        copy.deepcopy(net)(x, graph)


@pytest.mark.parametrize("adjoint", [us.Stored(), us.Implicit()], ids=str)
@pytest.mark.parametrize("kind", [Through, ByAutograd])
def test_what_asks_for_gradients_only_inside_is_not_suspected(kind, adjoint, graph, x):
    alpha = us.Learnable(0.5, within=(0, 1), name="α")
    net = us.unroll(us.Fidelity(alpha) + kind(plain), us.GradientDescent(0.3), 3, adjoint=adjoint).double()
    before = pickle.dumps(net)
    net(x.requires_grad_(), graph).sum().backward()
    assert x.grad is not None
    net.zero_grad()
    assert pickle.dumps(net) == before  # it keeps nothing of having been looked at


@dataclass(frozen=True, eq=False)
class Hidden(us.SmoothTerm):
    weight: Any
    uses_input = False

    def value(self, h, given):
        return torch.log(torch.cosh(h)).sum((-2, -1)) * given[self.weight]

    def gradient(self, h, given):
        return torch.tanh(h) * given[self.weight].detach()

    def lipschitz(self, given):
        return given[self.weight]


class HiddenRadius(us.Sparse):
    def radius(self, step, given):
        return step * given[self.weight].detach()


@pytest.mark.parametrize("kind", [Hidden, HiddenRadius])
def test_a_coefficient_that_the_minimiser_cannot_train_is_refused_by_name(kind, graph, x):
    lost = us.Learnable(0.4, within=(0, None), name="lost")
    found = us.Learnable(0.5, within=(0, None), name="found")
    net = us.unroll(us.Fidelity(found) + kind(lost), us.ProximalGradient(), 2, adjoint=us.Implicit()).double()
    with pytest.raises(us.IncompatibleError, match=f"{kind.__name__} depends on its coefficient lost"):
        net(x, graph)
    with torch.no_grad():
        net(x, graph)
