"""What an attack on the language found: weights beyond all measure, operators that are not what they say, graphs without a BᵀB."""

from dataclasses import dataclass
from typing import Any

import pytest
import torch

import unspool as us
from unspool.testing import small_graph

GRAPH = small_graph()
X = torch.randn(12, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(3))


@pytest.mark.parametrize("weight", [1e-300, 1e-30, 1e-15, 1e-8])
def test_activations_of_tiny_weight_are_projections(weight):
    v = torch.tensor([[-3.0, -0.5, 0.2, 2.0]], dtype=torch.float64)
    found = us.Activation(torch.nn.Tanh(), weight=weight).prox(v, 0.5, us.Given(v, us.graph.path(1).to(torch.float64)))
    assert torch.allclose(found, v.clamp(-1, 1), atol=1e-6)


@pytest.mark.parametrize("weight", [1e15, 1e100, 1e300])
def test_activations_of_huge_weight_lead_to_zero(weight):
    v = torch.tensor([[-3.0, -0.5, 0.2, 2.0]], dtype=torch.float64)
    found = us.Activation(torch.nn.Tanh(), weight=weight).prox(v, 0.5, us.Given(v, us.graph.path(1).to(torch.float64)))
    assert float(found.abs().max()) < 1e-4


def test_weights_of_activations_are_numbers():
    with pytest.raises(TypeError, match="the weight of Activation must be a single number"):
        us.Activation(torch.nn.Tanh(), weight=torch.tensor([1.0, 2.0]))


@pytest.mark.parametrize("term", [us.Smoothness(1.0), us.HigherSmoothness(0.5)], ids=str)
def test_a_laplacian_that_is_not_symmetric_has_no_minimiser(term):
    edges = torch.tensor([[0, 1, 2, 3], [1, 2, 0, 0]])
    graph = us.Graph.from_edges(edges, 4, directed=True).with_general_laplacian().to(torch.float64)
    weight = us.Learnable(10.0, within=(0, None), name="a")
    x = torch.eye(4, dtype=torch.float64)
    with pytest.raises(us.IncompatibleError, match="undirected"):
        us.unroll(us.Fidelity(weight) + term, us.Exact()).double()(x, graph)
    with pytest.raises(us.IncompatibleError, match="undirected"):
        us.minimise(us.Fidelity(10.0) + term, x, graph)
    for rule in (us.ConjugateGradient(), us.Newton()):
        with pytest.raises(us.IncompatibleError, match="conjugate gradient steps, which need an undirected graph"):
            us.unroll(us.Fidelity(10.0) + term, rule, depth=4)(x, graph)
    assert torch.equal(us.minimise(us.Fidelity(10.0), x, graph), x)  # without an L there is one


class Shifted(us.LinearOperator):
    """Differences between consecutive nodes, as users write them; the adjoint and the bound may be wrong."""

    def __init__(self, factor=1.0, bound=4.0):
        self.factor, self.bound = factor, bound

    def __call__(self, h, graph):
        return h[..., 1:, :] - h[..., :-1, :]

    def adjoint(self, z, graph):
        zero = torch.zeros_like(z[..., :1, :])
        return self.factor * (torch.cat([zero, z], -2) - torch.cat([z, zero], -2))

    def squared_norm(self, graph):
        return self.bound


@dataclass(frozen=True, eq=False)
class Steps(us.CompositeTerm):
    operator: Any
    weight: Any = 0.3

    def outer_value(self, z, given):
        return z.abs().sum((-2, -1)) * given[self.weight]

    def outer_prox(self, z, step, given):
        return us.ops.prox.soft_threshold(z, step * given[self.weight])


WAYS = {
    "minimise": lambda objective: us.minimise(objective, X, GRAPH),
    "Exact": lambda objective: us.unroll(objective, us.Exact()).double()(X.clone().requires_grad_(), GRAPH),
    "FixedPoint": lambda objective: us.unroll(objective, us.PrimalDual(), 1, adjoint=us.FixedPoint())(X, GRAPH),
    "steps": lambda objective: us.unroll(objective, us.ADMM(), 3)(X, GRAPH),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("operator", "what"),
    [(Shifted(factor=1.01), "adjoint"), (Shifted(bound=1.0), "squared_norm")],
    ids=["adjoint", "bound"],
)
def test_operators_that_are_not_what_they_say_are_named(way, operator, what):
    with pytest.raises(us.IncompatibleError, match=rf"Shifted\.{what} of Steps"):
        WAYS[way](us.Fidelity(0.5) + Steps(operator))


def test_an_operator_of_ones_own_that_is_right_is_used():
    objective = us.Fidelity(0.5) + Steps(Shifted())
    found = [WAYS[way](objective).detach() for way in ("minimise", "Exact", "FixedPoint")]
    path = us.graph.path(12, normalise=us.Normalisation.NONE, loops=0.0).to(torch.float64)
    wanted = us.minimise(us.Fidelity(0.5) + us.EdgeSparse(0.3, rows=False), X, path)
    assert all(torch.allclose(h, wanted, atol=1e-6) for h in found)


