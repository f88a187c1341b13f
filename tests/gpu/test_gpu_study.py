"""Batches on a GPU: the fast kernels against single runs, and against themselves in other company."""

from __future__ import annotations

import numpy as np
import pytest
import torch

if not torch.cuda.is_available():
    pytest.skip("needs a GPU", allow_module_level=True)

from study.batch.kernel.kernel_cases import CASES, alone, kind_of, members_of, task_of
from unspool.study.batch.kernel import KernelBatch, kernel_batch, plain

from study.batch.contract import EPOCHS as CONTRACT_EPOCHS
from study.batch.contract import AsyncBatchContract, BatchContract
from unspool import datasets, models, study, train
from unspool.study.batch.single_trial import SingleTrial
from unspool.study.batch.stacked_batch import StackedBatch
from unspool.study.engine import engine, train_trials
from unspool.study.engine.batching import open_batch
from unspool.study.engine.tracker import MemoryTracker

EPOCHS = 20
#: Against other kernels. Adam turns the sign of a gradient that is nearly zero into a whole step, so rounding grows from epoch to epoch.
NEAR = 1e-3


class OnGpu:
    """Single precision on a GPU, where sums of other kernels are rounded otherwise; scores are shares of few nodes."""

    near = 1e-3

    def load(self):
        return train.TrialLoader(datasets.contextual_sbm(nodes=60, classes=2, seed=0), "cuda")

    def alone(self, trial, loader):
        _, run = train.train_trial(trial, loader)
        return np.array([epoch.to_list()[1:] for epoch in run.history])

    def check_near(self, found, wanted):
        np.testing.assert_allclose(found[:, :2], wanted[:, :2], rtol=self.near)

    check_same = check_near

    def trials(self):
        settings = {"hidden": 16, "depth": 3}
        return [
            train.Trial(
                models.UGDGNN, {**settings, "dropout": rate}, train.TrainConfig(lr=0.01, epochs=CONTRACT_EPOCHS), seed
            )
            for seed, rate in enumerate((0.5, 0.2, 0.7, 0.4))
        ]


class TestKernelBatch(OnGpu, AsyncBatchContract):
    def open(self, members):
        return KernelBatch(members)

    def test_it_is_what_the_engine_opens(self, members):
        assert isinstance(open_batch(members), KernelBatch)


class TestStackedBatch(OnGpu, AsyncBatchContract):
    def open(self, members):
        return StackedBatch(members)

    def check_bits(self, found, wanted):
        """Stacks multiply with a library that promises no order of sums."""
        np.testing.assert_allclose(found[..., :2], wanted[..., :2], rtol=1e-5)


class TestSingleTrial(OnGpu, BatchContract):
    def open(self, members):
        return SingleTrial(members)

    def trials(self):
        return super().trials()[:2]


@pytest.fixture(scope="module")
def loader():
    return train.TrialLoader(datasets.load("citeseer"), "cuda")


def trials(name, count, **more):
    settings = {} if name == "PPNP" else {"depth": {"GCN": 2, "SGC": 2}.get(name, 6), **more}
    if name != "SGC":
        settings.setdefault("dropout", 0.5)
    if name.endswith("-each"):
        settings.update(masks=models.Masks.EACH_HOP, propagation_dropout=0.6)
    config = train.TrainConfig(lr=0.01, weight_decay=5e-4, epochs=40)
    return [train.Trial(kind_of(name), settings, config, seed, normalise_rows=True) for seed in range(count)]


@pytest.mark.parametrize("name", CASES)
def test_small_batches_give_what_single_runs_give(name):
    members = members_of(name, task_of(device="cuda"))
    found = KernelBatch(members).run_epochs(EPOCHS)
    for slot, member in enumerate(members):
        np.testing.assert_allclose(found[:, slot, :2], alone(member, EPOCHS)[:, :2], rtol=1e-4)


@pytest.mark.parametrize("name", [n for n in CASES if n != "MLP"])
def test_real_data_gives_what_single_runs_give(name, loader):
    members = [loader.prepare(t) for t in trials(name, 3)]
    found = KernelBatch(members).run_epochs(EPOCHS)
    for slot, member in enumerate(members):
        single = alone(member, EPOCHS)
        np.testing.assert_allclose(found[:10, slot, :2], single[:10, :2], rtol=1e-4)
        np.testing.assert_allclose(found[:, slot, :2], single[:, :2], rtol=NEAR)


