"""check_term finds terms that are not what they say, however far from the beaten track the lie is."""

from dataclasses import dataclass, field, replace
from typing import Any

import pytest
import torch

import unspool as us


class Smooth(us.SmoothTerm):
    """Σ f(h) entry by entry, with autograd for its gradient: right in everything but its claims."""

    uses_input = False
    bound = 1.0

    def entry(self, h, given):
        raise NotImplementedError

    def value(self, h, given):
        return self.entry(h, given).sum((-2, -1))

    def gradient(self, h, given):
        with torch.enable_grad():
            at = h.view_as(h) if h.requires_grad else h.detach().requires_grad_()
            return torch.autograd.grad(self.entry(at, given).sum(), at, create_graph=True)[0]

    def lipschitz(self, given):
        return self.bound


class Sine(Smooth):
    def entry(self, h, given):
        return torch.sin(h)


@dataclass(frozen=True, eq=False)
class WeightedSine(Smooth):
    """A positive weight is all that the default of is_convex asks for."""

    weight: Any = 0.5

    def entry(self, h, given):
        return torch.sin(h) * given[self.weight]


class Bumps(Smooth):
    """Bends downwards here and there."""

    bound = 1.6

    def entry(self, h, given):
        return torch.cos(h) + 0.3 * h.square()


class FarAway(Smooth):
    """A parabola, but beyond 40 a falling one."""

    bound = 2.0

    def entry(self, h, given):
        return h.square() - 1.5 * torch.relu(h.abs() - 40).square()


class Dip(Smooth):
    """Bends downwards beside the input only."""

    bound = 4.0
    uses_input = True

    def entry(self, h, given):
        away = (h - given.x) / 0.02
        return 0.1 * h.square() - 4e-4 * torch.exp(-away.square() / 2)


class OneEntry(Smooth):
    """Of all entries one bends downwards, slightly."""

    bound = 2.0

    def entry(self, h, given):
        sign = torch.ones_like(h)
        sign[..., 7, 1] = -0.01
        return h.square() * sign


class Saddle(Smooth):
    """The first two channels against each other."""

    bound = 1.0

    def entry(self, h, given):
        return h[..., :1] * h[..., 1:2]


class Sphere(us.ProximableTerm):
    """Rows of length one: a projection, and not a convex set."""

    uses_input = False

    def value(self, h, given):
        fine = ((h.norm(dim=-1) - 1).abs() < 1e-9).all(-1)
        return torch.where(fine, 0.0, torch.inf).to(h.dtype)

    def prox(self, v, step, given):
        return v / v.norm(dim=-1, keepdim=True).clamp_min(1e-12)


CONVEX_IN_WORDS_ONLY = [Sine(), WeightedSine(), Bumps(), FarAway(), Dip(), OneEntry(), Saddle()]


@pytest.mark.parametrize("term", CONVEX_IN_WORDS_ONLY, ids=lambda t: t.name)
def test_a_false_claim_of_convexity_is_found(term):
    with pytest.raises(us.testing.LawBroken, match=f"{term.name}.* convex"):
        us.testing.check_term(term)


@pytest.mark.parametrize("term", CONVEX_IN_WORDS_ONLY, ids=lambda t: t.name)
def test_who_claims_nothing_keeps_the_law(term):
    honest = type(f"Honest{term.name}", (type(term),), {"is_convex": lambda self, given: False})()
    us.testing.check_term(honest)


def test_a_constraint_that_is_not_convex_is_found():
    with pytest.raises(us.testing.LawBroken, match="Sphere"):
        us.testing.check_term(Sphere())


class Huber(Smooth):
    """A parabola as far as random numbers near 1 can see; calls itself quadratic."""

    affine_gradient = True
    bound = 2.0

    def entry(self, h, given):
        return torch.where(h.abs() < 8, h.square(), 16 * h.abs() - 64)


class Curl(Smooth):
    """Gradients that are those of the value for small numbers only."""

    def entry(self, h, given):
        return torch.log(torch.cosh(h))

    def gradient(self, h, given):
        return torch.tanh(h).clamp(-0.99999, 0.99999)


