"""A rule of one's own is lowered if all its steps are linear, and keeps its steps if not; never anything between."""

from dataclasses import dataclass
from typing import Any

import pytest
import torch

import unspool as us

OBJECTIVE = us.Fidelity(0.3) + us.Smoothness(0.7)


class Rule(us.Algorithm):
    """A plain class with a fixed step."""

    step = 0.2


class Descent(Rule):
    def update(self, state, problem):
        return (state[0] - problem.gradient(state[0]) * 0.2,)


class Summing(Rule):
    """Python's sum begins with 0."""

    def update(self, state, problem):
        (h,) = state
        return (sum([h, problem.gradient(h) * -0.1, -problem.gradient(h) / 10]),)


class Restarting(Rule):
    """A linear step that depends on the number of the layer, and a state that grows and shrinks."""

    def update(self, state, problem):
        h = state[0]
        moved = h - problem.gradient(h) * 0.2
        if problem.layer % 3 == 0:
            return (moved,)
        return (moved + (h - state[-1]) * 0.3, *state[:2])


@dataclass(frozen=True, eq=False)
class Anderson(us.Algorithm):
    """Extrapolates from the last two steps: the first is a plain one, the others look at values."""

    step: Any = 0.2

    def init(self, h, problem):
        return (h, ())

    def update(self, state, problem):
        h, history = state
        moved = h - problem.gradient(h) * self.step_size(problem)
        history = (*history, (h, moved))[-2:]
        if len(history) == 2:
            (a, fa), (b, fb) = history
            change = (fb - b) - (fa - a)
            share = torch.sum((fb - b) * change) / torch.sum(change * change).clamp_min(1e-30)
            moved = fb - share * (fb - fa)
        return (moved, history)


class Functional(Rule):
    """Asks torch.func for its gradient, which raises a plain ValueError on anything but tensors."""

    def update(self, state, problem):
        (h,) = state
        slope = torch.func.vmap(problem.gradient)(torch.func.vmap(lambda row: row)(h)[None])[0]
        return (h - slope * 0.2,)


class LateActivation(Rule):
    def update(self, state, problem):
        h = state[0] - problem.gradient(state[0]) * 0.2
        return (torch.relu(h) if problem.layer == 4 else h,)


class Square(Rule):
    def update(self, state, problem):
        (h,) = state
        return (h - problem.gradient(h) * 0.2 + h * h * 0.01,)


class Offset(Rule):
    def update(self, state, problem):
        return (state[0] - problem.gradient(state[0]) * 0.2 + 0.1,)


class LineSearch(Rule):
    def update(self, state, problem):
        (h,) = state
        slope = problem.gradient(h)
        step = 1.0
        while bool(problem.value(h - slope * step) > problem.value(h)):
            step = step / 2
        return (h - slope * step,)


class Sly(Rule):
    """Linear where it is looked at, and not where it runs."""

    def update(self, state, problem):
        (h,) = state
        h = h - problem.gradient(h) * 0.2
        return (torch.tanh(h) if isinstance(h, torch.Tensor) else h,)


class Bounded(Rule):
    """Linear for all signals of ordinary size."""

    def __init__(self, bound):
        self.bound = bound

    def update(self, state, problem):
        (h,) = state
        h = h - problem.gradient(h) * 0.1
        return (h.clamp(-self.bound, self.bound) if isinstance(h, torch.Tensor) else h,)


class Small(Rule):
    """Takes what is nearly nothing for nothing."""

    def update(self, state, problem):
        (h,) = state
        h = h - problem.gradient(h) * 0.1
        return (torch.where(h.abs() > 1e-5, h, 0.0) if isinstance(h, torch.Tensor) else h,)


class Counting(Rule):
    """A step that depends on the graph."""

    def update(self, state, problem):
        (h,) = state
        return (h - problem.gradient(h) * (1 / problem.given.graph.nodes),)


class Broken(Rule):
    def update(self, state, problem):
        raise LookupError("no such thing")


class Buffered(Rule):
    """Begins with a tensor."""

    def init(self, h, problem):
        return (h, torch.zeros_like(h))

    def update(self, state, problem):
        h, v = state
        v = v * 0.5 - problem.gradient(h) * 0.2
        return (h + v, v)


LINEAR = [Descent(), Summing(), Restarting(), Counting()]
OTHERS = [
    Anderson(),
    Functional(),
    LateActivation(),
    Square(),
    Offset(),
    LineSearch(),
    Sly(),
    Buffered(),
    Bounded(5),
    Bounded(1000),
    Bounded(1e7),
    Small(),
]


