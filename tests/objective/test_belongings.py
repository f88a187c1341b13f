"""Whatever a term or a rule keeps that trains belongs to the network, wherever it is kept; or is refused by name."""

import copy
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn

import unspool as us


def leaf(name="w", initial=0.3):
    return us.Learnable(initial, name=name)


class Kept(us.SmoothTerm):
    """Σ weights · ‖H‖², with weights wherever a subclass keeps them."""

    uses_input = False

    def weights(self):
        raise NotImplementedError

    def value(self, h, given):
        return h.square().sum((-2, -1)) * sum(given[w] for w in self.weights())

    def gradient(self, h, given):
        return 2 * h * sum(given[w] for w in self.weights())

    def lipschitz(self, given):
        return 2 * sum(given[w] for w in self.weights())


@dataclass(frozen=True, eq=False)
class InList(Kept):
    kept: list = field(default_factory=lambda: [leaf("a"), leaf("b"), 0.1])

    def weights(self):
        return self.kept


@dataclass(frozen=True, eq=False)
class InTuple(Kept):
    kept: tuple = field(default_factory=lambda: (1.0, (leaf("a"), leaf("b"))))

    def weights(self):
        return self.kept[1]


@dataclass(frozen=True, eq=False)
class InDict(Kept):
    kept: dict = field(default_factory=lambda: {"first": leaf("a"), "more": [leaf("b")]})

    def weights(self):
        return [self.kept["first"], *self.kept["more"]]


class InPlainAttribute(Kept):
    def __init__(self):
        self.kept = [leaf("a"), 2 * leaf("b")]

    def weights(self):
        return self.kept


@dataclass(frozen=True, eq=False)
class BesideTheFields(Kept):
    """Made in __post_init__, and in no field."""

    scale: float = 1.0

    def __post_init__(self):
        object.__setattr__(self, "both", (leaf("a"), leaf("b")))

    def weights(self):
        return self.both


@dataclass(frozen=True)
class Settings:
    a: Any
    b: Any


class InADataclass(Kept):
    def __init__(self):
        self.kept = Settings(leaf("a"), leaf("b"))

    def weights(self):
        return (self.kept.a, self.kept.b)


class InAnObject(Kept):
    def __init__(self):
        self.kept = SimpleNamespace(a=leaf("a"), b=leaf("b"))

    def weights(self):
        return (self.kept.a, self.kept.b)


class InSlots(Kept):
    __slots__ = ("kept",)

    def __init__(self):
        self.kept = [leaf("a"), leaf("b")]

    def weights(self):
        return self.kept


class Twice(Kept):
    """A term around a term."""

    def __init__(self):
        self.inner = us.Ridge(leaf("a") + leaf("b"))

    def weights(self):
        return (self.inner.weight,)


class WithGraph(InPlainAttribute):
    """Keeps a graph and itself, which are searched without harm."""

    def __init__(self):
        super().__init__()
        self.graph, self.me, self.kept = us.graph.ring(5), self, [*self.kept, self.kept]

    def weights(self):
        return self.kept[:2]


KINDS = [
    InList, InTuple, InDict, InPlainAttribute, BesideTheFields, InADataclass, InAnObject, InSlots, Twice, WithGraph,
]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS, ids=lambda k: k.__name__)
def test_coefficients_are_found_wherever_they_are_kept(kind, graph, x):
    net = us.unroll(us.Fidelity(0.5) + kind(), us.GradientDescent(step=0.2), depth=3).double()
    assert set(net.state_dict()) == {"coefficients.a", "coefficients.b"}
    net(x, graph).sum().backward()
    assert all(float(p.grad) != 0 for p in net.parameters())
    us.testing.check_unrolled(net)
    assert set(copy.deepcopy(net).state_dict()) == set(net.state_dict())


class ListRule(us.Algorithm):
    """A rule with its coefficients in a list."""

    def __init__(self):
        self.steps = [leaf("first", 0.2), leaf("others", 0.1)]

    def update(self, state, problem):
        (h,) = state
        return (h - problem.gradient(h) * problem[self.steps[min(problem.layer - 1, 1)]],)


