"""ADMM: its steps against dense ones written out, its minimisers, its gradients."""

import pytest
import torch

import unspool as us
from unspool import testing
from unspool.testing import small_graph

pytestmark = pytest.mark.long

GRAPH = small_graph()
X = torch.randn(12, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(3))
OBJECTIVE = us.Fidelity(0.3) + us.Smoothness(0.7)


@pytest.mark.parametrize("more", [us.Sparse(0.2), us.EdgeSparse(0.2), us.EdgeSparse(0.2, rows=False)], ids=str)
@pytest.mark.parametrize("rule", [us.ADMM(), us.ADMM(rho=0.4, steps=3)], ids=["linearised", "three steps"])
def test_it_keeps_the_laws(rule, more):
    testing.check_algorithm(rule, OBJECTIVE)
    testing.check_algorithm(rule, OBJECTIVE + more)


@pytest.mark.parametrize("steps", [1, 4])
def test_its_steps_are_the_dense_ones(steps):
    b, laplacian, rho, lam, depth = GRAPH.incidence().to_dense(), GRAPH.laplacian().to_dense(), 0.8, 0.3, 5
    tau = 1 / (2 * 0.5 + 2 * 0.2 * 2 + rho * 2)
    h, z, u = X, b @ X, torch.zeros(b.shape[0], 3, dtype=torch.float64)
    for _ in range(depth):
        for _ in range(steps):
            slope = (h - X) + 0.4 * laplacian @ h + rho * b.T @ (b @ h - z + u)
            h = (h - tau * slope).clamp_min(0)
        v = b @ h + u
        z = v.sign() * (v.abs() - lam / rho).clamp_min(0)
        u = v - z
    objective = us.Fidelity(0.5) + us.Smoothness(0.2) + us.EdgeSparse(lam, rows=False) + us.NonNegative()
    net = us.unroll(objective, us.ADMM(rho=rho, steps=steps), depth=depth)
    assert torch.allclose(net(X, GRAPH), h, atol=1e-12)


def test_two_composite_terms_and_a_constraint():
    objective = us.Fidelity(1.0) + us.EdgeSparse(0.2) + us.GroupGap(torch.arange(12) % 2, 5.0) + us.NonNegative()
    far = us.unroll(objective, us.ADMM(), depth=4000)(X + 1, GRAPH)
    assert torch.allclose(far, us.minimise(objective, X + 1, GRAPH), atol=1e-6)


def test_without_composite_terms_it_is_proximal_gradient_and_lowers():
    net = us.unroll(OBJECTIVE, us.ADMM(), depth=6)
    assert isinstance(net.adjoint, us.Polynomial)
    assert torch.allclose(net(X, GRAPH), us.unroll(OBJECTIVE, us.GradientDescent(), depth=6)(X, GRAPH), atol=1e-12)


def test_gradients_and_stacks():
    rho = us.Learnable(0.7, within=(0, None), name="ρ")
    weight = us.Learnable(0.2, within=(0, None), per_layer=True, name="λ")
    net = us.unroll(us.Fidelity(0.5) + us.EdgeSparse(weight), us.ADMM(rho=rho), depth=6).double()
    testing.check_unrolled(net)
    x = X.clone().requires_grad_()
    slopes = torch.autograd.grad(net(x, GRAPH).square().sum(), [x, *net.parameters()])
    assert all(bool(torch.isfinite(s).all()) and float(s.abs().max()) > 0 for s in slopes)


@pytest.mark.parametrize(
    ("rule", "objective"),
    [
        (us.ADMM(rho=0.5), us.Smoothness(0.2) + us.EdgeSparse(0.1)),
        (us.Reweighted(us.Jacobi(step=0.9)), us.EdgePenalty(us.Power(1.5, 0.3), 0.2)),
        (us.MirrorDescent(), us.Smoothness(0.4) + us.Simplex()),
    ],
    ids=["ADMM", "Reweighted", "MirrorDescent"],
)
def test_fixed_points_of_rules_are_minimisers_with_their_derivatives(rule, objective):
    alpha = us.Learnable(0.8, within=(0, None), name="α")
    probe = torch.cos(torch.arange(X.numel(), dtype=X.dtype)).view(X.shape)
    found = []
    for made in (
        us.unroll(us.Fidelity(alpha) + objective, rule, 1, adjoint=us.FixedPoint()),
        us.unroll(us.Fidelity(alpha) + objective, us.Exact()),
    ):
        net, x = made.double(), torch.softmax(0.3 * X, -1).requires_grad_()
        out = net(x, GRAPH)
        found.append([out.detach(), *torch.autograd.grad((out * probe).sum(), [x, *net.parameters()])])
    for one, other in zip(*found, strict=True):
        assert torch.allclose(one, other, atol=1e-6)


@pytest.mark.parametrize("settings", [{"rho": 0.0}, {"rho": torch.eye(2)}, {"steps": 0}])
def test_bad_settings_are_named(settings):
    with pytest.raises(us.InputError, match=next(iter(settings))):
        us.ADMM(**settings)
