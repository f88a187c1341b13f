"""Conjugate gradients: the dense solution, under every transform, and refusals where there is none."""

import pytest
import torch
from torch.func import vmap

import unspool as us
from reference.cases import graphs
from unspool.ops.solve import iterations, shifted_solve

GRAPHS = {name: pair for name, pair in graphs().items() if name != "directed"}
SHIFTS = [(1.0, 0.9), (1.0, -0.5), (2.0, 1.0), (1.0, 0.0), (1.0, 0.99)]


def signal(*shape, seed=0):
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def expected(a, right, p, q):
    return torch.linalg.solve(p * torch.eye(a.shape[0], dtype=a.dtype) - q * a, right)


@pytest.mark.parametrize(("p", "q"), SHIFTS)
@pytest.mark.parametrize("name", GRAPHS)
def test_is_the_dense_solution(name, p, q):
    graph, a = GRAPHS[name]
    right = signal(graph.nodes, 3)
    right[:, 1] = 0  # nothing to do in one column
    right[:, 2] *= 1e-8  # and every column is solved to its own size
    out = shifted_solve(graph, right, p, q)
    truth = expected(a, right, p, q)
    for column in range(3):
        assert torch.allclose(out[:, column], truth[:, column], rtol=1e-7, atol=1e-9 * float(truth[:, column].norm()))


def test_isolated_nodes_are_solved_alone():
    graph, _ = GRAPHS["isolated"]
    right = signal(graph.nodes, 2)
    assert torch.allclose(shifted_solve(graph, right, 1.0, 0.9)[-2:], right[-2:] * 10, rtol=1e-8)  # A is 1 there
    lonely = us.Graph.from_edges(torch.zeros(2, 0, dtype=torch.long), nodes=3).to(torch.float64)
    assert torch.allclose(shifted_solve(lonely, right[:3], 1.0, 0.5), 2 * right[:3])


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_lower_precision(dtype):
    graph, a = GRAPHS["karate"]
    right = signal(34, 2)
    out = shifted_solve(graph.to(torch.float32), right.to(dtype), 1.0, 0.9)
    assert out.dtype == dtype
    assert torch.allclose(out.double(), expected(a, right, 1.0, 0.9), atol=1e-4 if dtype == torch.float32 else 0.1)


def test_leading_dimensions():
    graph, a = GRAPHS["small"]
    right = signal(2, 3, 12, 2)
    assert torch.allclose(shifted_solve(graph, right, 1.0, 0.8), expected(a, right, 1.0, 0.8), atol=1e-8)


def test_gradients_of_all_orders():
    graph, _ = GRAPHS["small"]
    right = signal(12, 2).requires_grad_()

    def solve(r):
        return shifted_solve(graph, r, 1.0, 0.8, 1e-14)

    assert torch.autograd.gradcheck(solve, right)
    assert torch.autograd.gradgradcheck(solve, right)
    assert torch.autograd.gradgradcheck(lambda r: solve(r).square(), right)


def test_gradient_is_the_dense_one():
    graph, a = GRAPHS["weighted"]
    right = signal(12, 2).requires_grad_()
    (mine,) = torch.autograd.grad(shifted_solve(graph, right, 1.0, 0.9).pow(3).sum(), right)
    (theirs,) = torch.autograd.grad(expected(a, right, 1.0, 0.9).pow(3).sum(), right)
    assert torch.allclose(mine, theirs, rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize("dim", [0, 1, 2])
def test_trials_fold_into_columns(dim):
    graph, a = GRAPHS["small"]
    right = signal(4, 12, 3).requires_grad_()
    moved = right.movedim(0, dim)
    out = vmap(lambda r: shifted_solve(graph, r, 1.0, 0.7), in_dims=dim)(moved)
    truth = expected(a, right, 1.0, 0.7)
    assert torch.allclose(out, truth, atol=1e-8)
    (mine,) = torch.autograd.grad(out.pow(3).sum(), right, retain_graph=True)
    (theirs,) = torch.autograd.grad(truth.pow(3).sum(), right)
    assert torch.allclose(mine, theirs, rtol=1e-7, atol=1e-8)


def test_function_transforms():
    graph, a = GRAPHS["small"]
    right = signal(12, 2)
    mine = torch.func.grad(lambda r: shifted_solve(graph, r, 1.0, 0.7).pow(3).sum())(right)
    theirs = torch.func.grad(lambda r: expected(a, r, 1.0, 0.7).pow(3).sum())(right)
    assert torch.allclose(mine, theirs, rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize("stacked", [False, True])
def test_compiles_whole(stacked):
    torch._dynamo.reset()
    graph, a = GRAPHS["small"]
    right = signal(3, 12, 2).requires_grad_() if stacked else signal(12, 2).requires_grad_()

    def solve(r):
        return shifted_solve(graph, r, 1.0, 0.8)

    run = torch.compile(vmap(solve) if stacked else solve, backend="aot_eager", fullgraph=True)
    truth = expected(a, right, 1.0, 0.8)
    out = run(right)
    assert torch.allclose(out, truth, atol=1e-8)
    (mine,) = torch.autograd.grad(out.pow(3).sum(), right)
    (theirs,) = torch.autograd.grad(truth.pow(3).sum(), right)
    assert torch.allclose(mine, theirs, rtol=1e-7, atol=1e-8)


def test_the_tolerance_is_kept():
    graph, _ = GRAPHS["karate"]
    right = signal(34, 5)
    for tolerance in (1e-2, 1e-6, 1e-12):
        h = shifted_solve(graph, right, 1.0, 0.95, tolerance)
        residual = (h - 0.95 * (graph @ h) - right).norm(dim=0) / right.norm(dim=0)
        assert float(residual.max()) <= 1.1 * tolerance + 1e-14


def test_a_nan_stays_in_its_column():
    graph, a = GRAPHS["small"]
    right = signal(12, 3)
    right[4, 1] = float("nan")
    out = shifted_solve(graph, right, 1.0, 0.8)
    assert torch.allclose(out[:, [0, 2]], expected(a, right[:, [0, 2]], 1.0, 0.8), atol=1e-8)
    assert not torch.isfinite(out[:, 1]).any()


def test_iterations_suffice_on_a_long_path():
    """The bound is met where it is tight: a path has frequencies all over [0, 2]."""
    graph = us.graph.path(400, loops=0).to(torch.float64)
    right = signal(400, 1)
    h = shifted_solve(graph, right, 1.0, 0.999, 1e-8)
    assert float((h - 0.999 * (graph @ h) - right).norm() / right.norm()) < 1e-8
    assert iterations(1.0, 0.999, 1e-8) < 1000


@pytest.mark.parametrize(
    ("p", "q"), [(1.0, 1.0), (0.5, -0.5), (0.9, 1.0), (0.0, 0.0), (-1.0, 0.5), (float("nan"), 0.1)]
)
def test_systems_that_are_not_definite_are_refused(p, q):
    with pytest.raises(ValueError, match=r"must exceed \|q\|.*not positive definite"):
        shifted_solve(GRAPHS["small"][0], signal(12, 1), p, q)


def test_matrices_that_do_not_fit_are_refused():
    directed = graphs()["directed"][0]
    with pytest.raises(ValueError, match="symmetric"):
        shifted_solve(directed, signal(13, 1), 1.0, 0.5)
    plain = us.graph.grid(3, 4, normalise=us.Normalisation.NONE).to(torch.float64)
    with pytest.raises(us.IncompatibleError, match=r"negative curvature: .*eigenvalues outside"):
        shifted_solve(plain, signal(12, 1), 1.0, 0.9)
