"""Pulls by a radius on the GPU keep the laws of ops, on shapes of their own size too."""

import pytest
import torch

from ops.op_laws import in_both, laws, seeded, value_and_gradients
from ops.pull_cases import cases, shrink

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
