"""Fast packs, in plain torch and double precision: every trial gives what it gives alone."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from study.fast_cases import CASES, alone, members_of, task_of
from unspool import datasets, models, study
from unspool.ops.dropout import keep_mask
from unspool.ops.features import SparseFeatures
from unspool.ops.sliced import ROWS, Sliced
from unspool.study import Member
from unspool.study.pack.fast import FastPack, blueprint, fits
from unspool.study.pack.fast.blueprint import minimiser_terms

EPOCHS = 12


@pytest.fixture(autouse=True)
def _double():
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


@pytest.mark.parametrize("name", CASES)
def test_a_pack_gives_what_single_runs_give(name):
    members = members_of(name, task_of())
    found = FastPack(members).advance(EPOCHS)
    for slot, member in enumerate(members):
        np.testing.assert_allclose(found[:, slot], alone(member, EPOCHS), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name", CASES)
def test_pieces_slots_and_neighbours_change_no_bit(name):
    members = members_of(name, task_of())
    whole = FastPack(members).advance(EPOCHS)
    turned = FastPack(members[::-1], depth=6)
    parts = np.concatenate([turned.advance(5), turned.advance(EPOCHS - 5)])
    if name.partition("-")[0] in (
        "UGDGNN",
        "GPRGNN",
        "APPNP",
        "JKNet",
    ):  # room for more hops adds zeros, which may round differently
        np.testing.assert_allclose(parts[:, ::-1], whole, rtol=1e-10)
    else:
        np.testing.assert_array_equal(parts[:, ::-1], whole)


@pytest.mark.parametrize("name", CASES)
def test_a_slot_that_is_filled_again_starts_anew(name):
    members = members_of(name, task_of())
    fresh = FastPack(members).advance(EPOCHS)
    pack = FastPack(members)
    pack.advance(7)
    pack.put([1], [members[2]])
    after = pack.advance(EPOCHS)
    np.testing.assert_allclose(after[:, 1], fresh[:, 2], rtol=1e-10)
    np.testing.assert_allclose(after[: EPOCHS - 7, 0], fresh[7:, 0], rtol=1e-12)


@pytest.mark.parametrize("name", CASES)
def test_survivors_of_a_smaller_pack_go_on(name):
    members = members_of(name, task_of())
    whole = FastPack(members).advance(EPOCHS)
    pack = FastPack(members)
    pack.advance(4)
    rest = pack.shrunk([2, 0]).advance(EPOCHS - 4)
    np.testing.assert_allclose(rest[:, 0], whole[4:, 2], rtol=1e-12)
    np.testing.assert_allclose(rest[:, 1], whole[4:, 0], rtol=1e-12)


@pytest.mark.parametrize("name", ["UGDGNN", "DAGNN", "GCNII", "JKNet"])
def test_splits_may_differ_and_arrive_later(name):
    one, other = task_of(seed=0), task_of(seed=1)
    other = type(one)(one.x, one.graph, one.target, other.train, other.valid, other.test)
    members = members_of(name, one)
    pack = FastPack(members)
    pack.advance(2)
    moved = Member(members[1].trial, members[1].trial.build(one.x.shape[1], 3), other)
    pack.put([0], [moved])
    np.testing.assert_allclose(pack.advance(EPOCHS)[:, 0], alone(moved, EPOCHS), rtol=1e-10)


def test_one_diverging_trial_leaves_the_others_alone():
    members = members_of("UGDGNN", task_of())
    calm = FastPack(members).advance(EPOCHS)
    wild = members_of("UGDGNN", task_of(), rates=(0.01, 1e200, 0.05))
    found = FastPack(wild).advance(EPOCHS)
    assert not np.isfinite(found[-1, 1, 0])
    np.testing.assert_array_equal(found[:, [0, 2]], calm[:, [0, 2]])


def test_settings_without_a_kernel_have_no_blueprint():
    free = models.UGDGNN(5, 3, mixing=models.ugdgnn.Mixing.FREE)
    for model in (free, models.GCN(5, 3, depth=3), models.GCN(5, 3, batch_norm=True), models.JKNet(5, 3, hidden=20)):
        assert blueprint(model) is None
    stranger = Member(members_of("UGDGNN", task_of())[0].trial, free, task_of())
    with pytest.raises(ValueError, match="use Stacked"):
        FastPack([stranger])


@pytest.mark.parametrize("name", ["UGDGNN", "GPRGNN", "APPNP"])
def test_one_mask_and_one_mask_per_hop_never_share_a_pack(name):
    kind = getattr(models, name)
    once, each = (blueprint(kind(5, 3, masks=masks)) for masks in models.Masks)
    assert once is not None
    assert each is not None
    assert once.shape != each.shape
    assert each.shape == blueprint(kind(5, 3, depth=2, masks=models.Masks.EACH_HOP, propagation_dropout=0.1)).shape
    mixed = [members_of(name, task_of())[0], members_of(f"{name}-each", task_of())[0]]
    with pytest.raises(ValueError, match="blueprints agree"):
        FastPack(mixed)


def test_classes_beyond_sixteen_and_frozen_weights_have_no_blueprint():
    assert blueprint(models.UGDGNN(5, 17)) is None
    frozen = models.UGDGNN(5, 3)
    frozen.propagation.gamma.requires_grad_(False)
    assert blueprint(frozen) is None


def test_the_engine_opens_fast_packs_where_kernels_run(monkeypatch):
    opened = []
    monkeypatch.setattr(fits, "kernels_run", lambda task: True)
    monkeypatch.setattr(FastPack, "__init__", _noted(FastPack.__init__, opened))
    data = datasets.contextual_sbm(nodes=60, classes=2, seed=0)
    torch.set_default_dtype(torch.float32)
    space = study.grid(
        models.UGDGNN, models.JKNet, seed=range(3), hidden=16, depth=[1, 3], dropout=[0.2, 0.5], epochs=8,
        channels=models.Channels.CLASSES,
    )  # fmt: skip
    fast = study.run(space, data, most=5)
    assert len(fast.table) == 24
    assert {type(m.model).__name__ for m in opened} == {"UGDGNN"}
    assert {m.trial.settings["depth"] for m in opened[:5]} == {3}  # groups of few trials share packs, the deepest first
    monkeypatch.undo()
    stacked = study.run(space, data)
    results = {row.key: row.result for row in stacked.rows}
    for row in fast.rows:
        assert row.result.epoch == results[row.key].epoch
        assert row.result.valid_loss == pytest.approx(results[row.key].valid_loss, rel=1e-5)


def _noted(begin, opened):
    def noted(self, members, depth=None):
        opened.extend(members)
        begin(self, members, depth)

    return noted


@pytest.mark.parametrize("longest", [None, 3, 7, 128])
def test_slices_hold_the_matrix_and_its_hashes(longest):
    generator = torch.Generator().manual_seed(0)
    x = torch.rand(100, 50, generator=generator) * (torch.rand(100, 50, generator=generator) < 0.1)
    x[:, 3], x[:, 4] = 1.0, 0.0
    features = SparseFeatures.from_tensor(x)
    sliced = Sliced.by_node(features) if longest is None else Sliced.by_feature(features, longest)
    key, count = torch.tensor(77, dtype=torch.int32), 5
    kept = keep_mask((100, 50), 0.4, key, count)
    want = (x * kept) if longest is None else (x * kept).T
    np.testing.assert_array_equal(dense_of(sliced, key, count, 0.4), want)


def dense_of(sliced, key, count, rate):
    """The matrix that a kernel would see, entry by entry, with the flags it would hash."""
    from unspool.ops.dropout import advance, mix

    bits = mix(mix(sliced.row_mix ^ advance(key, count)) + sliced.column_mix)
    half = ((bits >> sliced.shift) & 0xFFFF).int()
    half = torch.where(half >= 2**15, half - 2**16, half)
    flags = half >= -int(-(rate * 2.0**16 - 2.0**15) // 1)
    rows, pieces = torch.zeros(sliced.shape), torch.zeros(sliced.pieces, sliced.shape[1])
    for part, (first, length) in enumerate(zip(sliced.start.tolist(), sliced.length.tolist(), strict=True)):
        for step in range(first, first + length):
            for lane in range(ROWS):
                entry, row = step * ROWS + lane, int(sliced.rows[part * ROWS + lane])
                value = sliced.value[entry] * flags[entry]
                if row >= 0:
                    rows[row, sliced.index[entry]] += value
                elif row <= -2:
                    pieces[-2 - row, sliced.index[entry]] += value
    for row, start, many in zip(
        sliced.long.tolist(), sliced.long_start.tolist(), sliced.long_count.tolist(), strict=True
    ):
        rows[row] += pieces[start : start + many].sum(0)
    return rows


def test_embedded_data_runs_through_a_pack():
    torch.set_default_dtype(torch.float32)
    data = datasets.load("citeseer").row_normalised()
    provide = study.Provider(data)
    trials = study.grid(models.UGDGNN, seed=range(2), depth=2, epochs=3).trials("citeseer")
    found = FastPack([provide(t) for t in trials]).advance(3)
    assert np.isfinite(found).all()
    np.testing.assert_allclose(found[:, 1], alone(provide(trials[1]), 3), rtol=2e-5)


def test_a_loose_or_long_solution_is_left_to_conjugate_gradients():
    assert blueprint(models.PPNP(5, 3, tolerance=1e-10)) is not None
    assert blueprint(models.PPNP(5, 3, tolerance=1e-2)) is None  # another solution than the exact one
    assert blueprint(models.PPNP(5, 3, teleport=0.02)) is not None
    for teleport in (1e-4, 1e-16):  # thousands of terms, whose signals would all be kept
        assert blueprint(models.PPNP(5, 3, teleport=teleport)) is None


@pytest.mark.parametrize("teleport", [1.0, 0.999999, 0.9, 0.5, 0.1, 0.02])
def test_the_terms_of_the_minimiser_are_its_chebyshev_series(teleport):
    terms = minimiser_terms(teleport, 2e-16).numpy()
    a = np.cos(np.linspace(0, np.pi, 50))
    want = teleport / (1 - (1 - teleport) * a)
    np.testing.assert_allclose(np.polynomial.chebyshev.chebval(a, terms), want, rtol=0, atol=1e-14)


def test_what_the_kernels_cannot_hold_has_no_blueprint():
    assert blueprint(models.GCNII(5, 3, hidden=64)) is not None
    assert blueprint(models.GCNII(5, 3, hidden=128)) is None  # a layer's matrices exceed the shared memory of an H200
    assert blueprint(models.JKNet(5, 3)) is not None
    assert blueprint(models.JKNet(5, 3, channels=models.Channels.CLASSES)) is None
