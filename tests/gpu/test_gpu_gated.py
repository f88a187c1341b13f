"""Gated sums and powers on the GPU keep the laws of ops, on shapes of their own size too."""

import pytest
import torch
from torch.func import vmap

import unspool as us
from ops.gated_cases import hops, model_like, sums
from ops.op_laws import in_both, laws, same_bits, seeded, value_and_gradients
from unspool.ops.gated_sum import gated_sum
from unspool.ops.powers import powers

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an NVIDIA GPU")


def test_laws():
    alone = ("DAGNN", model_like, [seeded(6, 3), seeded(3, seed=1), seeded(1, seed=2)], True)
    for name, op, inputs, twice in (*sums(), *hops(), alone):
        for law, gap in laws(op, [t.cuda() for t in inputs], twice=twice):
            assert gap < 2e-5, (name, law)


@pytest.mark.parametrize("channels", [7, 64])
def test_many_trials(channels):
    graph = us.graph.grid(60, 45).to("cuda")
    graphs = {torch.float32: graph, torch.float64: graph.to(torch.float64)}
    inputs = [seeded(40, 2700, channels).cuda(), seeded(40, channels, seed=1).cuda(), seeded(40, 1, seed=2).cuda()]

    def op(x, gate, shift):
        return gated_sum(powers(graphs[x.dtype], x, 4), gate, shift)

    assert in_both(lambda *t: value_and_gradients(vmap(op), *t), inputs) < 1e-4
    assert same_bits(op, [t.float() for t in inputs])
