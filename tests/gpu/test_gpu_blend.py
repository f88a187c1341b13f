"""Hops with shares of two signals on the GPU keep the laws of ops, with hubs and on shapes of their own size too."""

import pytest
import torch
from torch.func import vmap

from gpu.test_gpu import hubbed
from ops.blend_cases import cases
from ops.op_laws import in_both, laws, same_bits, seeded, value_and_gradients
from unspool.ops.hop_blend import hop_blend

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an NVIDIA GPU")


def test_laws():
    for name, op, inputs, twice in cases():
        for law, gap in laws(op, [t.cuda() for t in inputs], twice=twice):
            assert gap < 2e-5, (name, law)


@pytest.mark.parametrize("channels", [7, 64])
def test_many_trials_and_hubs(channels):
    graph = hubbed().to("cuda")
    graphs = {torch.float32: graph, torch.float64: graph.to(torch.float64)}
    signals = [seeded(20, graph.nodes, channels, seed=i).cuda() for i in range(2)]
    numbers = [seeded(20, seed=i).cuda() for i in range(2, 5)]

    def op(h, x, keep, hop, give):
        return hop_blend(graphs[h.dtype], h, x, keep, hop, give)

    assert in_both(lambda *t: value_and_gradients(vmap(op), *t), [*signals, *numbers]) < 1e-4
    assert same_bits(op, [t.float() for t in (*signals, *numbers)])
