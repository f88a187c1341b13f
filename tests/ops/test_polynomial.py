"""The gradient law: however the primitive is transformed, both gradients are those of the dense power series."""

import itertools

import pytest
import torch
from torch.func import grad, vmap

import unspool as us
from unspool.ops import column_pieces
from unspool.ops.operator import Operator

pytestmark = pytest.mark.long


NODES = 7
BASES = list(us.Basis)
KINDS = {"numbers": (), "diagonals": (4,), "matrices": (4, 3)}
DEGREES = [0, 1, 5]


def signal(*shape, seed=1):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def directed(nodes=NODES, seed=0):
    """A random weighted operator far from its transpose, with an empty row."""
    present = torch.rand(nodes, nodes, generator=torch.Generator().manual_seed(seed)) < 0.5
    dense = signal(nodes, nodes, seed=seed) * present / 2
    dense[1] = 0
    row, col = dense.nonzero(as_tuple=True)
    return Operator.from_entries(row, col, dense[row, col], (nodes, nodes)), dense


def weigh(x, c):
    return x @ c if c.ndim == 2 else x * c


def dense_series(dense, x, hops, basis):
    """Σ pₖ(A) X cₖ in the fewest plain lines."""
    before, now = None, torch.eye(dense.shape[0], dtype=dense.dtype)
    total = weigh(x, hops[0])
    for c in hops[1:]:
        twice = basis is us.Basis.CHEBYSHEV and before is not None
        before, now = now, 2 * dense @ now - before if twice else dense @ now
        total = total + weigh(now @ x, c)
    return total


def losses(basis):
    """The same loss through the primitive and through dense algebra."""
    operator, dense = directed()
    return (
        lambda x, hops: us.propagate(operator, x, hops, basis).sin().sum(),
        lambda x, hops: dense_series(dense, x, hops, basis).sin().sum(),
    )


def inputs(kind, degree, dims, trials=3, features=4):
    x, hops = (NODES, features), (degree + 1, *kind)
    x, hops = ((trials, *shape) if dim == 0 else shape for shape, dim in zip((x, hops), dims, strict=True))
    return signal(*x, seed=2).requires_grad_(), signal(*hops, seed=3).requires_grad_()


def looped(loss, dims):
    """The sum over trials, one at a time."""

    def total(x, hops):
        trials = x.shape[0] if dims[0] == 0 else hops.shape[0]
        each = [(x if dims[0] is None else x[t], hops if dims[1] is None else hops[t]) for t in range(trials)]
        return sum(loss(*one) for one in each)

    return total


def stacked(loss, dims):
    return lambda x, hops: vmap(loss, in_dims=dims)(x, hops).sum()


def backward(total, x, hops):
    return torch.autograd.grad(total(x, hops), (x, hops))


def functional(total, x, hops):
    return grad(total, argnums=(0, 1))(x.detach(), hops.detach())


def compiled(total, x, hops):
    torch.compiler.reset()  # every case compiles afresh, or dynamo counts them as recompilations of one function
    return backward(torch.compile(total, backend="aot_eager", fullgraph=True), x, hops)


def each_trial(loss, dims, x, hops):
    result = vmap(grad(loss, argnums=(0, 1)), in_dims=dims)(x.detach(), hops.detach())
    return tuple(g if dim == 0 else g.sum(0) for g, dim in zip(result, dims, strict=True))


BOTH, SHARED_X, SHARED_HOPS = (0, 0), (None, 0), (0, None)
TRANSFORMS = {
    "eager": (BOTH, lambda f, d, *a: backward(looped(f, d), *a)),
    "leading dims": (SHARED_HOPS, lambda f, d, *a: backward(f, *a)),
    "vmap": (BOTH, lambda f, d, *a: backward(stacked(f, d), *a)),
    "vmap, shared x": (SHARED_X, lambda f, d, *a: backward(stacked(f, d), *a)),
    "vmap, shared hops": (SHARED_HOPS, lambda f, d, *a: backward(stacked(f, d), *a)),
    "grad": (BOTH, lambda f, d, *a: functional(looped(f, d), *a)),
    "grad(leading dims)": (SHARED_HOPS, lambda f, d, *a: functional(f, *a)),
    "grad(vmap)": (BOTH, lambda f, d, *a: functional(stacked(f, d), *a)),
    "vmap(grad)": (BOTH, each_trial),
    "vmap(grad), shared x": (SHARED_X, each_trial),
    "vmap(grad), shared hops": (SHARED_HOPS, each_trial),
    "compile": (SHARED_HOPS, lambda f, d, *a: compiled(f, *a)),
    "compile(vmap)": (BOTH, lambda f, d, *a: compiled(stacked(f, d), *a)),
}