def stepped(algorithm, x, graph, depth):
    state = algorithm.init(x.clone(), None)
    for k in range(1, depth + 1):
        state = algorithm.update(state, us.Problem(us.objective.as_objective(OBJECTIVE), us.Given(x, graph), k))
    return state[0]


@pytest.mark.parametrize("algorithm", LINEAR + OTHERS, ids=lambda a: a.name)
def test_the_network_is_what_the_steps_are(algorithm, graph, x):
    net = us.unroll(OBJECTIVE, algorithm, depth=6)
    lowered = algorithm in LINEAR
    assert isinstance(net.adjoint, us.Polynomial if lowered else us.Stored)
    assert (net.why_not_linear is None) == lowered
    leaf = x.clone().requires_grad_()
    out = net(leaf, graph)
    assert torch.allclose(out, stepped(algorithm, x, graph, 6), atol=1e-10)
    out.sum().backward()
    assert torch.isfinite(leaf.grad).all()


@pytest.mark.parametrize("algorithm", OTHERS, ids=lambda a: a.name)
def test_the_reason_is_told(algorithm):
    net = us.unroll(OBJECTIVE, algorithm, depth=6)
    assert algorithm.name in net.why_not_linear
    assert net.why_not_linear in repr(net)
    with pytest.raises(us.IncompatibleError, match=f"cannot lower: {algorithm.name}"):
        us.unroll(OBJECTIVE, algorithm, depth=6, adjoint=us.Polynomial())
    assert not any(isinstance(held, str) for held in vars(net).values())  # by which stored trials would be known
    asked = us.unroll(OBJECTIVE, algorithm, depth=6, adjoint=us.Stored())
    assert asked.why_not_linear is None  # nobody wondered


def test_few_enough_steps_are_linear_still():
    assert isinstance(us.unroll(OBJECTIVE, LateActivation(), depth=3).adjoint, us.Polynomial)


def test_a_broken_rule_fails_in_its_own_words(graph, x):
    with pytest.raises(LookupError, match="no such thing"):
        us.unroll(OBJECTIVE, Broken(), depth=3)(x, graph)


def test_shipped_networks_say_why_too():
    net = us.unroll(OBJECTIVE + us.NonNegative(), us.ProximalGradient(), depth=3)
    assert "NonNegative is not quadratic" in net.why_not_linear
    assert "NonNegative is not quadratic" not in repr(net)  # plain to see from the objective


@dataclass(frozen=True, eq=False)
class Moody(us.Algorithm):
    """Takes another way once its coefficient has been trained to be negative."""

    mood: Any
    step: Any = 0.2

    def update(self, state, problem):
        h = state[0] - problem.gradient(state[0]) * self.step_size(problem)
        return (torch.relu(h) if bool(problem[self.mood] < 0) else h,)


def test_a_rule_that_changes_its_ways_in_training_is_told(graph, x):
    net = us.unroll(OBJECTIVE, Moody(us.Learnable(1.0, name="mood")), depth=3).double()
    assert isinstance(net.adjoint, us.Polynomial)
    net(x, graph)
    with torch.no_grad():
        net.coefficients["mood"].fill_(-1.0)
    with pytest.raises(us.IncompatibleError, match=r"Moody.* adjoint=Stored\(\)"):
        net(x, graph)


class Noisy(Rule):
    def update(self, state, problem):
        (h,) = state
        return (h - problem.gradient(h) * (0.1 + 0.1 * float(torch.rand(()))),)


def test_trying_a_rule_draws_no_numbers_from_the_user(graph, x):
    torch.manual_seed(3)
    net = us.unroll(OBJECTIVE, Noisy(), depth=3)
    after = torch.rand(3)
    torch.manual_seed(3)
    assert torch.equal(after, torch.rand(3))
    assert isinstance(net.adjoint, us.Stored)


class InPlace(Rule):
    def update(self, state, problem):
        (h,) = state
        h -= problem.gradient(h) * 0.2
        return (h,)


@pytest.mark.parametrize("adjoint", [None, us.Stored()])
def test_a_rule_that_writes_in_place_leaves_the_input_alone(adjoint, graph, x):
    before = x.clone()
    net = us.unroll(OBJECTIVE, InPlace(), depth=4, adjoint=adjoint)
    expected = us.unroll(OBJECTIVE, Descent(), depth=4)(x, graph)
    assert torch.allclose(net(x, graph), expected)
    assert torch.equal(x, before)
    trace = net.trace(x, graph)
    plain = us.unroll(OBJECTIVE, Descent(), depth=4).trace(x, graph)
    assert all(torch.allclose(a, b) for a, b in zip(trace, plain, strict=True))


