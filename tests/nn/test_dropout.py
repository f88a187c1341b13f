"""Dropout by counting: fixed by the seed, moved on by each call, the same for sparse and dense."""

import copy

import pytest
import torch
from torch.func import functional_call, stack_module_state, vmap

from unspool.nn import Dropout, Linear, SparseFeatures

X = torch.randn(40, 12, dtype=torch.float64, generator=torch.Generator().manual_seed(0))


def seeded(seed, rate=0.5):
    torch.manual_seed(seed)
    return Dropout(rate)


def test_the_seed_fixes_all_masks():
    one, other = seeded(1), seeded(1)
    for _ in range(3):
        assert torch.equal(one(X), other(X))
    assert not torch.equal(seeded(1)(X), seeded(2)(X))


def test_every_call_has_a_mask_of_its_own():
    drop = seeded(0)
    masks = [drop(torch.ones(40, 12)) for _ in range(4)]
    assert int(drop.count) == 4
    assert len({tuple(m.flatten().tolist()) for m in masks}) == 4


def test_two_modules_differ():
    torch.manual_seed(0)
    assert not torch.equal(Dropout(0.5)(X), Dropout(0.5)(X))


@pytest.mark.parametrize("rate", [0.1, 0.5, 0.8])
def test_survivors_are_scaled(rate):
    out = seeded(0, rate)(torch.ones(400, 50, dtype=torch.float64))
    values = out.unique()
    assert values.numel() == 2
    assert float(values[0]) == 0
    assert float(values[1]) == pytest.approx(1 / (1 - rate), rel=1e-6)
    assert float((out == 0).double().mean()) == pytest.approx(rate, abs=0.02)


def test_nothing_happens_in_evaluation_or_at_rate_zero():
    drop = seeded(0).eval()
    assert drop(X) is X
    assert int(drop.count) == 0
    still = Dropout(0.0)
    assert still(X) is X
    assert int(still.count) == 0


@pytest.mark.parametrize("form", ["coo", "csr", "dense"])
def test_sparse_features_lose_what_dense_ones_lose(form):
    x = X * (X > 0.5)
    given = {"coo": x.to_sparse(), "csr": x.to_sparse_csr(), "dense": x}[form]
    one, other = seeded(3), seeded(3)
    for _ in range(2):
        dropped = other(SparseFeatures.from_tensor(given))
        assert torch.equal(dropped.to_dense(), one(x))
        assert torch.equal(dropped.operator.T.to_dense(), dropped.to_dense().T)


def test_sparse_features_in_evaluation_stay_as_they_are():
    x = SparseFeatures.from_tensor(X)
    assert seeded(0).eval()(x) is x


def test_the_gradient_has_the_mask_of_its_own_call():
    drop, x = seeded(0), X.clone().requires_grad_()
    first = drop(x)
    drop(x)  # the counter moves on before the backward pass
    (slope,) = torch.autograd.grad(first.sum(), x)
    assert torch.equal(slope != 0, first != 0)


def test_the_state_dict_carries_seed_and_count():
    drop = seeded(0)
    drop(X)
    other = seeded(9, 0.2)
    other.load_state_dict(drop.state_dict())
    assert set(drop.state_dict()) == {"rate", "key", "count"}
    assert torch.equal(other(X), drop(X))
    assert torch.equal(copy.deepcopy(drop)(X), drop(X))


def test_a_loaded_rate_counts():
    """A module made without dropout takes the rate of the state it loads."""
    drop, other = seeded(0, 0.5), Dropout(0.0)
    other.load_state_dict(drop.state_dict())
    assert torch.equal(other(X), drop(X))
    drop.load_state_dict(Dropout(0.0).state_dict())
    assert drop(X) is X
    for moved in (copy.deepcopy(drop), copy.deepcopy(drop).double(), copy.deepcopy(drop).to("cpu")):
        assert moved(X) is X


@pytest.mark.parametrize("rates", [(0.5, 0.2, 0.9), (0.0, 0.2, 0.9), (0.5, 0.0, 0.0)])
def test_trials_have_their_own_masks_and_rates(rates):
    singles = [seeded(seed, rate) for seed, rate in zip((0, 1, 2), rates, strict=True)]
    _, buffers = stack_module_state(singles)
    base = copy.deepcopy(singles[0])
    for _ in range(2):
        together = vmap(lambda b: functional_call(base, b, (X,)))(buffers)
        for trial, single in enumerate(singles):
            assert torch.equal(together[trial], single(X))


def test_casting_a_model_keeps_its_masks():
    net = torch.nn.Sequential(seeded(0, 0.3), Linear(12, 2))
    twin = copy.deepcopy(net).double()
    assert torch.equal(net[0](torch.ones(40, 12)) == 0, twin[0](torch.ones(40, 12, dtype=torch.float64)) == 0)


@pytest.mark.parametrize("rate", [-0.1, 1.0, 2, float("nan")])
def test_bad_rates_are_named(rate):
    with pytest.raises(ValueError, match=rf"dropout rate {rate}: expected a number in \[0, 1\)"):
        Dropout(rate)


def test_prints_its_rate():
    assert repr(Dropout(0.25)) == "Dropout(rate=0.25)"
