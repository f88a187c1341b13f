import pytest
import torch

import unspool as us

QUADRATIC = [
    us.GradientDescent(),
    us.GradientDescent(step=0.4),
    us.ProximalGradient(),
    us.Accelerated(),
    us.Accelerated(momentum=0.5),
    us.Chebyshev(),
    us.Exact(),
]
COMPOSITE = [us.ProximalGradient(), us.Accelerated(), us.Exact()]
OBJECTIVES = [
    us.Fidelity(0.3) + us.Smoothness(0.7) + us.NonNegative(),
    us.Ridge(0.1) + us.Smoothness(0.7) + us.RowSparseFidelity(0.4),
    us.Fidelity(0.3) + us.Smoothness(0.7) + us.Sparse(0.1) + us.Box(0.0, 1.0),
    us.Fidelity(0.3) + us.Smoothness(0.7) + us.Activation(torch.nn.Tanh(), weight=0.5),
]


@pytest.mark.parametrize("algorithm", QUADRATIC, ids=lambda a: a.name)
@pytest.mark.parametrize(
    "metric",
    [1.0, us.Symmetric(3, initial=torch.tensor([[1.0, 0.3, 0], [0.3, 0.8, 0], [0, 0, 1.2]]))],
    ids=["identity", "symmetric"],
)
def test_laws_on_quadratic_objectives(algorithm, metric):
    us.testing.check_algorithm(algorithm, us.Fidelity(0.3, metric=metric) + us.Smoothness(0.6, metric=metric))


@pytest.mark.parametrize("algorithm", COMPOSITE, ids=lambda a: a.name)
@pytest.mark.parametrize("objective", OBJECTIVES, ids=str)
def test_laws_on_composite_objectives(algorithm, objective):
    us.testing.check_algorithm(algorithm, objective)


class Lazy(us.GradientDescent):
    """Stops half-way: not the minimiser."""

    def update(self, state, problem):
        (h,) = state
        return (h - (problem.gradient(h) - 0.1 * h) * self.step_size(problem),)


class Uphill(us.GradientDescent):
    def update(self, state, problem):
        (h,) = super().update(state, problem)
        return (h + 1e-3 * torch.sign(problem.gradient(h)),)


@pytest.mark.parametrize("algorithm", [Lazy(), Uphill()], ids=lambda a: a.name)
def test_the_laws_catch_wrong_algorithms(algorithm):
    with pytest.raises(us.testing.LawBroken):
        us.testing.check_algorithm(algorithm)


def test_chebyshev_is_the_fastest_and_gradient_descent_the_slowest(graph, x):
    objective = us.Fidelity(0.05) + us.Smoothness(0.95)
    far = {
        a.name: us.unroll(objective, a, depth=25).trace(x, graph).distance[-1]
        for a in (us.GradientDescent(), us.Accelerated(), us.Chebyshev())
    }
    assert far["Chebyshev"] < far["Accelerated"] < far["GradientDescent"]


def test_chebyshev_meets_its_bound(graph, x):
    objective = us.Fidelity(0.1) + us.Smoothness(0.9)
    trace = us.unroll(objective, us.Chebyshev(), depth=30).trace(x, graph)
    kappa = 19.0
    rate = (kappa**0.5 - 1) / (kappa**0.5 + 1)
    start = float((x - us.minimise(objective, x, graph)).norm() / us.minimise(objective, x, graph).norm())
    for k, distance in enumerate(trace.distance, start=1):
        assert distance <= 2 * rate**k / (1 + rate ** (2 * k)) * start + 1e-9


@pytest.mark.parametrize("features", [1, 4])
def test_exact_is_the_dense_solution(graph, features, random):
    x = torch.randn(2, graph.nodes, features, dtype=torch.float64, generator=random)
    laplacian, eye = graph.laplacian().to_dense(), torch.eye(graph.nodes, dtype=torch.float64)
    expected = torch.linalg.solve(0.2 * eye + 0.8 * laplacian, 0.2 * x)
    assert torch.allclose(us.minimise(us.Fidelity(0.2) + us.Smoothness(0.8), x, graph), expected, atol=1e-9)


