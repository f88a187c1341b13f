"""Conjugate gradients as layers, and Newton's method, which uses them inside."""

import itertools

import pytest
import torch

import unspool as us
from unspool import testing
from unspool.testing import small_graph

pytestmark = pytest.mark.long

GRAPH = small_graph()
X = torch.randn(12, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(3))
METRIC = torch.tensor([[1.0, 0.3, 0], [0.3, 0.8, 0], [0, 0, 1.2]], dtype=torch.float64)
QUADRATIC = [
    us.Fidelity(0.1) + us.Smoothness(0.9),
    us.Fidelity(0.3, metric=METRIC) + us.Smoothness(0.7),
    us.Fidelity(0.2) + us.EdgeSmoothness(torch.linspace(0, 1, 17).double()) + us.HigherSmoothness(0.1),
]
ROBUST = us.Fidelity(0.5) + us.EdgePenalty(us.Power(1.5, 0.1), 0.4)


def textbook(system, right, start, steps):
    """Conjugate gradients on one vector."""
    h, r = start, right - system @ start
    d = r
    for _ in range(steps):
        image = system @ d
        length = (r @ r) / (d @ image)
        h, new = h + length * d, r - length * image
        d, r = new + (new @ new) / (r @ r) * d, new
    return h


@pytest.mark.parametrize("depth", [1, 2, 5])
def test_every_channel_takes_the_steps_of_the_textbook(depth):
    system = 0.2 * torch.eye(12, dtype=X.dtype) + 1.8 * GRAPH.laplacian().to_dense()
    wanted = torch.stack([textbook(system, 0.2 * c, c, depth) for c in X.T], 1)
    net = us.unroll(QUADRATIC[0], us.ConjugateGradient(), depth)
    assert isinstance(net.adjoint, us.Stored)
    assert torch.allclose(net(X, GRAPH), wanted, atol=1e-12)


def test_channels_that_are_mixed_take_one_step():
    laplacian, eye = GRAPH.laplacian().to_dense(), torch.eye(12, dtype=X.dtype)
    system = torch.kron(eye, 0.6 * METRIC) + torch.kron(1.4 * laplacian, torch.eye(3, dtype=X.dtype))
    wanted = textbook(system, (0.6 * X @ METRIC).flatten(), X.flatten(), 4).view(X.shape)
    assert torch.allclose(us.unroll(QUADRATIC[1], us.ConjugateGradient(), 4)(X, GRAPH), wanted, atol=1e-12)


@pytest.mark.parametrize("objective", QUADRATIC, ids=str)
def test_few_steps_reach_the_minimiser(objective):
    found = us.unroll(objective, us.ConjugateGradient(), 36)(X, GRAPH)
    assert torch.allclose(found, us.minimise(objective, X, GRAPH), atol=1e-9)


def test_it_is_better_than_any_polynomial_chosen_beforehand():
    trace, other = (us.unroll(QUADRATIC[0], a, 6).trace(X, GRAPH) for a in (us.ConjugateGradient(), us.Chebyshev()))
    assert trace.after[-1] <= other.after[-1]
    assert all(after <= before for before, after in itertools.pairwise(trace.after))


@pytest.mark.parametrize("rule", [us.ConjugateGradient(), us.Newton(), us.Newton(step=0.8, iterations=3)], ids=str)
def test_they_keep_the_laws(rule):
    for objective in QUADRATIC[:2]:  # weights of edges belong to one order of the nodes
        testing.check_algorithm(rule, objective)
    alpha = us.Learnable(0.2, within=(0, 1), per_layer=True, name="α")
    testing.check_unrolled(us.unroll(us.Fidelity(alpha) + us.Smoothness(1 - alpha), rule, depth=4))


@pytest.mark.parametrize("objective", QUADRATIC, ids=str)
@pytest.mark.parametrize("start", ["minimiser", "zero signal", "converged"])
def test_gradients_are_finite_where_nothing_is_left(objective, start):
    x = torch.zeros_like(X) if start == "zero signal" else X
    begin = us.minimise(objective, X, GRAPH) if start == "minimiser" else x
    for dtype in (torch.float64, torch.float32):
        net = us.unroll(objective, us.ConjugateGradient(), 60, start=begin.to(dtype))
        given = x.to(dtype).clone().requires_grad_()
        out = net(given, GRAPH.to(dtype))
        (slope,) = torch.autograd.grad(out.sum(), given)
        assert bool(torch.isfinite(out).all())
        assert bool(torch.isfinite(slope).all())


def test_the_derivative_of_converged_steps_is_that_of_the_minimiser():
    alpha = us.Learnable(0.3, within=(0, 1), name="α")
    objective = us.Fidelity(alpha) + us.Smoothness(1 - alpha)
    probe = torch.cos(torch.arange(X.numel(), dtype=X.dtype)).view(X.shape)
    found = []
    for made in (us.unroll(objective, us.ConjugateGradient(), 20), us.unroll(objective, us.Exact())):
        net, x = made.double(), X.clone().requires_grad_()
        found.append(torch.autograd.grad((net(x, GRAPH) * probe).sum(), [x, *net.parameters()]))
    for one, other in zip(*found, strict=True):
        assert torch.allclose(one, other, atol=1e-7)


