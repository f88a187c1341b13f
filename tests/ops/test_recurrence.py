"""What the primitive promises besides its gradient: steady bits, dtypes, views, stable high degrees, plain errors."""

import pytest
import torch
from torch.func import jvp, vmap

import unspool as us
from unspool.ops.operator import Operator

KINDS = {"numbers": (), "diagonals": (4,), "matrices": (4, 3)}


def signal(*shape, seed=1):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def one_way(nodes=9, seed=0, dtype=torch.float64):
    """A directed weighted graph: its operator differs from its transpose."""
    generator = torch.Generator().manual_seed(seed)
    dense = torch.rand(nodes, nodes, generator=generator) * (torch.rand(nodes, nodes, generator=generator) < 0.4)
    return us.Graph.from_dense(dense, normalise=us.Normalisation.RANDOM_WALK, directed=True).to(dtype)


def power_series(dense, x, hops):
    return sum(torch.linalg.matrix_power(dense, k) @ (x @ c if c.ndim == 2 else x * c) for k, c in enumerate(hops))


def relative(a, b):
    a, b = a.detach().double(), b.detach().double()
    return float((a - b).norm() / b.norm())


@pytest.mark.long
@pytest.mark.parametrize("basis", list(us.Basis))
def test_forward_mode_raises_instead_of_lying(basis):
    graph, x, hops = one_way(), signal(9, 2), signal(3)
    with pytest.raises(NotImplementedError, match="jvp"):
        jvp(lambda x: us.propagate(graph, x, hops, basis), (x,), (x,))
    with pytest.raises(NotImplementedError, match="jvp"):
        jvp(lambda hops: us.propagate(graph, x, hops, basis), (hops,), (hops,))


def test_chebyshev_is_accurate_at_degree_200_in_float32():
    graph, degree = us.graph.sensor(60)[0], 200
    hops = torch.cos(torch.arange(degree + 1.0)) / 10  # not decaying: every degree counts
    x = signal(60, 3)
    value, mode = torch.linalg.eigh(graph.to(torch.float64).to_dense())
    angle = torch.arccos(value.clamp(-1, 1))
    response = (hops.double()[:, None] * torch.cos(torch.arange(degree + 1.0)[:, None] * angle)).sum(0)
    expected = mode @ (response[:, None] * (mode.T @ x))
    weight = signal(60, 3, seed=2)
    assert relative(us.propagate(graph, x.float(), hops, us.Basis.CHEBYSHEV), expected) < 1e-4
    x32 = x.float().requires_grad_()
    us.propagate(graph, x32, hops, us.Basis.CHEBYSHEV).backward(weight.float())
    assert relative(x32.grad, mode @ (response[:, None] * (mode.T @ weight))) < 1e-4


@pytest.mark.parametrize("kind", list(KINDS))
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-5), (torch.bfloat16, 2e-2), (torch.float16, 5e-3)])
def test_dtypes_come_back_as_they_went_in(dtype, tolerance, kind):
    graph, exact = one_way(dtype=torch.float32), one_way()
    x, hops = signal(9, 4).to(dtype).requires_grad_(), signal(4, *KINDS[kind]).to(dtype).requires_grad_()
    result = us.propagate(graph, x, hops)
    gradients = torch.autograd.grad(result.sum(), (x, hops))
    x64, hops64 = (t.detach().double().requires_grad_() for t in (x, hops))
    expected = power_series(exact.to_dense(), x64, hops64)
    pairs = [(result, expected), *zip(gradients, torch.autograd.grad(expected.sum(), (x64, hops64)), strict=True)]
    for ours, reference in pairs:
        assert ours.dtype == dtype
        assert relative(ours, reference) < tolerance


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
def test_coefficients_may_be_finer_than_the_signal(dtype):
    graph, hops = one_way(dtype=torch.float32), signal(4).requires_grad_()
    x = signal(9, 4).to(dtype)
    result = us.propagate(graph, x, hops)
    assert result.dtype == dtype
    expected = power_series(one_way().to_dense(), x.double(), hops)
    assert relative(result, expected) < 2e-2
    ours, reference = (torch.autograd.grad(y.sum(), hops)[0] for y in (result, expected))
    assert ours.dtype == torch.float64
    assert relative(ours, reference) < 2e-2