class Roots(Rule):
    """Step sizes at Chebyshev's points: each unstable, together the best; powers of A would lose all digits."""

    def update(self, state, problem):
        angle = torch.tensor(3.141592653589793 * (2 * ((problem.layer * 7) % 24) + 1) / 48, dtype=torch.float64)
        return (state[0] - problem.gradient(state[0]) * float(1 / (2.0 + 1.96 * torch.cos(angle))),)


def test_the_basis_of_a_rule_of_ones_own_keeps_the_digits(graph, x):
    objective = us.Fidelity(0.02) + us.Smoothness(0.98)
    net = us.unroll(objective, Roots(), depth=24)
    exact = us.unroll(objective, Roots(), depth=24, adjoint=us.Stored())(x, graph)
    small = net(x.float(), graph.to(torch.float32)).double()
    assert float((small - exact).norm() / exact.norm()) < 1e-3


@pytest.mark.parametrize("start", [us.Zero(), torch.ones(12, 3, dtype=torch.float64)], ids=["zero", "own"])
@pytest.mark.parametrize("metric", [1.0, us.Symmetric(3, psd=True), us.Diagonal(3)], ids=str)
def test_starts_and_metrics_are_tried_as_they_are(start, metric, graph, x):
    objective = us.Fidelity(0.3, metric=metric) + us.Smoothness(0.7)
    nets = [us.unroll(objective, Restarting(), 6, start=start, adjoint=a).double() for a in (None, us.Stored())]
    assert isinstance(nets[0].adjoint, us.Polynomial)
    assert torch.allclose(nets[0](x, graph), nets[1](x, graph), atol=1e-10)


def test_a_rule_that_looks_at_the_graph_is_asked_for_every_graph(graph, x):
    net = us.unroll(OBJECTIVE, Counting(), depth=4)
    net(torch.ones(4, 2, dtype=torch.float64), us.graph.ring(4).to(torch.float64))
    assert torch.allclose(net(x, graph), stepped(Counting(), x, graph, 4), rtol=1e-10, atol=1e-12)


def test_a_rule_whose_settings_change_is_asked_again(graph, x):
    rule = Bounded(1.0)
    rule.rate = 0.1

    class Rated(Rule):
        def update(self, state, problem):
            (h,) = state
            return (h - problem.gradient(h) * rule.rate,)

    net = us.unroll(OBJECTIVE, Rated(), depth=4)
    before = net(x, graph)
    rule.rate = 0.2
    assert not torch.allclose(before, net(x, graph))


def test_a_fixed_metric_stays_what_it_was(graph, x):
    metric = torch.eye(x.shape[-1], dtype=torch.float64)
    nets = [
        us.unroll(us.Fidelity(0.3, metric=metric) + us.Smoothness(0.7), us.GradientDescent(0.5), 3, adjoint=adjoint)
        for adjoint in (us.Polynomial(), us.Stored())
    ]
    before = [net(x, graph) for net in nets]
    metric.mul_(2)
    for net, was in zip(nets, before, strict=True):
        assert torch.equal(net(x, graph), was)


class Spoiling(us.SmoothTerm):
    def value(self, h, given):
        return h.square().sum((-2, -1))

    def gradient(self, h, given):
        return h.mul_(2)

    def lipschitz(self, given):
        return 2.0


def test_a_term_that_writes_into_its_input_is_refused(graph, x):
    net = us.unroll(us.Fidelity(0.3) + Spoiling(), us.GradientDescent(0.1), 2)
    with pytest.raises(us.IncompatibleError, match="writes into"):
        net(x.clone(), graph)


@pytest.mark.parametrize("power", [2, 3, 5])
def test_powers_of_the_laplacian_keep_their_digits_in_deep_networks(power):
    """In powers of A the coefficients of 1 − η(1 − a)ᵖ, repeated, grow without bound and cancel."""
    graph = us.graph.path(12)
    x = torch.randn(12, 2, generator=torch.Generator().manual_seed(0))
    objective = us.Fidelity(0.5) + us.HigherSmoothness(0.3, power=power)
    net = us.unroll(objective, us.GradientDescent(), depth=60)
    stored = us.unroll(objective, us.GradientDescent(), depth=60, adjoint=us.Stored())
    exact = stored(x.double(), graph.to(torch.float64))
    assert float((net(x, graph).double() - exact).abs().max()) < 1e-5
