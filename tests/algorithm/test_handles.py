"""An algorithm says which kinds of terms it handles, and refuses the others by name."""

from dataclasses import dataclass
from typing import Any

import pytest
import torch

import unspool as us

STEPPED = [us.GradientDescent(), us.ProximalGradient(), us.Accelerated(), us.Chebyshev()]


class Stochastic(us.Term):
    """A kind of one's own, that no shipped rule has heard of."""

    kind = us.Kind("stochastic", ("draw",))

    def value(self, h, given):
        return h.square().sum((-2, -1))

    def draw(self):
        return None


@pytest.mark.parametrize("algorithm", [*STEPPED, us.Exact()], ids=lambda a: a.name)
def test_a_kind_that_a_rule_has_not_heard_of_is_refused_by_name(algorithm):
    with pytest.raises(us.IncompatibleError, match=rf"(?i){algorithm.name}.* Stochastic"):
        us.unroll(us.Fidelity(1.0) + Stochastic(), algorithm, depth=None if isinstance(algorithm, us.Exact) else 3)


def test_so_it_is_by_the_solver(graph, x):
    objective = us.Fidelity(1.0) + Stochastic()
    for use in (
        lambda: us.minimise(objective, x, graph),
        lambda: us.testing.check_algorithm(us.GradientDescent(), objective),
        lambda: us.unroll(objective, Draws(), depth=2, adjoint=us.Implicit()),
    ):
        with pytest.raises(us.IncompatibleError, match="Stochastic"):
            use()
    trace = us.unroll(objective, Draws(), depth=2).trace(x, graph)
    assert trace.distance == (None, None)
    assert "Stochastic" in trace.reason


class Draws(us.GradientDescent):
    """A rule for that kind."""

    handles = (us.Kind.SMOOTH, Stochastic.kind)

    def update(self, state, problem):
        return super().update(state, problem)


@dataclass(frozen=True, eq=False)
class HeavyBall(us.Algorithm):
    """As in docs/extend.md: it never asks for a proximal operator."""

    step: Any = 0.2
    momentum: Any = 0.5

    def init(self, h, problem):
        return (h, h)

    def update(self, state, problem):
        h, before = state
        moved = h - problem.gradient(h) * self.step_size(problem)
        return (moved + (h - before) * problem[self.momentum], h)


class PlainDescent(us.Algorithm):
    """A plain class, no dataclass."""

    def update(self, state, problem):
        return (state[0] - problem.gradient(state[0]) * 0.2,)


class Halves(us.ProximalGradient):
    """Inherits from a proximal rule, and drops the proximal step."""

    def update(self, state, problem):
        return (state[0] - problem.gradient(state[0]) * (self.step_size(problem) / 2),)


class Careless(us.Algorithm):
    """Forgets its parent's check."""

    def check(self, objective):
        pass

    def update(self, state, problem):
        return (state[0] - problem.gradient(state[0]) * 0.2,)


@pytest.mark.parametrize("algorithm", [HeavyBall(), PlainDescent(), Halves(), Careless()], ids=lambda a: a.name)
def test_a_rule_that_says_nothing_handles_smooth_terms_only(algorithm):
    us.testing.check_algorithm(algorithm)
    objective = us.Fidelity(0.3) + us.Smoothness(0.7) + us.NonNegative()
    for use in (
        lambda: us.unroll(objective, algorithm, depth=3),
        lambda: us.testing.check_algorithm(algorithm, objective),
    ):
        with pytest.raises(us.IncompatibleError, match=rf"{algorithm.name} .* NonNegative .* handles"):
            use()


class Proximal(us.Algorithm):
    """A proximal rule that says so."""

    handles = (us.Kind.SMOOTH, us.Kind.PROXIMABLE)

    def update(self, state, problem):
        (h,) = state
        step = self.step_size(problem)
        return (problem.prox(h - problem.gradient(h) * step, step),)


class Slower(Proximal):
    """Changes nothing about the step, so what its parent handles holds."""

    def step_size(self, problem):
        return super().step_size(problem) / 2


class Boasts(Proximal):
    """Says that it handles proximable terms and drops them."""

    handles = (us.Kind.SMOOTH, us.Kind.PROXIMABLE)

    def update(self, state, problem):
        (h,) = state
        return (h - problem.gradient(h) * self.step_size(problem),)


@pytest.mark.parametrize("algorithm", [Proximal(), Slower()], ids=lambda a: a.name)
def test_a_rule_that_says_so_handles_proximable_terms(algorithm, graph, x):
    objective = us.Fidelity(0.3) + us.Smoothness(0.7) + us.Sparse(0.1)
    us.testing.check_algorithm(algorithm)
    us.testing.check_algorithm(algorithm, objective)
    deep = us.unroll(objective, algorithm, depth=300)(x, graph)
    assert torch.allclose(deep, us.minimise(objective, x, graph), atol=1e-7)


def test_a_false_claim_breaks_the_law():
    with pytest.raises(us.testing.LawBroken, match="Boasts"):
        us.testing.check_algorithm(Boasts())  # without naming an objective: each kind that it claims is tried


@pytest.mark.parametrize("handles", ["smooth", 3, (us.Fidelity,)])
def test_a_claim_that_names_no_kind_is_a_mistake(handles):
    rule = type("Odd", (PlainDescent,), {"handles": handles})()
    with pytest.raises(TypeError, match=r"Odd\.handles"):
        us.unroll(us.Fidelity(1.0), rule, depth=2)


def test_one_kind_need_not_be_a_tuple():
    rule = type("One", (PlainDescent,), {"handles": us.Kind.SMOOTH})()
    assert us.unroll(us.Fidelity(1.0), rule, depth=2)
