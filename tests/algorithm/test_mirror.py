"""Mirror descent: rows stay probabilities, and steps are those on paper."""

import itertools

import pytest
import torch

import unspool as us
from unspool import testing
from unspool.testing import small_graph

pytestmark = pytest.mark.long

GRAPH = small_graph()
GENERATOR = torch.Generator().manual_seed(7)
Z = torch.softmax(2 * torch.randn(12, 3, dtype=torch.float64, generator=GENERATOR), -1)
START = torch.softmax(torch.randn(12, 3, dtype=torch.float64, generator=GENERATOR), -1)


@pytest.mark.parametrize("term", [us.Simplex(), us.KLFidelity(0.5, floor=1e-3)], ids=str)
def test_its_terms_keep_the_laws(term):
    testing.check_term(term)


@pytest.mark.parametrize("more", [us.Smoothness(0.7), us.EdgePenalty(us.Power(1.5, 0.1), 0.4)], ids=str)
def test_it_arrives_at_the_constrained_minimiser(more):
    testing.check_algorithm(us.MirrorDescent(), us.Fidelity(0.3) + more + us.Simplex())


def test_steps_on_the_divergence_are_geometric_means():
    """h ∝ h^(1−ηα) z^(ηα) exp(−2ηβ(LH)), the closed form on paper."""
    alpha, beta, eta, h = 0.6, 0.4, 0.5, START
    laplacian = GRAPH.laplacian().to_dense()
    for _ in range(7):
        raw = h ** (1 - eta * alpha) * Z ** (eta * alpha) * torch.exp(-2 * eta * beta * laplacian @ h)
        h = raw / raw.sum(1, keepdim=True)
    objective = us.KLFidelity(alpha, floor=1e-12) + us.Smoothness(beta) + us.Simplex()
    net = us.unroll(objective, us.MirrorDescent(step=eta), depth=7, start=START)
    assert torch.allclose(net(Z, GRAPH), h, atol=1e-12)


def test_the_divergence_alone_leads_to_the_given_probabilities():
    net = us.unroll(us.KLFidelity(1.0, floor=1e-12) + us.Simplex(), us.MirrorDescent(step=1.0), depth=1, start=START)
    assert torch.allclose(net(Z, GRAPH), Z, atol=1e-12)


@pytest.mark.parametrize("objective", [us.Fidelity(0.3) + us.Smoothness(0.7), us.Smoothness(1.0) + us.Ridge(0.1)])
def test_the_objective_never_rises_and_rows_stay_probabilities(objective):
    net = us.unroll(objective + us.Simplex(), us.MirrorDescent(), depth=40)
    path = net.trace(torch.eye(12, 3, dtype=torch.float64), GRAPH).iterates[1:]
    assert all(float((h.sum(1) - 1).abs().max()) < 1e-12 and float(h.min()) >= 0 for h in path)
    values = [float(objective.value(h, torch.eye(12, 3, dtype=h.dtype), GRAPH)) for h in path]
    assert all(after <= before + 1e-12 for before, after in itertools.pairwise(values))


def test_gradients_and_stacks_also_from_rows_of_zeros_and_ones():
    alpha = us.Learnable(0.3, within=(0, 1), per_layer=True, name="α")
    net = us.unroll(us.Fidelity(alpha) + us.Smoothness(1 - alpha) + us.Simplex(), us.MirrorDescent(), depth=5).double()
    testing.check_unrolled(net)
    for dtype in (torch.float64, torch.float32):
        x = torch.eye(12, 3, dtype=dtype, requires_grad=True)
        out = net.to(dtype)(x, GRAPH.to(dtype))
        slopes = torch.autograd.grad(out.square().sum(), [x, *net.parameters()])
        assert all(bool(torch.isfinite(s).all()) for s in slopes)


def test_large_scores_do_not_overflow():
    net = us.unroll(us.Fidelity(1.0) + us.Simplex(), us.MirrorDescent(step=1e4), depth=5)
    out = net(1e4 * (Z - 0.5), GRAPH)
    assert bool(torch.isfinite(out).all())
    assert torch.allclose(out.sum(1), torch.ones(12, dtype=out.dtype))


def test_what_does_not_fit_is_refused():
    with pytest.raises(us.IncompatibleError, match=r"add Simplex\(\)"):
        us.unroll(us.Fidelity(1.0), us.MirrorDescent(), depth=2)
    with pytest.raises(us.IncompatibleError, match="Sparse would be left out"):
        us.unroll(us.Fidelity(1.0) + us.Sparse(0.1), us.MirrorDescent(), depth=2)
    with pytest.raises(us.InputError, match="floor"):
        us.MirrorDescent(floor=0.0)
    with pytest.raises(us.InputError, match="floor"):
        us.KLFidelity(floor=2.0)


@pytest.mark.parametrize("extra", [None, us.Simplex()], ids=str)
def test_a_minimiser_that_takes_long_is_told_of_the_floor(extra):
    rest = us.Smoothness(0.5) if extra is None else us.Smoothness(0.5) + extra
    short, long = (us.KLFidelity(0.5, floor) + rest for floor in (1e-6, 1e-4))
    with pytest.raises(us.IncompatibleError, match="or limit, or a larger floor of KLFidelity") as told:
        us.minimise(short, Z, GRAPH, limit=300)
    assert "Lipschitz" not in str(told.value)
    h = us.minimise(long, Z, GRAPH)
    if extra is not None:
        assert torch.allclose(us.unroll(long, us.MirrorDescent(step=0.5), 400)(Z, GRAPH), h, atol=1e-8)