class TightBound(us.SmoothTerm):
    """‖B H‖² with a third of its Lipschitz constant, which few directions exceed."""

    uses_input = False

    def value(self, h, given):
        return (h * given.graph.laplacian_times(h)).sum((-2, -1))

    def gradient(self, h, given):
        return 2 * given.graph.laplacian_times(h)

    def lipschitz(self, given):
        return 2.2


class Unstackable(us.SmoothTerm):
    """Mixes the signals of a stack."""

    uses_input = False

    def value(self, h, given):
        return h.square().sum((-2, -1))

    def gradient(self, h, given):
        return 2 * h if h.ndim == 2 else 2 * h.mean(0, keepdim=True).expand(h.shape)

    def lipschitz(self, given):
        return 2.0


@pytest.mark.parametrize(
    ("term", "words"),
    [
        (Huber(), "calls itself quadratic"),
        (Curl(), "differs from autograd"),
        (TightBound(), "lipschitz says 2.2"),
        (Unstackable(), "stack"),
    ],
    ids=lambda v: getattr(v, "name", None),
)
def test_other_false_claims_are_found(term, words):
    with pytest.raises(us.testing.LawBroken, match=words):
        us.testing.check_term(term)


class Coupled(us.RowSparse):
    separable = True


class NotAnInterval(us.Sparse):
    interval = True


class Mentions(us.Fidelity):
    uses_input = False


@pytest.mark.parametrize(
    ("term", "words"),
    [
        (Coupled(0.4), "acts on every entry alone"),
        (NotAnInterval(0.4), "is an interval"),
        (Mentions(0.4), "does not mention X"),
    ],
    ids=lambda v: getattr(v, "name", None),
)
def test_false_flags_are_found(term, words):
    with pytest.raises(us.testing.LawBroken, match=words):
        us.testing.check_term(term)


class Masked(us.Fidelity):
    """A value of its own over its parent's stencil."""

    def value(self, h, given):
        return super().value(h[..., :6, :], us.Given(given.x[:6], given.graph))


def test_a_value_that_is_not_the_stencils_is_found():
    with pytest.raises(us.testing.LawBroken, match=r"Masked\.gradient differs from autograd of its value"):
        us.testing.check_term(Masked(0.5))


def test_a_large_graph_is_looked_at_in_places():
    graph = us.graph.grid(20, 20).to(torch.float64)
    us.testing.check_term(us.Smoothness(0.5), graph=graph)
    with pytest.raises(us.testing.LawBroken, match="convex"):
        us.testing.check_term(Sine(), graph=graph)


@dataclass(frozen=True, eq=False)
class LogCosh(Smooth):
    weight: Any = 0.4

    def entry(self, h, given):
        return (torch.logaddexp(h - given.x, given.x - h)) * given[self.weight]

    uses_input = True


@dataclass(frozen=True, eq=False)
class Plain(us.SmoothTerm):
    """w Σ √(1 + (h − x)²), by hand."""

    weight: Any = 0.4

    def value(self, h, given):
        return (1 + (h - given.x).square()).sqrt().sum((-2, -1)) * given[self.weight]

    def gradient(self, h, given):
        d = h - given.x
        return d / (1 + d.square()).sqrt() * given[self.weight]

    def lipschitz(self, given):
        return given[self.weight]


class DetachedH(Plain):
    def gradient(self, h, given):
        return super().gradient(h.detach(), given)


class DetachedX(Plain):
    def gradient(self, h, given):
        return super().gradient(h, replace(given, x=given.x.detach()))


class DetachedScale(Plain):
    def gradient(self, h, given):
        d = h - given.x
        return d / (1 + d.detach().square()).sqrt() * given[self.weight]


class DetachedWeight(Plain):
    def gradient(self, h, given):
        d = h - given.x
        return d / (1 + d.square()).sqrt() * torch.as_tensor(given[self.weight]).detach()


class NumberWeight(Plain):
    def gradient(self, h, given):
        d = h - given.x
        return d / (1 + d.square()).sqrt() * float(given[self.weight])


