import pytest
import torch

import unspool as us


def test_printing_and_arithmetic():
    alpha = us.Learnable(0.1, per_layer=True, within=(0, 1), name="α")
    objective = us.Fidelity(alpha) + us.Smoothness(1 - alpha) + us.NonNegative()
    assert str(objective) == "αₖ ‖H − X‖²  +  (1 − αₖ) ‖B H‖²  +  ι[H ≥ 0]"
    assert str(2 * (us.Fidelity(0.5) + us.Sparse(0.1))) == "2·0.5 ‖H − X‖²  +  2·0.1 ‖H‖₁"
    both = (us.Fidelity(0.5) + us.Ridge(0.1)) + (us.Smoothness(1.0) + us.Box(0, 1))
    assert str(both) == "0.5 ‖H − X‖²  +  0.1 ‖H‖²  +  ‖B H‖²  +  ι[0 ≤ H ≤ 1]"
    with pytest.raises(TypeError, match="is not a term"):
        us.Fidelity(0.5) + 3


def test_value_and_gradient_are_sums(graph, x):
    h = x.flip(0)
    terms = (us.Fidelity(0.3), us.Smoothness(0.5), us.EdgeSmoothness(torch.linspace(-1, 1, 17)), us.Sparse(0.2))
    objective = us.Objective(terms)
    given = us.Given(x, graph)
    assert torch.allclose(objective.value(h, x, graph), sum(t.value(h, given) for t in terms))
    assert torch.allclose(objective.gradient(h, x, graph), sum(t.gradient(h, given) for t in terms[:3]))
    assert torch.allclose((3 * objective).value(h, x, graph), 3 * objective.value(h, x, graph))


def test_structure_queries(graph):
    quadratic = us.Fidelity(0.3) + us.Smoothness(0.7)
    assert (quadratic.quadratic, quadratic.smooth, quadratic.convex(graph)) == (True, True, True)
    edges = us.Fidelity(0.3) + us.EdgeSmoothness(torch.ones(17))
    assert (edges.quadratic, edges.smooth) == (True, True)
    sparse = quadratic + us.Sparse(0.1)
    assert (sparse.quadratic, sparse.smooth, sparse.convex(graph)) == (False, False, True)
    assert not (us.Fidelity(0.3) + us.Smoothness(-0.7)).convex(graph)
    assert not (us.Fidelity(0.3) + us.Sparse(-0.7)).convex(graph)
    assert not (us.Fidelity(0.3) + us.EdgeSmoothness(-torch.ones(17))).convex(graph)


@pytest.mark.parametrize("metric", [1.0, us.Symmetric(3, initial=torch.diag(torch.tensor([2.0, 1.0, 0.1])))])
def test_curvature_and_lipschitz_bound_the_true_hessian(graph, metric):
    objective = us.Fidelity(0.3, metric=metric) + us.Smoothness(0.7, metric=metric) + us.Ridge(0.05)
    x = torch.zeros(graph.nodes, 3, dtype=torch.float64)
    hessian = torch.autograd.functional.hessian(lambda h: objective.value(h.view(x.shape), x, graph), x.flatten())
    eigenvalues = torch.linalg.eigvalsh(hessian)
    given = us.Given(x, graph)
    low, high = objective.curvature(given, exact=True)
    assert float(low) == pytest.approx(float(eigenvalues[0]), rel=1e-6)
    assert float(high) == pytest.approx(float(eigenvalues[-1]), rel=1e-6)
    low, high = objective.curvature(given)
    assert float(low) <= float(eigenvalues[0]) + 1e-9
    assert float(high) >= float(eigenvalues[-1]) - 1e-9
    assert float(objective.lipschitz(given)) >= float(eigenvalues[-1]) - 1e-9


