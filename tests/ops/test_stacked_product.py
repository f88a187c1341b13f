"""Products with small matrices: the laws of ops in Triton's interpreter, what the formula is, and when a kernel is taken."""

import importlib.util

import pytest
import torch
from torch.func import vmap

from ops.op_laws import run_interpreted, seeded
from unspool.ops import kernels, stacked_product
from unspool.ops.dropout import Mask, dropout, key

pytestmark = pytest.mark.long
needs_triton = pytest.mark.skipif(
    importlib.util.find_spec("triton") is None or torch.cuda.is_available(), reason="needs Triton's interpreter"
)


@needs_triton
@pytest.mark.slow
def test_kernels_keep_the_laws_of_ops():
    run_interpreted("interpreted_products.py", "products")


def test_formula_is_a_product_relu_and_dropout():
    x, weight, keys = seeded(6, 4, 5), seeded(2, 5, 3, seed=1), key(torch.arange(4), 0, 0)
    rate, count = torch.full((4,), 0.3), torch.arange(4)
    found = stacked_product.formula(x, weight, True, rate, keys, count)
    for block in range(4):
        one = dropout(torch.relu(x[:, block] @ weight[block // 2]), rate[block], keys[block], count[block])
        assert torch.allclose(found[:, block], one, atol=1e-12)


def test_gradients_of_what_runs_on_the_cpu_are_exact():
    thin = Mask.of(0.3, key(0, 0, 0), 2)
    inputs = (seeded(6, 3).requires_grad_(), seeded(3, 4, seed=1).requires_grad_())
    assert torch.autograd.gradcheck(lambda x, w: stacked_product.stacked_product(x, w, True, thin), inputs)
    many = vmap(lambda x: stacked_product.stacked_product(x, inputs[1], True, thin))(seeded(2, 6, 3))
    one = stacked_product.stacked_product(seeded(2, 6, 3)[1], inputs[1], True, thin)
    assert torch.equal(many[1], one)


def test_only_what_fits_takes_a_kernel(monkeypatch):
    monkeypatch.setattr(kernels, "fused", lambda *tensors: True)

    def refuse(*args):
        raise AssertionError("the kernel was taken")

    monkeypatch.setattr(stacked_product._Product, "apply", refuse)
    wide = seeded(2, stacked_product.WIDEST + 1)
    assert stacked_product.stacked_product(wide, wide.T).shape == (2, 2)
    with pytest.raises(AssertionError, match="the kernel was taken"):
        stacked_product.stacked_product(wide[:, :4], seeded(4, 4))


def test_shapes_that_do_not_meet_are_named():
    with pytest.raises(ValueError, match=r"x has shape \(2, 3\) and the matrix \(4, 5\)"):
        stacked_product.stacked_product(seeded(2, 3), seeded(4, 5))