@pytest.mark.parametrize("kind", list(KINDS))
@pytest.mark.parametrize("basis", list(us.Basis))
def test_same_bits_twice(basis, kind):
    graph, x, hops = one_way(200), signal(200, 4).requires_grad_(), signal(9, *KINDS[kind]).requires_grad_()

    def run():
        y = us.propagate(graph, x, hops, basis)
        return y, *torch.autograd.grad(y.square().sum(), (x, hops))

    assert all(torch.equal(a, b) for a, b in zip(run(), run(), strict=True))


VIEWS = {
    "transposed": lambda: signal(4, 9).T,
    "expanded": lambda: signal(9, 1).expand(9, 4),
    "expanded trials": lambda: signal(9, 4).expand(2, 9, 4),
    "strided": lambda: signal(18, 8)[::2, ::2],
    "trials last": lambda: signal(9, 4, 2).permute(2, 0, 1),
    "flipped dims": lambda: signal(4, 9, 2).transpose(0, 2),
}


@pytest.mark.parametrize("view", list(VIEWS))
@pytest.mark.parametrize("kind", list(KINDS))
def test_signals_that_are_views(kind, view):
    graph, x, hops = one_way(), VIEWS[view](), signal(4, *KINDS[kind])
    assert not x.is_contiguous()
    x.requires_grad_()
    hops = hops.transpose(1, 2).contiguous().transpose(1, 2) if hops.ndim == 3 else hops
    result, expected = us.propagate(graph, x, hops), power_series(graph.to_dense(), x, hops)
    assert relative(result, expected) < 1e-12
    assert relative(*(torch.autograd.grad(y.sin().sum(), x)[0] for y in (result, expected))) < 1e-12


@pytest.mark.slow
def test_inductor_keeps_the_gradient():
    torch.compiler.reset()
    graph, x, hops = one_way(), signal(2, 9, 4).requires_grad_(), signal(2, 4, 4, 3).requires_grad_()

    def loss(series, x, hops):
        return vmap(lambda x, hops: series(x, hops).sin().sum())(x, hops).sum()

    compiled = torch.compile(lambda x, hops: loss(lambda *a: us.propagate(graph, *a), x, hops), fullgraph=True)
    expected = loss(lambda *a: power_series(graph.to_dense(), *a), x, hops)
    result, reference = (torch.autograd.grad(value, (x, hops)) for value in (compiled(x, hops), expected))
    assert all(relative(a, b) < 1e-9 for a, b in zip(result, reference, strict=True))


@pytest.mark.parametrize(
    ("shape", "hops", "kind", "sentence"),
    [
        ((9,), torch.ones(2), ValueError, r"x has shape \(nodes,\): propagate needs .* use x\[:, None\]"),
        ((9, 4), torch.ones(0), ValueError, r"hops has shape \(0,\).* at least one hop"),
        ((9, 4), torch.tensor(1.0), ValueError, r"hops has shape \(\): expected \(hops,\)"),
        ((9, 4), torch.ones(2, 4, 3, 1), ValueError, r"hops has shape \(2, 4, 3, 1\): expected"),
        ((9, 4), torch.ones(2, 5), ValueError, r"hops has shape \(2, 5\), but x has 4 features"),
        ((9, 4), torch.ones(2, 3, 4), ValueError, r"hops has shape \(2, 3, 4\), but x has 4 features"),
        ((9, 4), torch.ones(2, dtype=torch.int64), TypeError, "hops must be floating-point"),
        (
            (10, 4),
            torch.ones(2),
            ValueError,
            r"x has shape \(10, 4\), but the graph has 9 nodes",
        ),
    ],
)
def test_what_does_not_fit_is_named(shape, hops, kind, sentence):
    hops = hops.double() if hops.is_floating_point() else hops
    with pytest.raises(kind, match=sentence):
        us.propagate(one_way(), signal(*shape), hops)


def test_rectangles_have_no_powers():
    wide = Operator.from_entries(torch.tensor([0]), torch.tensor([2]), signal(1), (2, 3))
    with pytest.raises(ValueError, match=r"propagate needs a square operator, this one has shape \(2, 3\)"):
        us.propagate(wide, signal(3, 1), signal(2))
