"""Fast batches, in plain torch and double precision: every trial gives what it gives alone."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from study.batch.contract import EPOCHS, AsyncBatchContract
from study.batch.kernel.kernel_cases import CASES, alone, kind_of, members_of, task_of
from unspool import datasets, models, study
from unspool.ops.dropout import keep_mask
from unspool.ops.features import SparseFeatures
from unspool.ops.sliced import ROWS, Sliced
from unspool.study.batch.kernel import KernelBatch, fits
from unspool.train import PreparedTrial, TrainConfig, Trial, TrialLoader

pytestmark = pytest.mark.long


class KernelContract(AsyncBatchContract):
    """In plain torch: the mathematics that the kernels have on a GPU."""

    near, same = 1e-10, 1e-12
    name: str

    def open(self, members):
        return KernelBatch(members)

    def trials(self):
        kind, settings = kind_of(self.name), {word: values[0] for word, values in CASES[self.name].items()}
        return [
            Trial(
                kind, {**settings, "hidden": 16, "dropout": rate}, TrainConfig(lr=0.01 * (k + 1), weight_decay=0.01 * k, epochs=EPOCHS), k
            )
            for k, rate in enumerate((0.5, 0.2, 0.7, 0.4))
        ]  # fmt: skip


class TestSeries(KernelContract):
    name = "UGDGNN"


class TestConvolution(KernelContract):
    name = "GCN"


class TestGated(KernelContract):
    name = "DAGNN"


class TestRows(KernelContract):
    name = "AirGNN"


class TestJumps(KernelContract):
    name = "JKNet"


class TestDeep(KernelContract):
    name = "GCNII"


class TestMinimiser(KernelContract):
    name = "PPNP"


@pytest.fixture(autouse=True)
def _double():
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


@pytest.mark.parametrize("name", CASES)
def test_a_batch_gives_what_single_runs_give(name):
    members = members_of(name, task_of())
    found = KernelBatch(members).run_epochs(EPOCHS)
    for slot, member in enumerate(members):
        np.testing.assert_allclose(found[:, slot], alone(member, EPOCHS), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name", CASES)
def test_pieces_slots_and_neighbours_change_no_bit(name):
    members = members_of(name, task_of())
    whole = KernelBatch(members).run_epochs(EPOCHS)
    turned = KernelBatch(members[::-1], depth=6)
    parts = np.concatenate([turned.run_epochs(5), turned.run_epochs(EPOCHS - 5)])
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
    fresh = KernelBatch(members).run_epochs(EPOCHS)
    batch = KernelBatch(members)
    batch.run_epochs(7)
    batch.load([1], [members[2]])
    after = batch.run_epochs(EPOCHS)
    np.testing.assert_allclose(after[:, 1], fresh[:, 2], rtol=1e-10)
    np.testing.assert_allclose(after[: EPOCHS - 7, 0], fresh[7:, 0], rtol=1e-12)


@pytest.mark.parametrize("name", CASES)
def test_survivors_of_a_smaller_batch_go_on(name):
    members = members_of(name, task_of())
    whole = KernelBatch(members).run_epochs(EPOCHS)
    batch = KernelBatch(members)
    batch.run_epochs(4)
    rest = batch.compact([2, 0]).run_epochs(EPOCHS - 4)
    np.testing.assert_allclose(rest[:, 0], whole[4:, 2], rtol=1e-12)
    np.testing.assert_allclose(rest[:, 1], whole[4:, 0], rtol=1e-12)


@pytest.mark.parametrize("name", ["UGDGNN", "DAGNN", "GCNII", "JKNet"])
def test_splits_may_differ_and_arrive_later(name):
    one, other = task_of(seed=0), task_of(seed=1)
    other = type(one)(one.x, one.graph, one.target, other.train, other.valid, other.test)
    members = members_of(name, one)
    batch = KernelBatch(members)
    batch.run_epochs(2)
    moved = PreparedTrial(members[1].trial, members[1].trial.build(one.x.shape[1], 3), other)
    batch.load([0], [moved])
    np.testing.assert_allclose(batch.run_epochs(EPOCHS)[:, 0], alone(moved, EPOCHS), rtol=1e-10)


def test_the_engine_opens_fast_batches_where_kernels_run(monkeypatch):
    opened = []
    monkeypatch.setattr(fits, "kernels_run", lambda task: True)
    monkeypatch.setattr(KernelBatch, "__init__", _noted(KernelBatch.__init__, opened))
    data = datasets.contextual_sbm(nodes=60, classes=2, seed=0)
    torch.set_default_dtype(torch.float32)
    space = study.grid(
        models.UGDGNN, models.JKNet, seed=range(3), hidden=16, depth=[1, 3], dropout=[0.2, 0.5], epochs=8,
        channels=models.Channels.CLASSES,
    )  # fmt: skip
    fast = study.run(space, data, most=5)
    assert len(fast.table) == 24
    assert {type(m.model).__name__ for m in opened} == {"UGDGNN"}
    assert {m.trial.settings["depth"] for m in opened[:5]} == {
        3
    }  # groups of few trials share batches, the deepest first
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


def test_embedded_data_runs_through_a_batch():
    torch.set_default_dtype(torch.float32)
    loader = TrialLoader(datasets.load("citeseer").row_normalised())
    members = [
        loader.prepare(trial)
        for trial in study.grid(models.UGDGNN, seed=range(2), depth=2, epochs=3).trials("citeseer")
    ]
    found = KernelBatch(members).run_epochs(3)
    assert np.isfinite(found).all()
    np.testing.assert_allclose(found[:, 1], alone(members[1], 3), rtol=2e-5)
