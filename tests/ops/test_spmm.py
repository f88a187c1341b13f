"""The sparse product against its dense meaning, forward and backward, under every transform."""

import subprocess
import sys

import pytest
import torch
from torch.func import grad, jvp, vmap

import unspool as us
from unspool.ops.operator import Operator
from unspool.ops.spmm import spmm

TOLERANCE = {torch.float64: 1e-13, torch.float32: 1e-6, torch.bfloat16: 1e-2, torch.float16: 2e-3}


def seeded(seed):
    return torch.Generator().manual_seed(seed)


def signal(*shape, seed=1):
    return torch.randn(*shape, generator=seeded(seed), dtype=torch.float64)


def from_dense(dense):
    row, col = dense.nonzero(as_tuple=True)
    return Operator.from_entries(row, col, dense[row, col], tuple(dense.shape))


def sparse(rows=9, cols=9, seed=0):
    """A random matrix, unlike its transpose, with an empty row and an empty column."""
    dense = signal(rows, cols, seed=seed) * (torch.rand(rows, cols, generator=seeded(seed)) < 0.4)
    dense[1], dense[:, 2] = 0, 0
    return from_dense(dense), dense


def relative(a, b):
    a, b = a.detach().double(), b.detach().double()
    return float((a - b).norm() / b.norm())


def loss(y):
    return y.sin().sum()


def fresh_compile(function):
    torch.compiler.reset()
    return torch.compile(function, backend="aot_eager", fullgraph=True)


@pytest.mark.parametrize("shape", [(7,), (7, 1), (7, 4), (2, 7, 4), (2, 3, 7, 4), (1, 7, 1)])
@pytest.mark.parametrize("dtype", list(TOLERANCE))
def test_product_is_dense_product(shape, dtype):
    operator, dense = sparse(5, 7)
    if dtype != torch.float64:
        operator = operator.to(values=(operator.forward.val.float(), operator.transpose.val.float()))
    x = signal(*shape).to(dtype)
    result = spmm(operator, x)
    assert result.dtype == dtype
    assert result.shape == (dense @ x.double()).shape
    assert relative(result, dense @ x.double()) < TOLERANCE[dtype]


@pytest.mark.parametrize("shape", [(4, 4), (1, 1), (3, 5)])
@pytest.mark.parametrize("width", [1, 3])
def test_no_entries_give_zeros(shape, width):
    operator = from_dense(torch.zeros(shape, dtype=torch.float64))
    x = signal(shape[1], width).requires_grad_()
    result = spmm(operator, x)
    assert torch.equal(result, torch.zeros(shape[0], width, dtype=torch.float64))
    assert torch.equal(torch.autograd.grad(result.sum(), x)[0], torch.zeros_like(x))


def test_one_node():
    operator = from_dense(torch.tensor([[3.0]], dtype=torch.float64))
    assert torch.equal(operator @ signal(1, 2), 3 * signal(1, 2))


@pytest.mark.parametrize("shape", [(4,), (4, 2), (2, 4, 1)])
def test_gradients_of_first_and_second_order(shape):
    operator = sparse(3, 4)[0]
    x = signal(*shape).requires_grad_()
    assert torch.autograd.gradcheck(lambda x: spmm(operator, x).sin(), (x,))
    assert torch.autograd.gradgradcheck(lambda x: spmm(operator, x).sin(), (x,))


@pytest.mark.parametrize("dim", [0, 1, 2])
def test_vmap_is_a_loop(dim):
    operator, dense = sparse(5, 7)
    x = signal(3, 7, 4)
    result = vmap(lambda x: operator @ x, in_dims=dim)(x.movedim(0, dim))
    assert relative(result, torch.stack([dense @ one for one in x])) < 1e-13


def test_nested_vmap_is_a_double_loop():
    operator, dense = sparse(5, 7)
    x = signal(3, 2, 7, 4)
    assert relative(vmap(vmap(lambda x: operator @ x))(x), dense @ x) < 1e-13


TRANSFORMS = {
    "eager": lambda f, x: torch.autograd.grad(sum(f(one) for one in x), x)[0],
    "vmap": lambda f, x: torch.autograd.grad(vmap(f)(x).sum(), x)[0],
    "vmap(grad)": lambda f, x: vmap(grad(f))(x.detach()),
    "grad(vmap)": lambda f, x: grad(lambda x: vmap(f)(x).sum())(x.detach()),
    "compile": lambda f, x: torch.autograd.grad(fresh_compile(lambda x: sum(f(one) for one in x))(x), x)[0],
    "compile(vmap)": lambda f, x: torch.autograd.grad(fresh_compile(lambda x: vmap(f)(x).sum())(x), x)[0],
}


