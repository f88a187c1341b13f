"""A hop and a matrix in one op: the laws of ops in Triton's interpreter, its formula, and when a kernel is taken."""

import importlib.util

import pytest
import torch

from ops.op_laws import run_interpreted, seeded
from ops.product_cases import directed
from unspool.ops import hop_blend, kernels, mapped_hop

pytestmark = pytest.mark.long
needs_triton = pytest.mark.skipif(
    importlib.util.find_spec("triton") is None or torch.cuda.is_available(), reason="needs Triton's interpreter"
)


@needs_triton
@pytest.mark.slow
def test_kernels_keep_the_laws_of_ops():
    run_interpreted("interpreted_products.py", "hops")


def test_it_is_a_hop_a_share_and_a_matrix():
    graph = directed(9).to(torch.float64)
    h, base, weight = seeded(9, 3), seeded(9, 3, seed=1), seeded(3, 4, seed=2)
    out, passed = mapped_hop.mapped_hop(graph, h, base, weight, 0.7, 0.3, relu=True)
    dense = graph.operator.to_dense()
    assert torch.allclose(out, torch.relu((0.7 * dense @ h + 0.3 * base) @ weight), atol=1e-12)
    assert torch.equal(passed, base)
    own = torch.tensor([[0.7], [0.7]], dtype=torch.float64), torch.tensor([0.3, 0.3], dtype=torch.float64)
    blocks = mapped_hop.formula(
        graph.operator, torch.stack([h, h], 1), torch.stack([base, base], 1), weight[None], own[0][:, 0], own[1], True
    )
    assert torch.allclose(blocks[:, 1], out, atol=1e-12)


def test_learnt_numbers_and_no_share_take_a_hop_and_a_product(monkeypatch):
    monkeypatch.setattr(kernels, "fused", lambda *tensors: True)
    taken = []
    monkeypatch.setattr(mapped_hop._MappedHop, "apply", lambda *args: taken.append(args[11:13]) or (args[8], args[9]))
    monkeypatch.setattr(mapped_hop, "stacked_product", lambda x, w, *_: x @ w)
    monkeypatch.setattr(
        mapped_hop, "hop_blend", lambda graph, h, x, hop, give: hop_blend._formula(graph, h, x, 0.0, hop, give)
    )
    graph = directed(9).to(torch.float64)
    h, weight = seeded(9, 3), seeded(3, 3)
    learnt = torch.tensor(0.5, dtype=torch.float64, requires_grad=True)
    out, _ = mapped_hop.mapped_hop(graph, h, h, weight, learnt, 0.5)
    out.sum().backward()
    assert learnt.grad is not None
    out, passed = mapped_hop.mapped_hop(graph, h, h, weight, 0.5, 0.0)
    assert torch.allclose(out, 0.5 * graph.operator.to_dense() @ h @ weight, atol=1e-12)
    assert passed is h
    assert not taken
    mapped_hop.mapped_hop(graph, h, h, weight, learnt.detach(), 0.5)
    (numbers,) = taken  # a fixed number stays one, a tensor is one for each block
    assert numbers[0].shape == (1,)
    assert numbers[1] == 0.5
