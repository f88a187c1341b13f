"""Layers behind free hop coefficients: every polynomial that is not zero at frequency zero has some."""

import itertools

import numpy as np
import pytest
import torch

import unspool as us
from unspool.ops.polynomial import Basis
from unspool.unrolling.division import divide, tails, unrolled


def off(found, hops):
    """By how much the layers, unrolled again, miss the hop coefficients and the frequency response."""
    again, c = found.hops().numpy(), np.asarray(hops)
    points = np.cos(np.linspace(0, np.pi, 101))[:, None] ** np.arange(len(c))
    by_hop = np.abs(again - c).max() / np.abs(c).max()
    return max(by_hop, np.abs(points @ (again - c)).max() / np.abs(points @ c).max())


# -- numbers --------------------------------------------------------------------------------------------------------------


def signed(random):
    """Hop coefficients of degree 1 to 20 with |Σγ| ≥ 1e-3 ‖γ‖₁: of one size, of many, whole numbers."""
    kinds = (
        random.standard_normal,
        lambda n: random.integers(-3, 4, n).astype(float),
        lambda n: random.standard_normal(n) * 0.5 ** np.arange(n),
        lambda n: random.standard_normal(n) * 10.0 ** random.integers(-8, 1, n),
    )
    while True:
        c = kinds[random.integers(len(kinds))](random.integers(2, 22))
        if abs(c.sum()) >= 1e-3 * np.abs(c).sum() > 0:
            return c


def misses_of_signed(count):
    random = np.random.default_rng(0)
    worst = 0.0
    for _ in range(count):
        c = signed(random)
        found = us.read_back_hops(torch.from_numpy(c))
        assert len(found.layers) == len(c) - 1
        worst = max(worst, off(found, c))
    return worst


def test_any_signed_numbers_are_read():
    assert misses_of_signed(200) <= 1e-8


@pytest.mark.slow
def test_ten_thousand_signed_numbers_are_read():
    assert misses_of_signed(10_000) <= 1e-8


def test_whole_numbers_are_read_without_exception():
    for c in itertools.product((-2.0, -1.0, 0.0, 1.0), repeat=4):
        if sum(c):
            assert off(us.read_back_hops(torch.tensor(c, dtype=torch.float64)), c) <= 1e-12


def test_what_was_called_out_of_reach():
    c = torch.tensor([1.0, 1.0, -1.0], dtype=torch.float64)
    found = us.read_back_hops(c)
    assert off(found, c) == 0
    assert max(abs(v) for layer in found.layers for v in (layer.alpha, layer.beta)) < 3


def convex_layers(random):
    """Layers of random α, β ≥ 0 and steps up to 2/L: independent, tied, at 2/L exactly, without fidelity, or like APPNP's."""
    depth = random.integers(1, 21)
    alpha, beta, share = random.random((3, depth))
    kind = random.integers(5)
    if kind == 1:
        alpha, beta, share = (np.full(depth, v[0]) for v in (alpha, beta, share))
    elif kind == 2:
        share = np.ones(depth)
    elif kind == 3:
        alpha = np.zeros(depth)
    elif kind == 4:
        beta = 1 - alpha
        share = (alpha + 2 * beta) / 2  # η = 1/2
    step = share / (alpha + 2 * beta)
    return 1 - 2 * step * (alpha + beta), 2 * step * beta


def convex_readings(count):
    random = np.random.default_rng(1)
    read = 0
    for _ in range(count):
        c = unrolled(*convex_layers(random))
        found = us.read_back_hops(torch.from_numpy(c))
        assert off(found, c) <= 1e-8
        read += found.convex
    return read / count


def test_networks_of_convex_stable_layers_get_a_convex_stable_reading():
    assert convex_readings(60) >= 0.99


@pytest.mark.slow
def test_a_thousand_networks_of_convex_stable_layers():
    assert convex_readings(1000) >= 0.99


def test_convex_means_what_it_says():
    random = np.random.default_rng(3)
    for _ in range(20):
        found = us.read_back_hops(torch.from_numpy(unrolled(*convex_layers(random))))
        if found.convex:
            for layer in found.layers:
                assert layer.alpha >= -1e-9
                assert layer.beta >= -1e-9
                assert layer.alpha + 2 * layer.beta <= 2 + 1e-9  # η L ≤ 2 with η = 1/2


def test_a_negative_hop_coefficient_is_no_negative_weight(graph):
    net = us.unroll(us.Fidelity(0.5) + us.Smoothness(0.5), us.GradientDescent(step=0.66), depth=3)
    hops = net.hops(graph)
    assert float(hops.min()) < -0.1
    found = us.read_back_hops(hops)
    assert found.convex
    assert found.note == ""


