"""Ends of coefficients: no values of the leaves lead beyond them."""

import math

import pytest
import torch

import unspool as us
from unspool.objective.ends import ends_of

FREE, SHARE = us.Learnable(0.5, name="a"), us.Learnable(0.5, within=(0, 1), name="b")
UP, DOWN = us.Learnable(1.0, within=(0.5, None), name="c"), us.Learnable(-1.0, within=(None, -0.2), name="d")
RULE = us.Schedule(lambda k: 2.0 - k, name="t")


@pytest.mark.parametrize(
    ("made", "low", "high"),
    [
        (us.Fixed(-0.3), -0.3, -0.3),
        (us.Fixed(torch.tensor([0.5, -2.0])), -2.0, 0.5),
        (FREE, -math.inf, math.inf),
        (SHARE, 0.0, 1.0),
        (1 - SHARE, 0.0, 1.0),
        (FREE * FREE, 0.0, math.inf),
        (SHARE * (1 - SHARE), 0.0, 1.0),
        (UP / SHARE, 0.5, math.inf),
        (SHARE / DOWN, -5.0, 0.0),
        (SHARE / FREE, -math.inf, math.inf),
        (0 * FREE + 1, 1.0, 1.0),
        (DOWN * DOWN - UP, -math.inf, math.inf),
        (2 * UP - DOWN, 1.2, math.inf),
        (RULE, -1.0, 1.0),
        (us.Relaxed(2, name="W"), -math.inf, math.inf),
    ],
    ids=str,
)
def test_ends_hold_whatever_training_does(made, low, high):
    assert ends_of(made, 3) == pytest.approx((low, high))
    generator = torch.Generator().manual_seed(0)
    for _ in range(50):
        raw = {
            leaf: leaf.start_layers(3)[k] if leaf is RULE else 9 * torch.randn(leaf.start().shape, generator=generator)
            for k, leaf in enumerate(made.leaves)
        }
        value = torch.as_tensor(made.evaluate(raw))
        assert bool((value >= low - 1e-6).all())
        assert bool((value <= high + 1e-6).all())


def test_a_leaf_of_ones_own_says_its_range():
    class Doubled(us.objective.Leaf):
        within = (0, None)

        def start(self):
            return torch.zeros(())

        def value_of(self, raw):
            return 2 * raw.exp()

    class Still(Doubled):
        learnt = False

    assert ends_of(Doubled("e", per_layer=False)) == (0.0, math.inf)
    assert ends_of(Still("e", per_layer=False)) == (2.0, 2.0)
    assert ends_of(Still("e", per_layer=True), 3) == (2.0, 2.0)
    assert ends_of(us.Computed(torch.nn.Identity())) == (-math.inf, math.inf)
