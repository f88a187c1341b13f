"""Gated sums as kernels over all trials, in Triton's interpreter, and DAGNN's propagation that is made of them."""

import importlib.util

import pytest
import torch

import unspool as us
from ops.op_laws import run_interpreted, seeded
from unspool.models.dagnn import GatedHops

pytestmark = pytest.mark.long
needs_triton = pytest.mark.skipif(
    importlib.util.find_spec("triton") is None or torch.cuda.is_available(), reason="needs Triton's interpreter"
)


@needs_triton
def test_kernels_keep_the_laws_of_ops():
    run_interpreted("interpreted_gated.py")


def test_gated_hops_are_what_they_were_page_by_page():
    graph = us.graph.grid(3, 4).to(torch.float64)
    layer = GatedHops(3, depth=4).double()
    x = seeded(2, 12, 3).requires_grad_()
    hop, total = x, torch.zeros_like(x)
    for k in range(5):
        hop = hop if k == 0 else graph @ hop
        total = total + torch.sigmoid(layer.gate(hop)) * hop
    wanted = [x, *layer.parameters()]
    found = layer(x, graph)
    assert torch.allclose(found, total, rtol=1e-12)
    for a, b in zip(*(torch.autograd.grad(y.sin().sum(), wanted) for y in (found, total)), strict=True):
        assert torch.allclose(a, b, rtol=1e-10, atol=1e-13)


def test_other_features_than_the_gate_was_built_for_are_named():
    with pytest.raises(ValueError, match="x has 2 features, but the model was built for 3"):
        GatedHops(3, depth=4)(torch.ones(12, 2), us.graph.grid(3, 4))