@pytest.mark.parametrize("name", [n for n in CASES if n != "MLP"])
def test_company_changes_no_bit(name, loader):
    some = [loader.prepare(t) for t in trials(name, 7)]
    one, seven = KernelBatch(some[:1]).run_epochs(EPOCHS), KernelBatch(some).run_epochs(EPOCHS)
    np.testing.assert_array_equal(one[:, 0], seven[:, 0])
    many = KernelBatch(some[::-1] * (700 // 7 if name in ("SGC", "GCN", "UGDGNN") else 10)).run_epochs(EPOCHS)
    np.testing.assert_array_equal(many[:, 6], seven[:, 0])
    np.testing.assert_array_equal(many[:, 0], seven[:, 6])


@pytest.mark.parametrize("name", CASES)
def test_refilled_and_smaller_batches_go_on(name):
    members = members_of(name, task_of(device="cuda"))
    fresh = KernelBatch(members).run_epochs(EPOCHS)
    batch = KernelBatch(members)
    batch.run_epochs(7)
    batch.load([1], [members[2]])
    after = batch.run_epochs(EPOCHS)
    np.testing.assert_array_equal(after[:, 1], fresh[:, 2])
    np.testing.assert_array_equal(after[: EPOCHS - 7, 0], fresh[7:, 0])
    whole = KernelBatch(members).run_epochs(10 + EPOCHS)
    np.testing.assert_array_equal(batch.compact([0]).run_epochs(3)[:, 0], whole[-3:, 0])


@pytest.mark.parametrize("name", [n for n in CASES if n.endswith("-each")])
def test_masks_of_every_hop_are_those_of_plain_torch(name, monkeypatch):
    """The same batch in plain torch on the same GPU; depths differ, and with them the calls of an epoch."""
    members = members_of(name, task_of(device="cuda"))
    found = KernelBatch(members, depth=7).run_epochs(EPOCHS)
    monkeypatch.setattr(kernel_batch, "_steps", lambda device: plain)
    monkeypatch.setattr(KernelBatch, "_epoch", KernelBatch._once)  # plain steps look at values, which no CUDA graph can
    want = KernelBatch(members, depth=7).run_epochs(EPOCHS)
    np.testing.assert_allclose(found[:10, :, :2], want[:10, :, :2], rtol=1e-4)
    np.testing.assert_allclose(found[:, :, :2], want[:, :, :2], rtol=NEAR)


@pytest.mark.parametrize("name", ["GCN", "UGDGNN", "AirGNN", "UGDGNN-each", "APPNP-each"])
def test_stacks_give_what_single_runs_give(name, loader):
    members = [loader.prepare(t) for t in trials(name, 3)]
    found = StackedBatch(members).run_epochs(10)
    for slot, member in enumerate(members):
        np.testing.assert_allclose(found[:, slot, :2], alone(member, 10)[:, :2], rtol=1e-4)


def _noted(start, opened):
    def noted(self, epochs):
        opened.append(self)
        return start(self, epochs)

    return noted


def test_batches_beside_each_other_change_no_bit(loader, monkeypatch):
    monkeypatch.setattr(engine, "fits_another_batch", lambda device: True)  # others may hold memory
    named = [t for name in ("GCN", "UGDGNN", "AirGNN", "PPNP", "SGC", "GPRGNN") for t in trials(name, 3)]
    loose = [
        train.Trial(models.GCN, {"depth": 3, "dropout": 0.5}, train.TrainConfig(epochs=40), seed) for seed in range(3)
    ]
    deep = [train.Trial(models.APPNP, {"depth": k}, train.TrainConfig(epochs=40 + k), 0) for k in (1, 9, 30)]
    found = {}
    for beside in (1, 8):
        tracker, seen = MemoryTracker(), []
        train_trials([*named, *loose, *deep], loader.prepare, tracker, batches_at_once=beside, watch=seen.append)
        assert tracker.failures == {}
        assert (max(p.running for p in seen) > 6) is (beside > 1)
        found[beside] = {t: (r.epoch, r.train_loss, r.valid_loss, r.test_score) for t, r in tracker.results.items()}
    assert len(found[1]) == len(named) + len(loose) + len(deep)
    for trial, numbers in found[1].items():
        near = 1e-5 if trial in loose else 0.0  # stacks multiply with a library that promises no order of sums
        assert found[8][trial] == pytest.approx(numbers, rel=near, abs=0.0)


def test_a_whole_study_runs_on_the_gpu(tmp_path, monkeypatch):
    space = study.grid(models.UGDGNN, models.GCN, models.AirGNN, seed=range(2), dropout=[0.2, 0.5], epochs=30)
    opened = []
    monkeypatch.setattr(KernelBatch, "start_epochs", _noted(KernelBatch.start_epochs, opened))
    found = study.run(space, "citeseer", store=tmp_path / "s.db", device="cuda")
    assert len(found.table) == 12
    assert {batch.config.middle.value for batch in opened} == {"series", "convolution", "rows"}
    again = study.run(space, "citeseer", store=tmp_path / "t.db", device="cuda", most=3)
    first, second = ({r.key: r.result for r in s.rows} for s in (found, again))
    for key, result in first.items():
        assert second[key].epoch == result.epoch
        assert second[key].valid_loss == pytest.approx(result.valid_loss, rel=1e-4)


def test_an_exact_lower_level_is_not_taken_for_its_steps(loader):
    """The kernels take steps; a minimiser is trained by stacks, and gives what it gives alone."""
    trials = [
        train.Trial(models.APPNP, {"hidden": 16, "depth": 2}, train.TrainConfig(epochs=10, lower_level=level), seed)
        for seed in range(2)
        for level in train.LowerLevel
    ]
    tracker = MemoryTracker()
    train_trials(trials, loader.prepare, tracker)
    assert tracker.failures == {}
    for trial in trials:
        _, run = train.train_trial(trial, loader)
        assert tracker.results[trial].valid_loss == pytest.approx(run.best.valid_loss, rel=NEAR)


def test_the_network_of_a_row_has_its_numbers():
    found = study.run(study.grid(models.UGDGNN, models.GCN, seed=range(2), epochs=30), "citeseer", device="cuda")
    for row in found.rows:
        trial, model, run = study.train_again(row, found.loader)
        task = found.loader.task(trial.seed, trial.normalise_rows)
        assert run.best.epoch == row.result.epoch
        assert run.best.valid_loss == pytest.approx(row.result.valid_loss, rel=2e-3)
        right = model(task.x, task.graph).argmax(-1)[task.test] == task.target[task.test]
        assert float(right.float().mean()) == pytest.approx(row.result.test_score, abs=2 / task.test.numel())
