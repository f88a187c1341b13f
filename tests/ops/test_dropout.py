"""Masks that are computed: fair, unrelated to one another, and the same alone or among many trials."""

import copy
from itertools import pairwise

import pytest
import torch
from torch.func import vmap

import unspool as us
from unspool.ops.dropout import dropout, keep_mask, key, mix

SHAPE = (600, 200)


def correlation(a, b):
    return float(torch.corrcoef(torch.stack([a.double().flatten(), b.double().flatten()]))[0, 1])


def spread(rate, count):
    """One standard deviation of the mean of ``count`` fair coins."""
    return (rate * (1 - rate) / count) ** 0.5


@pytest.mark.parametrize("rate", [0.01, 0.1, 0.5, 0.8, 0.99])
@pytest.mark.parametrize("seed", [0, 1, 12345])
def test_kept_share(rate, seed):
    mask = keep_mask(SHAPE, rate, key(seed, 3, 1)).double()
    rows, cols = SHAPE
    assert abs(float(mask.mean()) - (1 - rate)) < 5 * spread(rate, mask.numel())
    assert float((mask.mean(1) - (1 - rate)).abs().max()) < 6 * spread(rate, cols) + 3 / cols
    assert float((mask.mean(0) - (1 - rate)).abs().max()) < 6 * spread(rate, rows) + 3 / rows


@pytest.mark.parametrize("rate", [0.1, 0.5, 0.8])
def test_rows_and_columns_spread_as_coins_do(rate):
    """Neither too even nor too uneven: the variance of row and column means is that of fair coins."""
    mask = keep_mask((2000, 2000), rate, key(0, 0, 0)).double()
    for means in (mask.mean(0), mask.mean(1)):
        assert float(means.var()) == pytest.approx(rate * (1 - rate) / 2000, rel=0.2)


@pytest.mark.parametrize("rate", [0.2, 0.5])
@pytest.mark.parametrize(("down", "right"), [(0, 1), (1, 0), (1, 1), (0, 2), (2, 0), (16, 0), (0, 64), (1, -1)])
def test_neighbours_in_a_mask_are_unrelated(rate, down, right):
    mask = keep_mask((1000, 400), rate, key(1, 2, 3))
    assert abs(correlation(mask[64:-64, 64:-64], mask.roll((down, right), (0, 1))[64:-64, 64:-64])) < 0.012


NEIGHBOURS = [(1, 0, 0), (0, 1, 0), (0, 0, 1), (1, -1, 0), (0, 1, -1), (1 << 16, 0, 0), (0, 1 << 31, 0), (-1, 0, 0)]


@pytest.mark.parametrize("step", NEIGHBOURS)
@pytest.mark.parametrize("base", [(0, 0, 0), (3, 7, 1), (2**31 - 1, 100, 2)])
def test_neighbouring_keys_give_unrelated_masks(base, step):
    other = [a + b for a, b in zip(base, step, strict=True)]
    assert int(key(*base)) != int(key(*other))
    a, b = keep_mask(SHAPE, 0.5, key(*base)), keep_mask(SHAPE, 0.5, key(*other))
    assert abs(correlation(a, b)) < 0.015
    # nor is one the other with its rows or columns moved
    assert abs(correlation(a[1:], b[:-1])) < 0.015
    assert abs(correlation(a[:, 1:], b[:, :-1])) < 0.015


def test_same_key_same_mask():
    assert torch.equal(keep_mask(SHAPE, 0.5, key(1, 2, 3)), keep_mask(SHAPE, 0.5, key(1, 2, 3)))
    assert int(key(1, 2, 3)) == int(key(torch.tensor(1), torch.tensor(2, dtype=torch.int32), torch.tensor(3)))


def test_all_small_keys_differ():
    seed, epoch, place = torch.meshgrid(torch.arange(40), torch.arange(40), torch.arange(10), indexing="ij")
    keys = key(seed, epoch, place)
    assert keys.dtype == torch.int32
    assert keys.unique().numel() >= keys.numel() - 1  # 16000 of 2³² numbers: on average 0.03 pairs meet by chance


def test_the_order_of_seed_epoch_and_place_matters():
    assert len({int(key(*parts)) for parts in [(1, 2, 3), (1, 3, 2), (2, 1, 3), (2, 3, 1), (3, 1, 2), (3, 2, 1)]}) == 6


def test_mix_is_one_to_one_and_spreads_bits():
    bits = torch.arange(-(2**20), 2**20, dtype=torch.int32)
    assert mix(bits).unique().numel() == bits.numel()
    edges = torch.tensor([-(2**31), 2**31 - 1], dtype=torch.int32)
    assert mix(torch.cat([edges, bits])).unique().numel() == bits.numel() + 2
    for bit in range(31):  # flipping one bit flips about half of the result
        changed = mix(bits[::97]) ^ mix(bits[::97] ^ (1 << bit))
        share = sum(((changed >> i) & 1).double().mean() for i in range(32)) / 32
        assert float(share) == pytest.approx(0.5, abs=0.02)


def logical_mix(value):
    """The same finaliser in Python's unbounded integers."""
    value = ((value ^ (value >> 16)) * 0x7FEB352D) % 2**32
    value = ((value ^ (value >> 15)) * 0x846CA68B) % 2**32
    return value ^ (value >> 16)