def assert_close(result, expected, tolerance=1e-9):
    for a, b in zip(result, expected, strict=True):
        assert a.shape == b.shape
        assert float((a - b).norm()) <= tolerance * float(b.norm())


def first_order():
    """Every transform of every case; compiling takes half a second, so `make test` compiles the highest degree alone."""
    for basis, kind, degree, name in itertools.product(BASES, KINDS, DEGREES, TRANSFORMS):
        slow = name.startswith("compile") and degree != DEGREES[-1]
        yield pytest.param(basis, kind, degree, name, marks=pytest.mark.slow if slow else [])


@pytest.mark.parametrize(("basis", "kind", "degree", "name"), list(first_order()))
def test_gradient_is_the_dense_gradient(basis, kind, degree, name):
    dims, transform = TRANSFORMS[name]
    loss, dense_loss = losses(basis)
    x, hops = inputs(KINDS[kind], degree, dims)
    expected = backward(looped(dense_loss, dims), x, hops)
    assert_close(transform(loss, dims, x, hops), expected)


# -- second order: a loss of gradients ------------------------------------------------------------------------------


def through_backward(loss, x, hops):
    first = torch.autograd.grad(loss(x, hops), (x, hops), create_graph=True)
    return torch.autograd.grad(sum(g.cos().sum() for g in first), (x, hops))


def of_gradients(loss):
    return lambda x, hops: sum(g.cos().sum() for g in grad(loss, argnums=(0, 1))(x, hops))


SECOND = {
    "double backward": (BOTH, lambda f, d, *a: through_backward(looped(f, d), *a)),
    "double backward of vmap": (BOTH, lambda f, d, *a: through_backward(stacked(f, d), *a)),
    "nested grad": (BOTH, lambda f, d, *a: functional(of_gradients(looped(f, d)), *a)),
    "backward of grad": (SHARED_HOPS, lambda f, d, *a: backward(of_gradients(f), *a)),
    "vmap of nested grad": (BOTH, lambda f, d, *a: each_trial(of_gradients(f), d, *a)),
}


@pytest.mark.parametrize("name", list(SECOND))
@pytest.mark.parametrize("degree", DEGREES)
@pytest.mark.parametrize("kind", list(KINDS))
@pytest.mark.parametrize("basis", BASES)
def test_second_order_is_the_dense_one(basis, kind, degree, name):
    dims, transform = SECOND[name]
    loss, dense_loss = losses(basis)
    x, hops = inputs(KINDS[kind], degree, dims)
    expected = through_backward(looped(dense_loss, dims), x, hops)
    assert_close(transform(loss, dims, x, hops), expected)


@pytest.mark.parametrize("only", ["x", "hops"])
@pytest.mark.parametrize("kind", list(KINDS))
@pytest.mark.parametrize("basis", BASES)
def test_one_gradient_alone_to_second_order(basis, kind, only):
    """Each gradient has its own path when the other input needs none."""
    loss, dense_loss = losses(basis)
    x, hops = inputs(KINDS[kind], 4, (None, None))
    free, held = (x, hops) if only == "x" else (hops, x)
    held.requires_grad_(False)

    def both_orders(loss):
        first = torch.autograd.grad(loss(x, hops), free, create_graph=True)[0]
        return first.detach(), torch.autograd.grad(first.cos().sum(), free)[0]

    assert_close(both_orders(loss), both_orders(dense_loss))


# -- the same law where wide signals are cut into pieces ------------------------------------------------------------


WHERE_CUT = ["eager", "leading dims", "vmap", "vmap(grad)", "compile(vmap)", "double backward of vmap", "nested grad"]


def cut():
    """Every transform of every width; `make test` compiles the widest alone."""
    for basis, kind, width, name in itertools.product(BASES, KINDS, [(20, 13), (4, 3), (3, 9)], WHERE_CUT):
        slow = name.startswith("compile") and width != (20, 13)
        yield pytest.param(basis, kind, *width, name, marks=pytest.mark.slow if slow else [])


@pytest.mark.parametrize(("basis", "kind", "features", "out", "name"), list(cut()))
def test_the_law_holds_for_pieces(monkeypatch, basis, kind, features, out, name):
    monkeypatch.setattr(column_pieces, "cache_bytes", lambda: 100 * NODES)  # at most eight columns at a time
    dims, transform = (TRANSFORMS | SECOND)[name]
    loss, dense_loss = losses(basis)
    x, hops = inputs((features, out)[: len(KINDS[kind])], 3, dims, trials=5, features=features)
    expected = (through_backward if name in SECOND else backward)(looped(dense_loss, dims), x, hops)
    assert_close(transform(loss, dims, x, hops), expected)
