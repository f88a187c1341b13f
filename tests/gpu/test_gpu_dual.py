"""Dual steps on the GPU keep the laws of ops, on graphs of their own size too, and train as on the CPU."""

import pytest
import torch

import unspool as us
from ops.dual_cases import cases, graph_of, op_of
from ops.op_laws import in_both, laws, seeded, value_and_gradients
from unspool.ops.dual_step import Cut

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an NVIDIA GPU")


def test_laws():
    for name, graph, cut, inputs in cases():
        for law, gap in laws(op_of(graph.to("cuda"), cut), [t.cuda() for t in inputs], twice=inputs[0].shape[1] == 3):
            assert gap < 2e-5, (name, law)


def off_the_border(z, value, radius):
    """Duals whose steps end away from where they are cut: there the gradient jumps, and rounding decides the side."""
    near = (value.abs() - radius[:, None]).abs() < 1e-3
    return z + 1e-2 * near


@pytest.mark.parametrize("channels", [7, 64, 500])
@pytest.mark.parametrize("cut", Cut)
def test_many_trials(channels, cut):
    graph = graph_of(2708).to("cuda")
    z, ahead = seeded(graph.edges, 20, channels).cuda(), seeded(2708, 20, channels, seed=1).cuda()
    numbers = [seeded(20, seed=k).cuda().abs() * channels**0.5 for k in (2, 3)]
    op = torch.func.vmap(op_of(graph, cut), (1, 1, 0, 0), 1)
    if cut is Cut.ENTRIES:
        uncut = op(z, ahead, numbers[0], torch.full_like(numbers[1], torch.inf))[: graph.edges]
        z = off_the_border(z, uncut, numbers[1])
    assert in_both(lambda *t: value_and_gradients(op, *t), [z, ahead, *numbers]) < 1e-4


def test_elastic_layers_are_those_of_the_cpu():
    graph, x = graph_of(500).to(torch.float32), seeded(500, 16).float()
    jumps = us.EdgeSparse(us.Learnable(0.3, within=(0, None)))
    net = us.unroll(us.Fidelity(0.5) + us.Smoothness(0.35) + jumps, us.PrimalDual(), 6)
    found = [
        value_and_gradients(lambda h, device=device: net.to(device)(h, graph.to(device)), x.to(device).requires_grad_())
        for device in ("cpu", "cuda")
    ]
    for a, b in zip(*found, strict=True):
        torch.testing.assert_close(a, b.cpu(), atol=1e-5, rtol=1e-4)
