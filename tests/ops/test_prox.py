"""Every proximal operator minimises what it says, contracts firmly, and has gradients at its kinks."""

import math

import pytest
import torch
from scipy.optimize import brentq

from unspool.ops import prox

ROWS, COLS = 6, 4


def seeded(seed):
    return torch.Generator().manual_seed(seed)


def signal(*shape, seed=1):
    return torch.randn(*shape, generator=seeded(seed), dtype=torch.float64)


CENTRE = signal(ROWS, COLS, seed=11)
LOW, HIGH = -signal(COLS, seed=12).abs(), signal(COLS, seed=13).abs()
PER_ROW = 1.5 * torch.rand(ROWS, 1, generator=seeded(14), dtype=torch.float64)


def inside(ok):
    return 0.0 if bool(ok) else math.inf


def length(y):
    return y.norm(dim=-1, keepdim=True)


def on_simplex(y, total):
    return inside((y >= -1e-12).all() & ((y.sum(-1) - total).abs() < 1e-9).all())


# name: (proximal operator, its function, a map into the domain so that competitors are finite)
CASES = {
    "non_negative": (prox.non_negative, lambda y: inside((y >= 0).all()), torch.abs),
    "box": (lambda v: prox.box(v, -0.5, 0.7), lambda y: inside(((y >= -0.5) & (y <= 0.7)).all()), lambda y: y.clamp(-0.5, 0.7)),
    "box per column": (lambda v: prox.box(v, LOW, HIGH), lambda y: inside(((y >= LOW) & (y <= HIGH)).all()), lambda y: y.clamp(LOW, HIGH)),
    "soft_threshold": (lambda v: prox.soft_threshold(v, 0.6), lambda y: 0.6 * float(y.abs().sum()), None),
    "soft_threshold per row": (lambda v: prox.soft_threshold(v, PER_ROW), lambda y: float((PER_ROW * y.abs()).sum()), None),
    "row_shrink": (lambda v: prox.row_shrink(v, 1.3), lambda y: 1.3 * float(length(y).sum()), None),
    "row_shrink per row": (lambda v: prox.row_shrink(v, PER_ROW), lambda y: float((PER_ROW * length(y)).sum()), None),
    "row_shrink to centre": (lambda v: prox.row_shrink(v, 1.3, CENTRE), lambda y: 1.3 * float(length(y - CENTRE).sum()), None),
    "row_shrink by nothing": (lambda v: prox.row_shrink(v, 0.0), lambda y: 0.0, None),
    "ball": (lambda v: prox.ball(v, 1.2), lambda y: inside((length(y) <= 1.2 + 1e-12).all()), lambda y: y * (1.2 / length(y)).clamp_max(1)),
    "simplex": (prox.simplex, lambda y: on_simplex(y, 1), lambda y: torch.softmax(y, -1)),
    "simplex of 2.5": (lambda v: prox.simplex(v, 2.5), lambda y: on_simplex(y, 2.5), lambda y: 2.5 * torch.softmax(y, -1)),
}  # fmt: skip


