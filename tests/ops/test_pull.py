"""Pulls by a radius as kernels over all trials: the laws of such ops in Triton's interpreter, and when a kernel is taken."""

import importlib.util

import pytest
import torch

from ops.op_laws import run_interpreted, seeded
from unspool.ops import kernels, prox, pull

pytestmark = pytest.mark.long
needs_triton = pytest.mark.skipif(
    importlib.util.find_spec("triton") is None or torch.cuda.is_available(), reason="needs Triton's interpreter"
)


@needs_triton
def test_kernels_keep_the_laws_of_ops():
    run_interpreted("interpreted_pull.py")


def test_what_no_kernel_takes_goes_by_the_formula(monkeypatch):
    monkeypatch.setattr(kernels, "fused", lambda *tensors: True)

    def refuse(*args):
        raise AssertionError("the kernel was taken")

    monkeypatch.setattr(pull._Pull, "apply", refuse)
    h, rows = seeded(4, 3), seeded(4, 1).abs()
    for radius, centre in ((rows, None), (0.1, h[:1]), (rows[0], h)):
        assert torch.equal(prox.row_shrink(h, radius, centre), pull.formula(pull.How.SHRINK, h, radius, centre))
    assert prox.soft_threshold(h[:0], 0.1).shape == (0, 3)
    with pytest.raises(AssertionError, match="the kernel was taken"):
        prox.row_shrink(h, 0.1)
