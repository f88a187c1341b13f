"""Anderson acceleration around other rules."""

import pytest
import torch

import unspool as us
from unspool import testing
from unspool.testing import small_graph

GRAPH = small_graph()
X = torch.randn(12, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(3))
OBJECTIVE = us.Fidelity(0.05) + us.Smoothness(0.95)


@pytest.mark.parametrize(
    "rule",
    [
        us.Anderson(us.GradientDescent()),
        us.Anderson(us.ProximalGradient(), memory=1),
        us.Anderson(us.Jacobi(step=0.9), memory=6),
        us.Anderson(us.Reweighted(us.GradientDescent())),
    ],
    ids=lambda r: r.inner.name,
)
def test_it_keeps_the_laws(rule):
    testing.check_algorithm(rule)
    testing.check_algorithm(rule, us.Fidelity(0.5) + us.EdgePenalty(us.Power(1.5, 0.1), 0.4))


def test_its_steps_are_the_least_squares_ones():
    memory, depth, step = 2, 5, 0.3
    laplacian = GRAPH.laplacian().to_dense()

    def apply(h):
        return h - step * (0.1 * (h - X) + 1.9 * laplacian @ h)

    points, left = [X], [apply(X) - X]
    for k in range(depth):
        ahead = points[-1] + left[-1]
        if k:
            last = range(k, max(k - memory, 0), -1)
            dx = torch.stack([(points[i] - points[i - 1]).flatten() for i in last], 1)
            df = torch.stack([(left[i] - left[i - 1]).flatten() for i in last], 1)
            gamma = torch.linalg.lstsq(df, left[-1].flatten()).solution
            ahead = ahead - ((dx + df) @ gamma).view(X.shape)
        points.append(ahead)
        left.append(apply(ahead) - ahead)
    rule = us.Anderson(us.GradientDescent(step=step), memory=memory, ridge=1e-15)
    assert torch.allclose(us.unroll(OBJECTIVE, rule, depth)(X, GRAPH), points[-1], atol=1e-8)


def test_the_first_step_is_plain():
    one, other = (us.unroll(OBJECTIVE, r, 1)(X, GRAPH) for r in (us.Anderson(us.Jacobi()), us.Jacobi()))
    assert torch.equal(one, other)


def test_it_is_much_faster():
    rules = (us.GradientDescent(), us.Anderson(us.GradientDescent(), memory=5))
    plain, fast = (us.unroll(OBJECTIVE, rule, 20).trace(X, GRAPH).distance[-1] for rule in rules)
    assert fast < 1e-2 * plain


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_gradients_are_finite_after_convergence_and_at_rest(dtype):
    for begin in (X, us.minimise(OBJECTIVE, X, GRAPH), torch.zeros_like(X)):
        net = us.unroll(OBJECTIVE, us.Anderson(us.GradientDescent()), 80, start=begin.to(dtype))
        x = X.to(dtype).clone().requires_grad_()
        (slope,) = torch.autograd.grad(net(x, GRAPH.to(dtype)).sum(), x)
        assert bool(torch.isfinite(slope).all())


def test_gradients_and_stacks():
    alpha = us.Learnable(0.2, within=(0, 1), per_layer=True, name="α")
    net = us.unroll(
        us.Fidelity(alpha) + us.Smoothness(1 - alpha), us.Anderson(us.GradientDescent(step=0.4)), depth=5
    ).double()
    assert isinstance(net.adjoint, us.Stored)
    testing.check_unrolled(net)
    assert torch.autograd.gradcheck(lambda x: net(x, GRAPH), X.clone().requires_grad_())


def test_what_does_not_fit_is_refused():
    net = us.unroll(OBJECTIVE, us.Anderson(us.Accelerated()), 3)
    with pytest.raises(us.IncompatibleError, match="Accelerated keeps 2 parts"):
        net(X, GRAPH)
    with pytest.raises(us.IncompatibleError, match="needs a gradient, but Sparse has none"):
        us.unroll(us.Fidelity(0.5) + us.Sparse(0.1), us.Anderson(us.GradientDescent()), 3)
    for settings in ({"inner": "Jacobi"}, {"memory": 0}, {"ridge": 0.0}):
        with pytest.raises(us.InputError, match=next(iter(settings))):
            us.Anderson(**{"inner": us.Jacobi(), **settings})