def test_exact_with_matrix_metrics_is_the_kronecker_solution(graph, x):
    ta = torch.tensor([[1.0, 0.3, 0], [0.3, 0.8, 0], [0, 0, 1.2]], dtype=torch.float64)
    tb = torch.tensor([[0.5, 0.0, 0.2], [0.0, 0.9, 0], [0.2, 0, 0.7]], dtype=torch.float64)
    laplacian = graph.laplacian().to_dense()
    # Row-major vec: vec(H T) = (I ⊗ Tᵀ) vec(H), vec(L H) = (L ⊗ I) vec(H).
    system = torch.kron(torch.eye(graph.nodes, dtype=torch.float64), 0.3 * ta) + torch.kron(laplacian, 0.7 * tb)
    expected = torch.linalg.solve(system, (0.3 * x @ ta).flatten()).view(x.shape)
    objective = us.Fidelity(0.3, metric=ta) + us.Smoothness(0.7, metric=tb)
    assert torch.allclose(us.minimise(objective, x, graph), expected, atol=1e-8)


def test_exact_with_signed_edges(graph, x, random):
    signs = torch.randn(17, generator=random, dtype=torch.float64) * 0.2 + 0.1
    b = graph.incidence().to_dense()
    system = torch.eye(graph.nodes, dtype=torch.float64) + b.T @ torch.diag(signs.clamp_min(0)) @ b
    expected = torch.linalg.solve(system, x)
    objective = us.Fidelity(1.0) + us.EdgeSmoothness(signs.clamp_min(0))
    assert torch.allclose(us.minimise(objective, x, graph), expected, atol=1e-8)


@pytest.mark.parametrize(
    ("objective", "algorithm", "words"),
    [
        (
            us.Fidelity(0.5) + us.NonNegative(),
            us.GradientDescent(),
            "GradientDescent needs a gradient, but NonNegative has none",
        ),
        (us.Fidelity(0.5) + us.Sparse(0.1), us.Chebyshev(), "Sparse is not quadratic"),
        (us.Fidelity(0.5) + us.EdgeSmoothness(torch.ones(3)), us.Chebyshev(), "EdgeSmoothness does not give"),
        (us.Smoothness(1.0) + us.Ridge(1.0), us.Exact(), "no term of .* mentions X"),
        (us.Fidelity(0.5, metric=us.Relaxed(3, name="W")), us.Exact(), "has the metric W"),
        (us.Fidelity(0.5) + us.Sparse(0.1) + us.RowSparse(0.1), us.ProximalGradient(), "is not known"),
    ],
)
def test_misfits_are_refused_by_name(objective, algorithm, words):
    with pytest.raises(us.IncompatibleError, match=words):
        us.unroll(objective, algorithm, depth=None if isinstance(algorithm, us.Exact) else 3)


@pytest.mark.parametrize(
    ("objective", "words"),
    [
        (us.Fidelity(0.3) + us.Smoothness(-0.9), "unbounded below on this graph"),
        (us.Fidelity(0.0) + us.Smoothness(0.9), "not strictly convex"),
        (us.Fidelity(0.3) + us.EdgeSmoothness(-torch.ones(17)), "unbounded below on this graph"),
        (us.Fidelity(0.3) + us.Sparse(-1.0), "is not convex at these values"),
    ],
)
def test_objectives_without_a_minimiser_say_so(objective, words, graph, x):
    with pytest.raises(us.IncompatibleError, match=words):
        us.minimise(objective, x, graph)


def test_chebyshev_refuses_flat_objectives(graph, x):
    with pytest.raises(us.IncompatibleError, match="strictly convex"):
        us.unroll(us.Smoothness(1.0), us.Chebyshev(), depth=3)


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: us.GradientDescent(step=0.0), "must be positive"),
        (lambda: us.GradientDescent(step=-1), "must be positive"),
        (lambda: us.InverseLipschitz(2.5), "does not converge"),
        (lambda: us.Exact(tolerance=2.0), "between 0 and 1"),
    ],
)
def test_bad_settings_are_named(build, words):
    with pytest.raises(ValueError, match=words):
        build()


def test_a_flat_objective_has_no_default_step(graph, x):
    with pytest.raises(us.IncompatibleError, match="is flat, so the step 1/L is not defined"):
        us.unroll(us.Sparse(0.1), us.ProximalGradient(), depth=3)(x, graph)
    assert us.unroll(us.Sparse(0.1), us.ProximalGradient(step=1.0), depth=3)(x, graph).shape == x.shape


@pytest.mark.parametrize("alpha", [0.1, us.Learnable(0.1, name="α")])
def test_chebyshev_refuses_non_convex_objectives_when_it_is_unrolled(alpha):
    with pytest.raises(us.IncompatibleError, match="strictly convex objective"):
        us.unroll(us.Fidelity(alpha) + us.Smoothness(-0.9), us.Chebyshev(), depth=3)