@pytest.mark.parametrize("depth", [0, -1, 2.5, "3", True, float("nan"), float("inf")])
def test_depths_that_are_not_counts_are_named(depth):
    with pytest.raises(us.InputError) as wrong:
        us.unroll(us.Fidelity(0.5) + us.Smoothness(0.5), us.GradientDescent(), depth=depth)
    assert wrong.value.argument == "depth"


@pytest.mark.parametrize("penalty", [us.Log, us.Capped, lambda scale: us.Power(1.0, scale), us.Power])
@pytest.mark.parametrize("value", [float("nan"), float("inf"), "a", None, us.Learnable(0.5), torch.ones(2)])
def test_numbers_of_penalties_are_checked(penalty, value):
    with pytest.raises(us.InputError):
        penalty(value)


@pytest.mark.parametrize("rule", [us.Chebyshev(), us.ConjugateGradient()], ids=lambda r: r.name)
def test_the_way_out_for_composite_terms_leads_somewhere(rule):
    objective = us.Fidelity(0.5) + us.EdgeSparse(0.1)
    with pytest.raises(us.IncompatibleError, match=r"use PrimalDual\(\) or ADMM\(\)"):
        us.unroll(objective, rule, depth=3)
    us.unroll(objective, us.ADMM(), depth=3)


@pytest.mark.parametrize("constraint", [us.Box(-0.1, 0.1), us.NonNegative(), us.Simplex()], ids=str)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_minimisers_keep_their_constraints(constraint, dtype):
    objective = us.Fidelity(0.5) + us.EdgeSparse(0.3) + constraint
    x, graph = X.to(dtype), GRAPH.to(dtype)
    assert bool(torch.isfinite(objective.value(us.minimise(objective, x, graph), x, graph)))


@pytest.mark.parametrize(
    "term",
    [us.EdgeSparse, lambda weight: us.LaplacianSparse(1.0) * weight, lambda weight: us.GroupGap([0, 1] * 6, weight)],
)
def test_norms_behind_an_operator_have_no_negative_weight(term):
    with pytest.raises(us.InputError, match=r"weight=-0\.3: expected a number or coefficient of at least 0"):
        term(-0.3)
    term(us.Learnable(0.3, name="a") * 0.5)


@pytest.mark.parametrize("shape", [(1, 12), (12, 12, 12), (3, 12), (2, 12, 1)])
def test_weights_of_nodes_are_not_stretched(shape):
    square = torch.randn(12, 12, dtype=torch.float64)
    net = us.unroll(us.NodeFidelity(torch.ones(shape)) + us.Smoothness(0.2), us.GradientDescent(step=0.1), depth=2)
    with pytest.raises(us.InputError, match=r"expected (weights of shape|no leading dimensions)"):
        net(square, GRAPH)


def test_weights_of_edges_do_not_make_a_stack_of_one_signal():
    weights = torch.rand(2, GRAPH.incidence().shape[0])
    with pytest.raises(ValueError, match="EdgeSmoothness has weights of shape"):
        us.minimise(us.Fidelity(1.0) + us.EdgeSmoothness(weights), X, GRAPH)


def test_targets_are_numbers_even_where_they_weigh_nothing():
    with pytest.raises(us.InputError, match="any with a weight of 0"):
        us.NodeFidelity(torch.zeros(12), target=torch.full((12, 3), float("nan")))


@pytest.mark.parametrize(
    ("known", "message"),
    [
        (torch.tensor([True, False]), "a mask over all"),
        (torch.tensor([-1]), "from 0 to 3"),
        (torch.tensor([9]), "from 0 to 3"),
        (torch.tensor([0, 1, 1, 0]), "every node once"),  # a mask of integers
        (torch.tensor([0.0, 1.0]), "a mask over all"),
    ],
)
def test_known_nodes_of_labels_are_checked(known, message):
    with pytest.raises(us.InputError, match=message):
        us.objective.labels(torch.tensor([0, 1, 2, 0]), known, classes=3)
    with pytest.raises(us.InputError, match="the number of a class for every node"):
        us.objective.labels(torch.tensor([0.7, 0.2, 1.0, 0.0]), torch.tensor([0, 1]), classes=3)


def test_graphs_without_edges_have_edge_weights_too():
    graph = us.Graph.from_edges([[], []], nodes=4).to(torch.float64)
    x = torch.randn(4, 2, dtype=torch.float64)
    objective = us.Fidelity(0.5) + us.EdgeSmoothness(torch.zeros(0))
    assert torch.allclose(us.minimise(objective, x, graph), x)
    assert torch.allclose(us.unroll(objective, us.GradientDescent(), depth=3)(x, graph), x)