def test_where_none_was_found_nothing_more_is_claimed():
    found = us.read_back_hops(torch.tensor([0.5, 1.5, -1.0], dtype=torch.float64))
    assert not found.convex
    assert "was found" in found.note
    assert "exist" not in str(found)


def test_the_papers_own_layers_come_first(graph):
    alpha = us.Learnable(0.2, per_layer=True, name="α")
    net = us.unroll(us.Fidelity(alpha) + us.Smoothness(1 - alpha), us.GradientDescent(step=0.5), depth=4).double()
    with torch.no_grad():
        net.coefficients["α"].copy_(torch.tensor([0.1, 0.6, 0.3, 0.8]))
    found = us.read_back_hops(net.hops(graph))
    assert [layer.alpha for layer in found.layers] == pytest.approx([0.1, 0.6, 0.3, 0.8])
    assert [layer.beta for layer in found.layers] == pytest.approx([0.9, 0.4, 0.7, 0.2])
    assert found.factor == pytest.approx(1.0)


def test_trailing_zero_hops_are_fine():
    found = us.read_back_hops(torch.tensor([1.0, 0.0, 0.0], dtype=torch.float64))
    assert off(found, [1.0, 0.0, 0.0]) == 0
    assert found.convex


def test_the_same_coefficients_are_read_the_same_way():
    c = torch.from_numpy(signed(np.random.default_rng(5)))
    first, again = (us.read_back_hops(c) for _ in range(2))
    assert [layer.alpha for layer in first.layers] == [layer.alpha for layer in again.layers]


def test_deep_networks_are_read(graph):
    for objective, step in ((us.Fidelity(0.1) + us.Smoothness(0.9), 0.5), (us.Fidelity(0.4) + us.Smoothness(0.3), 0.9)):
        hops = us.unroll(objective, us.GradientDescent(step=step), depth=64).hops(graph)
        found = us.read_back_hops(hops)
        assert off(found, hops) <= 1e-8
        assert len(found.layers) == 64


# -- diagonals and matrices ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(6,), (6, 3), (6, 3, 3), (21, 3, 3)])
def test_replaying_the_layers_is_the_network(shape, graph, x, random):
    hops = torch.randn(shape, dtype=torch.float64, generator=random)
    net = us.HopNetwork(hops).double()
    with torch.no_grad():
        net.coefficients.copy_(hops)
    found = net.read_back()
    assert len(found.layers) == len(hops) - 1
    h, l = x, graph.laplacian()  # noqa: E741
    apply = lambda h, t: h @ t if torch.as_tensor(t).ndim == 2 else h * t  # noqa: E731
    for layer in found.layers:
        h = h - apply(h - x, layer.fidelity) - apply(l @ h, layer.smoothness)
    assert torch.allclose(apply(h, found.factor), net(x, graph), atol=1e-8)
    assert found.error <= 1e-8
    assert torch.allclose(found.hops(), hops, atol=1e-8 * float(hops.abs().max()))


def test_channels_that_are_convex_are_read_as_such():
    random = np.random.default_rng(2)
    c = np.stack([unrolled(*(part[:1].repeat(5) for part in convex_layers(random))) for _ in range(3)], axis=1)
    assert us.read_back_hops(torch.from_numpy(c)).convex
    spoilt = c.copy()
    spoilt[:, 1] = [0.0, 3.0, -3.0, 3.0, -3.0, 1.0]
    found = us.read_back_hops(torch.from_numpy(spoilt))
    assert not found.convex
    assert "1 of 3 channels" in found.note
    matrices = us.read_back_hops(torch.diag_embed(torch.from_numpy(c)))  # matrices in name only
    assert matrices.convex


def turned(g, seed=0):
    """The same matrix polynomial in another basis of the channels."""
    u = np.random.default_rng(seed).standard_normal(g.shape[1:])
    return np.linalg.inv(u) @ g @ u


def from_tails(g):
    return np.concatenate([np.eye(g.shape[1])[None] - g[:1], g[:-1] - g[1:], g[-1:]])


def test_a_singular_quotient_that_never_mentions_a_channel_again_is_no_obstacle():
    """G = diag(1, 1 + a + a²): after one division the quotient is singular at every point."""
    g = np.stack([np.eye(2), np.diag([0.0, 1.0]), np.diag([0.0, 1.0])])
    for basis in (g, turned(g)):
        c = from_tails(basis)
        found = us.read_back_hops(torch.from_numpy(c))
        assert np.abs(found.hops().numpy() - c).max() <= 1e-10