def test_mix_shifts_logically():
    bits = torch.randint(-(2**31), 2**31, (500,), generator=torch.Generator().manual_seed(0)).int()
    assert [v % 2**32 for v in mix(bits).tolist()] == [logical_mix(v % 2**32) for v in bits.tolist()]


@pytest.mark.parametrize("shape", [(30, 8), (2, 15, 8), (240,)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_stacked_trials_are_the_singles_bit_for_bit(shape, dtype):
    x = torch.randn(4, *shape, generator=torch.Generator().manual_seed(0), dtype=dtype)
    seeds, rates = torch.tensor([0, 1, 7, 2**31]), torch.tensor([0.0, 0.1, 0.5, 0.9], dtype=torch.float64)

    def one(x, seed, rate):
        return dropout(x, rate, key(seed, 5, 1))

    stacked = vmap(one)(x, seeds, rates)
    for trial in range(4):
        assert torch.equal(stacked[trial], one(x[trial], int(seeds[trial]), float(rates[trial])))
    shared = vmap(one, in_dims=(None, 0, 0))(x[0], seeds, rates)
    assert torch.equal(shared[2], one(x[0], 7, 0.5))


@pytest.mark.parametrize("shape", [(600, 20), (3, 200, 20), (12000,)])
@pytest.mark.parametrize("rate", [0.1, 0.6])
def test_gradient_is_the_mask_times_scale(rate, shape):
    x = torch.randn(*shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64, requires_grad=True)
    result = dropout(x, rate, key(0, 1, 2))
    expected = keep_mask(shape, rate, key(0, 1, 2)).double() / (1 - rate)
    assert torch.allclose(result, x * expected, rtol=1e-14)
    assert torch.allclose(torch.autograd.grad(result.sum(), x)[0], expected, rtol=1e-14)


def test_dropped_nans_do_not_survive():
    x = torch.full(SHAPE, float("nan"), dtype=torch.float64)
    mask = keep_mask(SHAPE, 0.5, key(0, 0, 0))
    assert torch.equal(dropout(x, 0.5, key(0, 0, 0)).isnan(), mask)


@pytest.mark.parametrize("rate", [0.0, torch.tensor(0.0)])
def test_rate_zero_is_the_identity(rate):
    x = torch.randn(*SHAPE, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    assert torch.equal(dropout(x, rate, key(0, 1, 2)), x)


def test_masks_grow_with_the_rate():
    masks = [keep_mask(SHAPE, rate, key(0, 1, 2)) for rate in (0.0, 0.2, 0.5, 0.9)]
    assert all(bool((more | ~fewer).all()) for more, fewer in pairwise(masks))


@pytest.mark.parametrize("rate", [-0.1, 1.0, 1.5, float("nan")])
def test_bad_rates_are_named(rate):
    with pytest.raises(ValueError, match=rf"dropout rate {rate}: expected a number in \[0, 1\)"):
        dropout(torch.ones(2, 2), rate, key(0, 0, 0))


def test_the_epoch_may_be_a_tensor():
    x = torch.ones(SHAPE, dtype=torch.float64)
    results = vmap(lambda epoch: dropout(x, 0.5, key(3, epoch, 1)))(torch.arange(3))
    for epoch in range(3):
        assert torch.equal(results[epoch], dropout(x, 0.5, key(3, epoch, 1)))
    assert not torch.equal(results[0], results[1])


def test_compiled_masks_are_the_same():
    torch.compiler.reset()
    x = torch.ones(50, 8, dtype=torch.float64)
    compiled = torch.compile(lambda x, epoch: dropout(x, 0.5, key(3, epoch, 1)), backend="aot_eager", fullgraph=True)
    for epoch in (torch.tensor(1), torch.tensor(2)):
        assert torch.equal(compiled(x, epoch), dropout(x, 0.5, key(3, int(epoch), 1)))


def test_close_keys_do_not_share_rows():
    base = key(0, 0, 0)
    rows = {tuple(r) for r in keep_mask((500, 40), 0.5, base).int().tolist()}
    for bit in (1, 2, 64):
        other = {tuple(r) for r in keep_mask((500, 40), 0.5, base ^ bit).int().tolist()}
        assert not rows & other


def test_a_tensor_rate_of_one_drops_everything():
    x = torch.ones(4, 3, requires_grad=True)
    out = dropout(x, torch.tensor(1.0), key(0, 0, 0))
    (slope,) = torch.autograd.grad(out.sum(), x)
    assert torch.equal(out, torch.zeros(4, 3))
    assert torch.equal(slope, torch.zeros(4, 3))


@pytest.mark.slow
def test_inductor_keeps_the_mask_of_the_gradient():
    """Recomputing the counter in the backward pass would give another mask: gradients wrong, outputs right."""
    torch.compiler.reset()
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(4, 4), us.nn.Dropout(0.5))
    twin, x = copy.deepcopy(net), torch.randn(50, 4)
    compiled = torch.compile(net)
    for _ in range(2):
        net.zero_grad()
        twin.zero_grad()
        compiled(x).square().sum().backward()
        twin(x).square().sum().backward()
        assert torch.allclose(net[0].weight.grad, twin[0].weight.grad, rtol=1e-4, atol=1e-4)