def test_convexity_is_told_where_every_entry_has_a_weight():
    entries = torch.rand(12, 3, dtype=torch.float64)
    assert (us.NodeFidelity(entries) + us.Smoothness(0.5)).convex(GRAPH)
    assert not (us.NodeFidelity(entries - 0.5) + us.Smoothness(0.01)).convex(GRAPH)


@pytest.mark.parametrize("penalty", [us.Log(1.0), us.Power(1.5, smoothing=0.1)], ids=str)
def test_repelling_penalties_have_a_positive_pace(penalty):
    term = us.EdgePenalty(penalty, -0.4)
    assert bool((torch.as_tensor(term.diagonal(X, us.Given(X, GRAPH))) > 0).all())


class Strength(torch.nn.Module):
    """A weight for every node, from its features."""

    def forward(self, x, graph):
        return x.square().mean(-1, keepdim=True)


@pytest.mark.parametrize(
    ("rule", "more"),
    [
        (us.GradientDescent(), us.Ridge(0.1)),
        (us.Accelerated(), us.Ridge(0.1)),
        (us.ProximalGradient(), us.RowSparse(0.1)),
        (us.PrimalDual(), us.EdgeSparse(0.1)),
        (us.ADMM(), us.EdgeSparse(0.1)),
    ],
    ids=lambda part: part.name,
)
@pytest.mark.parametrize("edges", [True, False])
def test_steps_of_a_signal_do_not_depend_on_the_others_of_its_stack(rule, more, edges):
    """Computed weights differ from signal to signal, and with them 1/L."""
    stack = torch.stack([X, 3 * X, 0.2 * X])
    torch.manual_seed(0)
    weighed = (
        us.EdgeSmoothness(us.Computed(us.nn.EdgeScore(3)), 0.3) if edges else us.NodeFidelity(us.Computed(Strength()))
    )
    net = us.unroll(us.Fidelity(0.2) + weighed + more, rule, depth=3).double()
    assert torch.allclose(net(stack, GRAPH), torch.stack([net(x, GRAPH) for x in stack]), rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    "term",
    [us.Smoothness(0.5), us.EdgeSparse(0.3), us.EdgePenalty(us.Power(1.5), 0.2), us.Spread(0.3), us.Simplex()],
    ids=str,
)
def test_signals_without_channels_are_their_own_minimisers(term):
    empty = torch.zeros(12, 0, dtype=torch.float64)
    assert us.minimise(us.Fidelity(0.5) + term, empty, GRAPH).shape == (12, 0)
    net = us.unroll(us.Fidelity(us.Learnable(0.5, name="a")) + term, us.Exact()).double()
    assert net(empty, GRAPH).shape == (12, 0)


@pytest.mark.parametrize("count", [0, -1, 1.5, True, "2"])
@pytest.mark.parametrize(
    "make",
    [
        lambda n: us.ADMM(steps=n),
        lambda n: us.Reweighted(us.Jacobi(), steps=n),
        lambda n: us.BlockCoordinate(steps=n),
        lambda n: us.Newton(iterations=n),
        lambda n: us.Anderson(us.Jacobi(), memory=n),
    ],
)
def test_counts_of_rules_are_whole_numbers(make, count):
    with pytest.raises(us.InputError, match="expected a whole number of at least 1"):
        make(count)


@pytest.mark.parametrize("shape", [(11, 4), (13, 4), (12,)])
def test_features_have_a_row_for_every_node(shape):
    trust = us.EdgeSmoothness(us.FeatureComputed(us.nn.EdgeTrust(us.Capped(2.0))), 4.0)
    net = us.unroll(us.Fidelity(1.0) + trust, us.Jacobi(), depth=3).double()
    with pytest.raises(us.InputError, match="a row for each of the 12 nodes"):
        net(X, GRAPH, features=torch.rand(shape, dtype=torch.float64))


@pytest.mark.parametrize(
    "term", [us.EdgeSparse(0.3), us.EdgePenalty(us.Power(1.5), 0.3), us.Smoothness(0.9) + us.NonNegative()], ids=str
)
@pytest.mark.parametrize("adjoint", [us.Implicit(), us.FixedPoint()], ids=lambda adjoint: type(adjoint).__name__)
def test_small_signals_are_solved_beside_large_ones(term, adjoint):
    """A residual of the whole stack would hide them."""
    graph, x = GRAPH.to(torch.float32), X.float()
    net = us.unroll(us.Fidelity(0.5) + term, us.PrimalDual(), depth=1, adjoint=adjoint)
    beside = net(torch.stack([x, 1e6 * x]), graph)[0]
    assert torch.allclose(beside, net(x, graph), rtol=0, atol=1e-5)