def test_where_dividing_stops_the_layers_are_fitted():
    g = np.zeros((2, 2, 2))
    g[0, 0, 0], g[1, 0, 1] = 1.0, 1.0  # ((1, a), (0, 0)): singular everywhere, and all columns are mentioned
    assert divide(g) is None
    c = from_tails(turned(g))
    found = us.read_back_hops(torch.from_numpy(c))
    assert np.abs(found.hops().numpy() - c).max() <= 1e-9
    assert "fitted" in found.note


@pytest.mark.parametrize("features", [2, 3])
@pytest.mark.parametrize("kind", ["random", "unrolled"])
def test_symmetric_metrics_are_found(features, kind):
    random = np.random.default_rng(4)
    if kind == "random":
        c = random.standard_normal((6, features, features))
    else:
        keep, hop = 0.3 * random.standard_normal((2, 5, features, features))
        c = unrolled(keep + keep.swapaxes(1, 2), hop + hop.swapaxes(1, 2) + 0.4 * np.eye(features))
    found = us.HopNetwork(c).double().read_back(symmetric=True)
    assert max(layer.asymmetry for layer in found.layers) == 0
    assert np.abs(found.hops().numpy() - c.astype(np.float32)).max() <= 1e-7 * np.abs(c).max()


def test_ugdgnn_and_jknet_have_symmetric_metrics_on_few_channels():
    torch.manual_seed(0)
    for model in (us.models.UGDGNN(4, 3, depth=5), us.models.JKNet(4, 3, hidden=2, depth=5)):
        net = model.double().propagation
        free, found = net.read_back(), net.read_back(symmetric=True)
        assert max(layer.asymmetry for layer in found.layers) == 0
        assert max(layer.asymmetry for layer in free.layers) > 1e-3
        assert torch.allclose(found.hops(), net.hops().detach(), atol=1e-8)


def test_symmetric_metrics_that_are_not_there_say_how_near_they_came():
    turn = torch.tensor([[0.5, 0.3], [-0.3, 0.5]], dtype=torch.float64)
    one_layer = torch.stack([torch.eye(2, dtype=torch.float64) - turn, turn])  # K = 1: its only metric is not symmetric
    with pytest.raises(us.IncompatibleError, match=r"off by 0\.\d+ .* 3 numbers for 4 coefficients"):
        us.read_back_hops(one_layer, symmetric=True)
    with pytest.raises(us.IncompatibleError, match="at most 4 channels, not 6"):
        us.read_back_hops(torch.randn(9, 6, 6, generator=torch.Generator().manual_seed(0)), symmetric=True)


# -- other bases and refusals ---------------------------------------------------------------------------------------------


def test_chebyshev_coefficients_are_read_as_what_they_are(graph, x):
    torch.manual_seed(0)
    model = us.models.UGDGNN(3, 3, depth=6, basis=Basis.CHEBYSHEV).double()
    found = model.propagation.read_back()
    assert torch.allclose(us.propagate(graph, x, found.hops()), model.propagation(x, graph), atol=1e-10)


def test_readings_that_lose_their_digits_are_not_handed_out(graph):
    net = us.unroll(us.Fidelity(0.05) + us.Smoothness(0.95), us.Chebyshev(), depth=60)
    with pytest.raises(us.IncompatibleError, match="relative error"):
        us.read_back_hops(net.hops(graph), basis=net.adjoint.basis)


@pytest.mark.parametrize(
    ("hops", "words"),
    [
        (torch.tensor([1.0, -1.0]), "pure high-pass"),
        (torch.tensor([[[1.0, 0], [0, 1]], [[1, 0], [0, -1]]]), "erases some signals of frequency zero"),
        (torch.ones(3, 2, 4), "change the width"),
        (torch.ones(1), "nothing to read back"),
        (torch.tensor([1.0, float("nan")]), "not finite"),
    ],
)
def test_what_cannot_be_read_says_why(hops, words):
    with pytest.raises(us.IncompatibleError, match=words):
        us.read_back_hops(hops)


def test_division_is_the_inverse_of_unrolling_for_any_points():
    random = np.random.default_rng(0)
    c = random.standard_normal(9)
    c /= c.sum()
    for points in (np.array([0.3]), np.linspace(-1, 1, 7)):
        found = divide(tails(c), points)
        assert found is not None
        assert np.abs(unrolled(*found) - c).max() <= 1e-9