def test_newton_is_the_dense_newton_method():
    def value(flat):
        return ROBUST.value(flat.view(X.shape), X, GRAPH)

    h = X.flatten()
    for _ in range(3):
        slope = torch.autograd.functional.jacobian(value, h)
        h = h - torch.linalg.solve(torch.autograd.functional.hessian(value, h) + 0.1 * torch.eye(36), slope)
    net = us.unroll(ROBUST, us.Newton(iterations=60, damping=0.1), 3)
    assert torch.allclose(net(X, GRAPH).flatten(), h, atol=1e-8)


def test_newton_squares_the_error():
    distance = us.unroll(ROBUST, us.Newton(iterations=40), 8).trace(X, GRAPH).distance
    assert distance[-1] < 1e-9
    plain = us.unroll(ROBUST, us.GradientDescent(), 8).trace(X, GRAPH).distance
    assert distance[4] < 1e-3 * plain[4]


def test_newton_on_robust_objectives_has_gradients_and_stacks():
    testing.check_algorithm(us.Newton(), ROBUST)
    beta = us.Learnable(0.4, within=(0, None), name="β")
    step = us.Learnable(0.9, within=(0, None), name="η")
    objective = us.Fidelity(0.5) + us.EdgePenalty(us.Power(1.5, 0.1), beta)
    net = us.unroll(objective, us.Newton(step=step, iterations=4), depth=3).double()
    testing.check_unrolled(net)
    assert torch.autograd.gradcheck(lambda x: net(x, GRAPH), X.clone().requires_grad_())


def test_what_does_not_fit_is_refused():
    with pytest.raises(us.IncompatibleError, match="needs a quadratic objective"):
        us.unroll(ROBUST, us.ConjugateGradient(), 3)
    for rule in (us.ConjugateGradient(), us.Newton()):
        with pytest.raises(us.IncompatibleError, match="need not be symmetric"):
            us.unroll(us.Fidelity(0.5, metric=us.Relaxed(3)), rule, 3)
    for settings in ({"iterations": 0}, {"damping": -1.0}):
        with pytest.raises(us.InputError, match=next(iter(settings))):
            us.Newton(**settings)


@pytest.mark.parametrize("term", [us.EdgePenalty(us.Power(1.5), 0.4), us.NodeFidelity(torch.rand(12))], ids=str)
def test_newton_asks_for_gradients_only_where_somebody_does(term):
    net = us.unroll(us.Fidelity(0.5) + term, us.Newton(), depth=3)
    assert not net(X, GRAPH).requires_grad
    assert net(X.clone().requires_grad_(), GRAPH).requires_grad
    learnt = us.unroll(us.Fidelity(0.5) + term * us.Learnable(0.4, name="b"), us.Newton(), depth=3)
    assert learnt(X, GRAPH).requires_grad


RESTING = {
    "a weight of 0": lambda b: us.Fidelity(1.0) + us.Smoothness(b),
    "channels together": lambda b: us.Fidelity(1.0, metric=METRIC) + us.Smoothness(b),
    "edges": lambda b: us.Fidelity(1.0) + us.EdgeSmoothness(torch.linspace(0, 1, 17).double(), b),
    "a penalty": lambda b: us.Fidelity(1.0) + us.EdgePenalty(us.Log(2.0), b),
}
RULES = {
    "CG": us.ConjugateGradient(),
    "Newton": us.Newton(iterations=12),
    "Reweighted": us.Reweighted(us.ConjugateGradient()),
}


@pytest.mark.parametrize(("problem", "rule"), [(p, r) for p in RESTING for r in RULES if (p, r) != ("a penalty", "CG")])
def test_coefficients_train_from_a_start_that_is_the_minimiser(problem, rule):
    net = us.unroll(RESTING[problem](us.Learnable(0.0, name="b")), RULES[rule], depth=40).double()
    probe = torch.cos(torch.arange(X.numel(), dtype=X.dtype)).view(X.shape)

    def loss(x, raw):
        return (torch.func.functional_call(net, {"coefficients.b": raw}, (x, GRAPH)) * probe).sum()

    zero = torch.zeros((), dtype=X.dtype)
    assert torch.equal(net(X, GRAPH), X)  # it stays where it is, bit by bit
    slope = torch.func.grad(loss, argnums=1)(X, zero)
    wanted = (loss(X, zero + 1e-5) - loss(X, zero - 1e-5)) / 2e-5
    assert torch.allclose(slope, wanted, rtol=1e-4)
    stacked = torch.vmap(torch.func.grad(loss, argnums=1))(torch.stack([X, X.flip(0)]), zero.expand(2))
    assert torch.allclose(stacked[0], slope)
    assert bool(stacked[1] != 0)


def test_few_steps_from_the_minimiser_have_the_derivative_of_gradient_steps():
    found = []
    for rule in (us.ConjugateGradient(), us.GradientDescent(), us.Anderson(us.GradientDescent())):
        net = us.unroll(us.Fidelity(1.0) + us.Smoothness(us.Learnable(0.0, name="b")), rule, depth=8).double()
        found.append(torch.autograd.grad(net(X, GRAPH).square().sum(), net.parameters())[0])
    assert float(found[0]) != 0
    assert torch.allclose(found[0], found[1])
    assert torch.allclose(found[2], found[1])