def test_prox_of_a_sum_is_the_true_prox(graph, x):
    objective = us.Sparse(0.3) + us.NonNegative() + us.Box(-1.0, 0.6)
    given, step = us.Given(x, graph), 0.7
    best = objective.prox_at(2 * x, step, given)

    def cost(y):
        return float(objective.value_at(y, given) + (y - 2 * x).square().sum() / (2 * step))

    generator = torch.Generator().manual_seed(1)
    for _ in range(200):
        rival = torch.clamp(best + 0.1 * torch.randn(x.shape, generator=generator, dtype=x.dtype), 0.0, 0.6)
        assert cost(best) <= cost(rival) + 1e-12


ELU = torch.nn.ELU()


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (us.Box(0, 1), us.Box(2, 3)),
        (us.NonNegative(), us.Box(-2, -1)),
        (us.Activation(torch.nn.ReLU(), weight=0.5), us.Box(-2, -1)),
        (us.Activation(ELU), us.Box(-3, -2)),
        (us.Activation(torch.nn.Hardtanh(-0.5, 0.5)), us.Box(1, 2)),
    ],
    ids=str,
)
def test_constraints_that_leave_nothing_are_refused(first, second):
    for one, other in ((first, second), (second, first)):
        with pytest.raises(us.IncompatibleError, match=r"no signal keeps both .*; give constraints that meet"):
            us.Fidelity(0.7) + one + us.Box(-10, 10) + other


@pytest.mark.parametrize(("first", "second"), [((0, 2), (1, 3)), ((0, 1), (1, 3)), ((-1, 5), (0, 2)), ((0, 9), (2, 2))])
def test_intervals_that_meet_are_projected_onto_what_they_share(graph, x, first, second):
    low, high = max(first[0], second[0]), min(first[1], second[1])
    for one, other in ((first, second), (second, first)):
        objective = us.Box(*one) + us.Box(*other) + us.NonNegative()
        assert torch.equal(objective.prox_at(3 * x, 0.5, us.Given(x, graph)), (3 * x).clamp(low, high))


def test_activations_go_with_intervals_that_they_reach():
    for activation in (ELU, torch.nn.Softsign(), torch.nn.LeakyReLU(), torch.nn.Tanh(), torch.nn.Softshrink(0.1)):
        us.Fidelity(0.7) + us.Activation(activation) + us.Box(-1, -0.5)


@pytest.mark.parametrize(
    ("objective", "words"),
    [
        (us.Sparse(0.1) + us.RowSparse(0.1), "Sparse \\+ RowSparse is not known"),
        (us.RowSparseFidelity(0.1) + us.NonNegative(), "couples entries"),
    ],
)
def test_sums_without_a_known_prox_are_refused(objective, words):
    with pytest.raises(us.IncompatibleError, match=words):
        us.unroll(objective, us.ProximalGradient(step=0.5), depth=2)


@pytest.mark.parametrize(
    ("graph", "words"),
    [
        (us.Graph.from_edges([[0, 1], [1, 2]], nodes=3, directed=True), "directed"),
        (us.graph.path(3, normalise=us.Normalisation.RANDOM_WALK), "random-walk"),
        (us.Graph.from_edges([[0], [1]], nodes=3, loops=0, directed=False), "node 2 has no edge and no self-loop"),
    ],
)
def test_smoothness_refuses_graphs_without_a_laplacian(graph, words):
    net = us.unroll(us.Fidelity(0.5) + us.Smoothness(0.5), us.GradientDescent(step=0.5), depth=2)
    with pytest.raises(us.IncompatibleError, match=words):
        us.Smoothness(1.0).value(torch.ones(3, 1), us.Given(torch.ones(3, 1), graph))
    with pytest.raises(us.IncompatibleError, match=words):
        net(torch.ones(3, 1), graph)


def test_products_are_the_same_from_either_side(graph, x):
    a = us.Learnable(0.5, name="a")
    for part in (us.EdgeSparse(3.0), us.Fidelity(0.2), us.Fidelity(0.2) + us.Smoothness(0.7)):
        assert str(a * part) == str(part * a)
        one, other = us.Ridge(0.1) + a * part, us.Ridge(0.1) + part * a
        assert torch.equal(one.value(2 * x, x, graph), other.value(2 * x, x, graph))
    with pytest.raises(TypeError, match="'x' is not a coefficient"):
        a * "x"