@pytest.mark.long
@pytest.mark.parametrize("name", list(TRANSFORMS))
@pytest.mark.parametrize("shape", [(7, 4), (7,), (2, 7, 3)])
def test_gradient_is_the_dense_gradient(name, shape):
    operator, dense = sparse(5, 7)
    x = signal(3, *shape).requires_grad_()
    expected = torch.autograd.grad(sum(loss(dense @ one) for one in x), x)[0]
    assert relative(TRANSFORMS[name](lambda x: loss(operator @ x), x), expected) < 1e-12


def test_nested_functional_gradient_is_the_dense_one():
    operator, dense = sparse()
    x = signal(9, 2)

    def twice(multiply):
        return grad(lambda x: grad(lambda x: loss(multiply(x)))(x).cos().sum())(x)

    assert relative(twice(lambda x: operator @ x), twice(lambda x: dense @ x)) < 1e-12


def test_shared_signal_under_vmap():
    operator, dense = sparse(5, 7)
    x, scale = signal(7, 2).requires_grad_(), signal(3)
    result = vmap(lambda s: loss((operator @ x) * s))(scale).sum()
    expected = sum(loss((dense @ x) * s) for s in scale)
    assert relative(*(torch.autograd.grad(value, x)[0] for value in (result, expected))) < 1e-12


@pytest.mark.long
def test_forward_mode_raises_instead_of_lying():
    with pytest.raises(NotImplementedError, match="jvp"):
        jvp(lambda x: sparse()[0] @ x, (signal(9, 1),), (signal(9, 1),))


def test_same_bits_twice():
    operator, x = sparse(300, 300)[0], signal(300, 17)
    assert torch.equal(operator @ x, operator @ x)


def test_graphs_do_not_stack():
    operator, x = sparse()[0], signal(9, 2)
    crow, col, val, hubs = operator.forward
    with pytest.raises(ValueError, match="vmap over graphs is not supported: all trials share one graph"):
        vmap(lambda col: torch.ops.unspool.spmm_raw(crow, col, val, hubs, x))(torch.stack([col, col]))


def test_entries_stack():
    operator, x = sparse()[0], signal(9, 2)
    crow, col, val, hubs = operator.forward
    both = vmap(lambda val: torch.ops.unspool.spmm_raw(crow, col, val, hubs, x))(torch.stack([val, 2 * val]))
    assert torch.allclose(both, torch.stack([operator @ x, 2 * (operator @ x)]))


@pytest.mark.parametrize(
    ("x", "kind", "sentence"),
    [
        (
            torch.ones(9, 2, dtype=torch.int64),
            TypeError,
            r"x holds int64: signals are floating-point; call x.float\(\)",
        ),
        (signal(8, 2), ValueError, r"x has shape \(8, 2\), but the graph has 9 nodes"),
        (signal(8), ValueError, r"x has shape \(8,\), but the graph has 9 nodes"),
        (signal(9, 8, 2), ValueError, r"expected \(..., nodes, features\)"),
        (torch.tensor(1.0, dtype=torch.float64), ValueError, r"x has shape \(\), but"),
        (signal(9, 2).float(), TypeError, r"x is float32, the graph float64: call graph.to\(torch.float32\) or x.to"),
        (signal(9, 2).bfloat16(), TypeError, r"x is bfloat16, the graph float64"),
    ],
)
def test_signals_that_do_not_fit_are_named(x, kind, sentence):
    with pytest.raises(kind, match=sentence):
        spmm(sparse()[0], x)


def test_empty_signals_stay_empty():
    ring = us.graph.ring(5)
    assert (ring @ torch.ones(0, 5, 3)).shape == (0, 5, 3)
    assert (ring @ torch.ones(5, 0)).shape == (5, 0)
    assert us.propagate(ring, torch.ones(5, 0), torch.ones(2)).shape == (5, 0)
    assert us.propagate(ring, torch.ones(0, 5, 2), torch.ones(2)).shape == (0, 5, 2)


@pytest.mark.long
def test_the_first_product_does_not_load_the_compiler():
    code = "import sys, torch, unspool as us; us.propagate(us.graph.ring(4), torch.ones(4, 1), torch.ones(2)); print('torch._dynamo' in sys.modules)"
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()
        == "False"
    )
