"""The smallest curvature of a whole quadratic sum, terms without a stencil included."""

from dataclasses import dataclass
from typing import Any

import pytest
import torch

import unspool as us


@dataclass(frozen=True, eq=False)
class Masked(us.SmoothTerm):
    """Σ over known entries of (H − X)², as for filling in missing values."""

    mask: torch.Tensor
    weight: Any = 1.0
    affine_gradient = True

    def value(self, h, given):
        return (self.mask * (h - given.x).square()).sum((-2, -1)) * given[self.weight]

    def gradient(self, h, given):
        return 2 * self.mask * (h - given.x) * given[self.weight]

    def lipschitz(self, given):
        return 2 * abs(given[self.weight])


def dense_hessian(objective, graph, features):
    x = torch.zeros(graph.nodes, features, dtype=torch.float64)
    return torch.autograd.functional.hessian(lambda h: objective.value(h.view(x.shape), x, graph), x.flatten())


def cases():
    small = us.testing.small_graph()
    large = us.graph.grid(12, 15).to(torch.float64)
    generator = torch.Generator().manual_seed(0)
    for graph in (small, large):
        mask = (torch.rand(graph.nodes, 1, generator=generator) < 0.3).double()
        signs = torch.full((graph.incidence().shape[0],), 0.5)
        signs[::6] = -0.1
        yield graph, Masked(mask) + us.Smoothness(0.7)
        yield graph, Masked(mask) + us.Smoothness(0.7) + us.EdgeSmoothness(signs, weight=0.2)
        yield graph, us.Fidelity(0.4) + us.EdgeSmoothness(signs)
        yield graph, us.Fidelity(0.4) + us.EdgeSmoothness(-signs)  # indefinite


@pytest.mark.long
@pytest.mark.parametrize(("graph", "objective"), list(cases()), ids=lambda v: str(getattr(v, "nodes", v)))
@pytest.mark.parametrize("features", [1, 2])
def test_the_sum_is_judged_as_a_whole(graph, objective, features):
    eigenvalues = torch.linalg.eigvalsh(dense_hessian(objective, graph, features))
    smallest = float(eigenvalues[0])
    x = torch.zeros(graph.nodes, features, dtype=torch.float64)
    low, high = objective.smallest_curvature(us.Given(x, graph))
    assert low <= smallest + 1e-9
    assert high >= smallest - 1e-9
    if smallest > 0:
        assert low > 0.9 * smallest
    else:
        assert high < 0
    assert objective.convex(graph) == (smallest >= 0)


@pytest.mark.parametrize(("graph", "objective"), list(cases()), ids=lambda v: str(getattr(v, "nodes", v)))
def test_its_minimiser_is_found_or_said_not_to_exist(graph, objective, random):
    hessian = dense_hessian(objective, graph, 2)
    x = torch.randn(graph.nodes, 2, dtype=torch.float64, generator=random)
    if float(torch.linalg.eigvalsh(hessian)[0]) < 0:
        with pytest.raises(us.IncompatibleError, match="unbounded below on this graph"):
            us.minimise(objective, x, graph)
        return
    right = -objective.gradient(torch.zeros_like(x), x, graph)
    expected = torch.linalg.solve(hessian, right.flatten()).view(x.shape)
    assert torch.allclose(us.minimise(objective, x, graph), expected, atol=1e-7)


class Known(us.SmoothTerm):
    """Reads off the input where it is known."""

    affine_gradient = True

    def value(self, h, given):
        return ((given.x != 0) * (h - given.x).square()).sum((-2, -1))

    def gradient(self, h, given):
        return 2 * (given.x != 0) * (h - given.x)

    def lipschitz(self, given):
        return 2.0


@pytest.mark.parametrize("size", [1.0, 1e6])
def test_the_sum_is_judged_at_the_input_at_hand(graph, x, size):
    x = size * x
    x[::3] = 0
    objective = Known() + us.Smoothness(0.5)
    h = us.minimise(objective, x, graph)
    assert float(objective.gradient(h, x, graph).norm()) < 1e-7 * float(x.norm())
    assert us.minimise(objective, torch.stack([x, 2 * x]), graph).shape == (2, *x.shape)
    with pytest.raises(us.IncompatibleError, match="not strictly convex"):
        us.minimise(objective, torch.stack([x, 0 * x]), graph)


@pytest.mark.parametrize("nodes", [6, 400])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_part_without_any_known_value_has_no_unique_minimiser(nodes, dtype):
    apart = torch.arange(nodes - 1)
    apart = apart[apart != nodes // 2 - 1]  # two paths
    graph = us.Graph.from_edges(torch.stack([apart, apart + 1]), nodes=nodes, directed=False).to(dtype)
    mask = torch.zeros(nodes, 1, dtype=dtype)
    mask[: nodes // 2] = 1.0
    objective, x = Masked(mask) + us.Smoothness(1.0), torch.ones(nodes, 1, dtype=dtype)
    with pytest.raises(us.IncompatibleError, match="not strictly convex"):
        us.minimise(objective, x, graph)
    assert us.minimise(objective + us.Ridge(1e-3), x, graph).shape == x.shape


def test_where_it_cannot_be_told_nothing_is_claimed():
    nodes = 6000
    mask = torch.zeros(nodes, 1, dtype=torch.float64)
    mask[0] = 1.0
    graph = us.graph.path(nodes).to(torch.float64)
    with pytest.raises(us.IncompatibleError, match=r"not be shown .* Ridge"):
        us.minimise(Masked(mask) + us.Smoothness(1.0), torch.ones(nodes, 1, dtype=torch.float64), graph)


@dataclass(frozen=True, eq=False)
class Wave(us.SmoothTerm):
    """Honest about its bends."""

    weight: Any = 1.0
    uses_input = False

    def value(self, h, given):
        return torch.sin(h).sum((-2, -1)) * given[self.weight]

    def gradient(self, h, given):
        return torch.cos(h) * given[self.weight]

    def lipschitz(self, given):
        return abs(given[self.weight])

    def is_convex(self, given):
        return False


@pytest.mark.parametrize(
    ("objective", "said", "unsaid"),
    [
        (us.Fidelity(1.0) + Wave(0.3), "Wave", "non-negative"),
        (us.Fidelity(1.0) + us.Sparse(-0.3), "weight is −0.3.*non-negative", "Wave"),
        (us.Fidelity(0.1) + us.Smoothness(-0.9) + us.Box(0, 1), "not convex", "unbounded"),
        (us.Fidelity(0.1) + us.Smoothness(-0.9), "unbounded below", "is not convex"),
    ],
    ids=str,
)
def test_refusals_say_what_is_true(objective, said, unsaid, graph, x):
    with pytest.raises(us.IncompatibleError, match=said) as refusal:
        us.minimise(objective, x, graph)
    assert unsaid not in str(refusal.value)