def test_so_are_those_of_a_rule(graph, x):
    net = us.unroll(us.Fidelity(0.5) + us.Smoothness(0.5), ListRule(), depth=3).double()
    assert set(net.state_dict()) == {"coefficients.first", "coefficients.others"}
    us.testing.check_unrolled(net)


DEFAULT = leaf("default")


@dataclass(frozen=True, eq=False)
class Shadowed(us.Ridge):
    """The default of a field is not another coefficient."""

    weight: Any = DEFAULT


def test_a_default_that_was_not_taken_is_not_found():
    assert [c.name for c in Shadowed(leaf("mine")).leaves] == ["mine"]
    assert [c.name for c in Shadowed().leaves] == ["default"]


HIDDEN = leaf("hidden")


class OutOfReach(Kept):
    """Takes its weight from the module it is written in."""

    def weights(self):
        return (HIDDEN,)


def test_a_coefficient_that_cannot_be_found_is_named(graph, x):
    net = us.unroll(us.Fidelity(0.5) + OutOfReach(), us.GradientDescent(step=0.2), depth=3).double()
    with pytest.raises(us.IncompatibleError, match=r"hidden.* attribute"):
        net(x, graph)


class OnTheClass(Kept):
    kept = (0.5, [leaf("a")])

    def weights(self):
        return self.kept[1]


class RuleWithClass(us.GradientDescent):
    momentum = leaf("m")


class WithModule(us.Fidelity):
    def __init__(self):
        super().__init__(0.5)
        object.__setattr__(self, "net", nn.Linear(3, 3))


class WithParameter(us.Fidelity):
    def __init__(self):
        super().__init__(0.5)
        object.__setattr__(self, "scale", [nn.Parameter(torch.ones(()))])


class WithTensor(us.Fidelity):
    def __init__(self):
        super().__init__(0.5)
        object.__setattr__(self, "shift", {"by": torch.ones(3, requires_grad=True)})


class WithModuleList(us.GradientDescent):
    def __init__(self):
        super().__init__(0.2)
        object.__setattr__(self, "nets", [nn.Linear(3, 3)])


@pytest.mark.parametrize(
    ("build", "where", "way"),
    [
        (lambda: (OnTheClass(), us.GradientDescent()), r"OnTheClass\.kept\[1\]\[0\]", "field"),
        (lambda: (us.Fidelity(0.5), RuleWithClass()), r"RuleWithClass\.momentum", "field"),
        (lambda: (WithModule(), us.GradientDescent()), r"WithModule\.net", "before the network"),
        (lambda: (WithParameter(), us.GradientDescent()), r"WithParameter\.scale\[0\]", "Learnable"),
        (lambda: (WithTensor(), us.GradientDescent()), r"WithTensor\.shift\['by'\]", "Learnable"),
        (lambda: (us.Fidelity(0.5), WithModuleList()), r"WithModuleList\.nets\[0\]", "before the network"),
    ],
)
def test_what_would_train_but_belong_to_nobody_is_refused(build, where, way):
    term, algorithm = build()
    with pytest.raises(TypeError, match=f"{where} .* {way}"):
        us.unroll(term + us.Smoothness(0.5), algorithm, depth=3)


def test_so_is_a_start_that_wants_gradients():
    with pytest.raises(TypeError, match=r"start .* detach"):
        us.unroll(us.Fidelity(0.5), us.GradientDescent(), depth=3, start=nn.Parameter(torch.ones(3, 1)))


class Frozen(us.Fidelity):
    def __init__(self):
        super().__init__(0.5)
        object.__setattr__(self, "parts", [nn.Tanh(), nn.Linear(2, 2).requires_grad_(False), torch.ones(3)])


def test_what_does_not_train_may_stay():
    assert us.unroll(Frozen() + us.Smoothness(0.5), us.GradientDescent(), depth=3)