class NoGrad(Plain):
    @torch.no_grad()
    def gradient(self, h, given):
        return super().gradient(h, given)


class WithoutCreateGraph(Plain):
    def gradient(self, h, given):
        with torch.enable_grad():
            at = h.detach().requires_grad_()
            return torch.autograd.grad(self.value(at, given).sum(), at)[0]


class DetachedProx(us.Sparse):
    def prox(self, v, step, given):
        return super().prox(v.detach(), step, given)


class DetachedRadius(us.Sparse):
    def radius(self, step, given):
        return step * torch.as_tensor(given[self.weight]).detach()


class NumberStep(us.RowSparse):
    def radius(self, step, given):
        return float(step) * given[self.weight]


class NoGradProx(us.RowSparseFidelity):
    @torch.no_grad()
    def prox(self, v, step, given):
        return super().prox(v, step, given)


HIDDEN = {
    DetachedH: "H",
    DetachedX: "X",
    DetachedScale: "H",
    DetachedWeight: "weight",
    NumberWeight: "weight",
    NoGrad: "H",
    WithoutCreateGraph: "H",
    DetachedProx: "H",
    DetachedRadius: "weight",
    NumberStep: "the step",
    NoGradProx: "X",
}


@pytest.mark.parametrize("weight", [0.4, us.Learnable(0.4, within=(0, 2), name="weight")], ids=["fixed", "learnt"])
@pytest.mark.parametrize("kind", HIDDEN, ids=lambda k: k.__name__)
def test_what_autograd_cannot_see_is_found(kind, weight):
    with pytest.raises(
        us.testing.LawBroken, match=f"autograd does not see how {kind.__name__}.* depends on .*{HIDDEN[kind]}"
    ):
        us.testing.check_term(kind(weight))


@pytest.mark.long
@pytest.mark.parametrize("weight", [0.4, us.Learnable(0.4, within=(0, 2), name="weight")], ids=["fixed", "learnt"])
@pytest.mark.parametrize(
    "kind", [Plain, LogCosh, us.Sparse, us.RowSparse, us.RowSparseFidelity, us.Fidelity, us.Smoothness, us.Ridge]
)
def test_what_autograd_sees_keeps_the_law(kind, weight):
    for seed in range(3):
        us.testing.check_term(kind(weight), seed=seed)


class HiddenValue(Plain):
    def value(self, h, given):
        return super().value(h.detach(), given)


class OwnModule(Plain):
    def __init__(self):
        super().__init__(0.4)
        object.__setattr__(self, "layer", torch.nn.Linear(3, 3).double())

    def value(self, h, given):
        return super().value(h, given) + self.layer(h).sum((-2, -1))


@pytest.mark.parametrize(("term", "words"), [(HiddenValue(), "HiddenValue.value"), (OwnModule(), "OwnModule.layer")])
def test_what_cannot_train_is_said_in_a_sentence(term, words):
    with pytest.raises(us.testing.LawBroken, match=words):
        us.testing.check_term(term)


class EveryOther(us.LinearOperator):
    """Weighs the rows of a graph of twenty nodes."""

    weights = torch.linspace(0, 1, 20, dtype=torch.float64)[:, None]

    def __call__(self, h, graph):
        return h * self.weights

    adjoint = __call__

    def squared_norm(self, graph):
        return 1.0


@dataclass(frozen=True, eq=False)
class FewWeighed(us.CompositeTerm):
    operator: Any = field(default_factory=EveryOther)

    def outer_value(self, z, given):
        return z.abs().sum((-2, -1))

    def outer_prox(self, z, step, given):
        return us.ops.prox.soft_threshold(z, step)


def test_parts_that_belong_to_one_graph_ask_for_it():
    graph = us.graph.path(20).to(torch.float64)
    for check, part in ((us.testing.check_operator, EveryOther()), (us.testing.check_term, FewWeighed())):
        check(part, graph=graph)
        with pytest.raises(us.IncompatibleError, match=r"does not run on the graph of 12 nodes .*: graph="):
            check(part)
        with pytest.raises(RuntimeError):
            check(part, graph=us.graph.path(5).to(torch.float64))
