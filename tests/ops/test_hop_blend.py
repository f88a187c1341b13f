"""Hops with shares of two signals as one sparse step, in Triton's interpreter, and when that step is taken."""

import importlib.util
from types import SimpleNamespace

import pytest
import torch

import unspool as us
from ops.gated_cases import directed
from ops.op_laws import run_interpreted, seeded
from unspool.algorithm import fused
from unspool.ops.hop_blend import hop_blend

pytestmark = pytest.mark.long
needs_triton = pytest.mark.skipif(
    importlib.util.find_spec("triton") is None or torch.cuda.is_available(), reason="needs Triton's interpreter"
)


@needs_triton
def test_kernels_keep_the_laws_of_ops():
    run_interpreted("interpreted_blend.py")


@pytest.mark.parametrize("numbers", [(0.0, 1.0, 0.0), (0.3, 1.0, 0.0), (0.3, 0.5, 2.0), (torch.tensor(0.0), 0.0, 1.0)])
def test_formula(numbers):
    h, x = seeded(2, 6, 3), seeded(2, 6, 3, seed=1)
    keep, hop, give = numbers
    dense = directed(h).operator.to_dense()
    assert torch.allclose(hop_blend(directed(h), h, x, keep, hop, give), hop * (dense @ h) + keep * h + give * x)


@pytest.mark.parametrize(
    ("net", "asked"),
    [
        (us.unroll(us.Fidelity(0.1) + us.Smoothness(0.9), us.GradientDescent(step=0.5), 2, adjoint=us.Stored()), (0.0, 0.9, 0.1)),
        (us.unroll(us.Fidelity(0.5) + us.Smoothness(0.5), us.ProximalGradient(step=0.25), 2, adjoint=us.Stored()), (0.5, 0.25, 0.25)),
        (us.models.AirGNN(3, 2, residual=0.4).propagation, (0.0, 1.0, 0.0)),
    ],
)  # fmt: skip
def test_a_step_of_numbers_is_one_sparse_step(net, asked, monkeypatch):
    graph, x = us.graph.ring(5), torch.randn(5, 2, generator=torch.Generator().manual_seed(0))
    wanted, seen = net(x, graph), []

    def look(operator, h, x=None, keep=0.0, hop=1.0, give=0.0):
        seen.append((keep, hop, give))
        return hop_blend(operator, h, x, keep, hop, give)

    monkeypatch.setattr(fused, "hop_blend", look)
    monkeypatch.setattr(fused, "kernels", SimpleNamespace(one_pass=lambda *tensors: True))  # for the step alone
    assert torch.allclose(net(x, graph), wanted, atol=1e-6)
    assert [tuple(map(pytest.approx, one)) for one in seen] == [asked] * net.depth
    assert seen[0][1] == 1.0 or asked[1] != 1.0  # not to rounding: a factor of 1 is not multiplied with