@pytest.mark.parametrize("size", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("name", list(CASES))
def test_beats_random_competitors(name, size):
    operator, value, into = CASES[name]
    v = size * signal(ROWS, COLS)
    best = operator(v)

    def cost(y):
        return value(y) + float(((y - v) ** 2).sum()) / 2

    assert math.isfinite(cost(best))
    for seed in range(40):
        for scale in (1e-3, 1e-1, 1.0, size):
            rival = best + scale * signal(ROWS, COLS, seed=100 + seed)
            rival = rival if into is None else into(rival)
            towards = best + scale * (rival - best) / 10  # the domain is convex: still inside
            assert cost(best) <= cost(rival) + 1e-9
            assert cost(best) <= cost(towards) + 1e-9


@pytest.mark.parametrize("size", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("name", list(CASES))
def test_is_firmly_non_expansive(name, size):
    operator = CASES[name][0]
    for seed in range(30):
        u = size * signal(ROWS, COLS, seed=seed)
        v = u + (size if seed % 2 else 0.01) * signal(ROWS, COLS, seed=seed + 1000)
        gap = operator(u) - operator(v)
        assert float((gap * gap).sum()) <= float((gap * (u - v)).sum()) + 1e-12 * size**2


KINKS = {
    "zeros": torch.zeros(ROWS, COLS, dtype=torch.float64),
    "the centre": CENTRE,
    "far away": 1e6 * signal(ROWS, COLS),
    "nearly zero": 1e-200 * signal(ROWS, COLS),
    "on the radius": 1.3 * torch.eye(ROWS, COLS, dtype=torch.float64),
    "on the threshold": torch.full((ROWS, COLS), 0.6, dtype=torch.float64),
    "ties": torch.full((ROWS, COLS), 0.25, dtype=torch.float64),
}


@pytest.mark.parametrize("kink", list(KINKS))
@pytest.mark.parametrize("name", list(CASES))
def test_gradients_are_finite_at_kinks(name, kink):
    v = KINKS[kink].clone().requires_grad_()
    result = CASES[name][0](v)
    gradient = torch.autograd.grad((result * signal(ROWS, COLS)).sum(), v)[0]
    assert bool(result.isfinite().all())
    assert bool(gradient.isfinite().all())
    assert float(gradient.norm()) <= float(signal(ROWS, COLS).norm()) * (1 + 1e-9)  # a contraction has a small Jacobian


@pytest.mark.parametrize("radius", [0.0, 1.3])
def test_radius_and_centre_have_finite_gradients_at_the_centre(radius):
    h, centre = CENTRE.clone().requires_grad_(), CENTRE.clone().requires_grad_()
    rho = torch.tensor(radius, dtype=torch.float64, requires_grad=True)
    value = (prox.row_shrink(h, rho, centre) * signal(ROWS, COLS)).sum()
    assert all(bool(g.isfinite().all()) for g in torch.autograd.grad(value, (h, centre, rho)))


SMOOTH = {
    "box": lambda v, r: prox.box(v, -r, r),
    "soft_threshold": prox.soft_threshold,
    "row_shrink": prox.row_shrink,
    "row_shrink to centre": lambda v, r: prox.row_shrink(v, r, CENTRE),
    "ball": prox.ball,
    "simplex": lambda v, r: prox.simplex(v),
}


@pytest.mark.parametrize("name", list(SMOOTH))
def test_gradients_away_from_kinks(name):
    radius = torch.tensor(0.83, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(SMOOTH[name], (signal(ROWS, COLS, seed=5).requires_grad_(), radius))


@pytest.mark.parametrize("size", [0.01, 1.0, 100.0])
def test_ball_is_a_projection(size):
    v = size * signal(50, COLS)
    p = prox.ball(v, 1.2)
    outside = length(v) > 1.2
    assert float(length(p).max()) <= 1.2 * (1 + 1e-12)
    assert torch.allclose(p, torch.where(outside, 1.2 * v / length(v), v), rtol=1e-12, atol=0)


def simplex_by_bisection(row, total):
    """The projection is relu(v − t) for the one t that gives the right total."""
    t = brentq(
        lambda t: float((row - t).clamp_min(0).sum()) - total,
        float(row.min()) - total - 1,
        float(row.max()),
        xtol=1e-14,
    )
    return (row - t).clamp_min(0)


@pytest.mark.parametrize("size", [0.01, 1.0, 100.0])
@pytest.mark.parametrize("total", [0.3, 1.0, 7.0])
@pytest.mark.parametrize("cols", [1, 2, 9])
def test_simplex_by_bisection(cols, total, size):
    v = size * signal(2, 8, cols)
    p = prox.simplex(v, total)
    assert float(p.min()) >= 0
    assert torch.allclose(p.sum(-1), torch.full((2, 8), total, dtype=torch.float64))
    expected = torch.stack([simplex_by_bisection(row, total) for row in v.reshape(16, cols)]).view_as(v)
    assert torch.allclose(p, expected, atol=1e-10 * max(size, 1))


def test_row_shrink_row_by_row():
    h, rho = CENTRE + signal(ROWS, COLS) * torch.tensor([0.1, 0.3, 1, 1, 2, 5], dtype=torch.float64)[:, None], 0.9
    result = prox.row_shrink(h, rho, CENTRE)
    for out, row, centre in zip(result, h, CENTRE, strict=True):
        distance = float((row - centre).norm())
        assert torch.allclose(out, centre + max(0.0, 1 - rho / distance) * (row - centre), atol=1e-14)
    assert torch.equal(result[0], CENTRE[0])  # a row near its centre lands exactly on it
    assert torch.allclose(prox.row_shrink(h - CENTRE, rho) + CENTRE, result)


@pytest.mark.parametrize("shape", [(3, ROWS, COLS), (2, 3, ROWS, COLS)])
def test_leading_dimensions_are_trials(shape):
    v = signal(*shape)
    for operator, _, _ in CASES.values():
        rows = v.reshape(-1, ROWS, COLS)
        assert torch.equal(operator(v).reshape(rows.shape), torch.stack([operator(one) for one in rows]))
        assert torch.equal(torch.func.vmap(operator)(v), operator(v))


def test_simplex_of_large_entries():
    assert torch.equal(prox.simplex(torch.tensor([[2e7, 1.0]])), torch.tensor([[1.0, 0.0]]))
    with pytest.raises(ValueError, match="positive number"):
        prox.simplex(torch.ones(1, 2), total=0.0)
