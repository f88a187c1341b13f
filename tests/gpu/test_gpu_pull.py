"""Pulls by a radius on the GPU keep the laws of ops, on shapes of their own size too."""

import pytest
import torch

import unspool as us
from ops.op_laws import in_both, laws, seeded, value_and_gradients
from ops.pull_cases import cases, shrink
from unspool.deploy import predict_nodes

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an NVIDIA GPU")


def test_laws():
    for name, op, inputs, twice in cases():
        for law, gap in laws(op, [t.cuda() for t in inputs], twice=twice):
            assert gap < 2e-5, (name, law)


@pytest.mark.parametrize("channels", [7, 64, 500])
def test_many_trials(channels):
    h, centre = seeded(2708, 40, channels).cuda(), seeded(2708, 40, channels, seed=1).cuda()
    radius = seeded(40, seed=2).cuda().abs() * channels**0.5
    op = torch.func.vmap(shrink, (1, 1, 0), 1)
    assert in_both(lambda *t: value_and_gradients(op, *t), [h, centre, radius]) < 1e-4


def test_who_counts_hops_sees_them():
    model = us.models.AirGNN(4, 2, depth=3).cuda().eval()
    graph, x = us.graph.ring(100).to("cuda"), torch.randn(100, 4, device="cuda")
    found = predict_nodes(model, x, graph, [7])
    assert found.nodes_read == 7
    assert torch.allclose(found.output, model(x, graph)[[7]], atol=1e-6)
