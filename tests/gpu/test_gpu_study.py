"""Batches on a GPU: stacks of trials against single runs, and against themselves in other company."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from study.batch.contract import EPOCHS as CONTRACT_EPOCHS
from study.batch.contract import AsyncBatchContract, BatchContract
from study.batch.stack_cases import CASES, EACH, alone, kind_of, members_of, task_of
from unspool import datasets, models, study, train
from unspool.ops import SparseFeatures, stacked_features
from unspool.study.batch.single_trial import SingleTrial
from unspool.study.batch.stacked_batch import StackedBatch
from unspool.study.engine import engine, train_trials
from unspool.study.engine.batching import open_batch
from unspool.study.engine.tracker import MemoryTracker

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an NVIDIA GPU")

EPOCHS = 12
#: Against other kernels. Adam turns the sign of a gradient that is nearly zero into a whole step, so rounding grows from epoch to epoch.
NEAR = 1e-3
#: Models all of whose kernels are this package's, which add up in an order that company does not change.
IN_BITS = ("UGDGNN", "GPRGNN", "APPNP", "SGC", "AirGNN", "DAGNN", "MLP", "PPNP")


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


class TestStackedBatch(OnGpu, AsyncBatchContract):
    def open(self, members):
        return StackedBatch(members)

    def check_same(self, found, wanted):
        """The kernels are this package's, so a slot does not feel its neighbours in any bit."""
        np.testing.assert_array_equal(found, wanted)

    def test_it_is_what_the_engine_opens(self, members):
        assert isinstance(open_batch(members), StackedBatch)

    def test_a_new_split_keeps_the_captured_epoch(self, loader, members):
        *first, late = members
        assert not any(torch.equal(late.task.train, member.task.train) for member in first)
        batch = self.open(first)
        batch.run_epochs(7)
        captured = batch._replay
        assert captured is not None
        batch.load([1], [late])
        after = batch.run_epochs(CONTRACT_EPOCHS)
        assert batch._replay is captured
        self.check_same(after[:, 1], self.open([late]).run_epochs(CONTRACT_EPOCHS)[:, 0])
        self.check_near(after[:, 1], self.alone(late.trial, loader))


class TestSingleTrial(OnGpu, BatchContract):
    def open(self, members):
        return SingleTrial(members)

    def trials(self):
        return super().trials()[:2]


@pytest.fixture(scope="module")
def loader():
    return train.TrialLoader(datasets.load("citeseer"), "cuda")


def trials(name, count, epochs=40):
    """Trials of a case with narrow layers, but for JKNet, whose training passes decode rows where it is wide; seeds differ."""
    settings = {} if name in ("PPNP", "MLP") else {"depth": {"GCN": 2, "SGC": 2}.get(name, 6)}
    if name != "SGC":
        settings.update(hidden=32 if name == "JKNet" else 16, dropout=0.5)
    if name.endswith("-each"):
        settings.update(masks=EACH["masks"][0], propagation_dropout=0.6)
    config = train.TrainConfig(lr=0.01, weight_decay=5e-4, epochs=epochs)
    return [train.Trial(kind_of(name), settings, config, seed, normalise_rows=True) for seed in range(count)]


@pytest.mark.parametrize("name", CASES)
def test_small_batches_give_what_single_runs_give(name):
    members = members_of(name, task_of(device="cuda"))
    batch = StackedBatch(members)
    found = batch.run_epochs(EPOCHS)
    assert batch._replay is not None  # epochs were captured
    for slot, member in enumerate(members):
        np.testing.assert_allclose(found[:, slot, :2], alone(member, EPOCHS)[:, :2], rtol=1e-4)


@pytest.mark.parametrize("name", CASES)
def test_real_data_gives_what_single_runs_give(name, loader):
    members = [loader.prepare(t) for t in trials(name, 3)]
    batch = StackedBatch(members)
    found = batch.run_epochs(EPOCHS)
    assert batch._replay is not None
    for slot in (0, 2):
        single = alone(members[slot], EPOCHS)
        np.testing.assert_allclose(found[:8, slot, :2], single[:8, :2], rtol=1e-4)
        np.testing.assert_allclose(found[:, slot, :2], single[:, :2], rtol=NEAR)


@pytest.mark.parametrize("name", [*IN_BITS, "GCN", "JKNet", "GCNII", "UGDGNN-each"])
def test_company_changes_no_number(name, loader):
    some = [loader.prepare(t) for t in trials(name, 7)]
    one, seven = StackedBatch(some[:1]).run_epochs(EPOCHS), StackedBatch(some).run_epochs(EPOCHS)
    many = StackedBatch(some[::-1] * 10).run_epochs(EPOCHS)
    for found, wanted in ((one[:, 0], seven[:, 0]), (many[:, 6], seven[:, 0]), (many[:, 63], seven[:, 6])):
        if name in IN_BITS:
            np.testing.assert_array_equal(found, wanted)
        else:
            np.testing.assert_allclose(found[:, :2], wanted[:, :2], rtol=NEAR)


@pytest.mark.parametrize("name", ["GPRGNN", "GCN", "JKNet", "GCNII", "APPNP-each"])
def test_refilled_and_smaller_batches_go_on(name):
    near = 0.0 if name in IN_BITS else NEAR
    members = members_of(name, task_of(device="cuda"))
    whole = StackedBatch(members).run_epochs(10 + EPOCHS)
    batch = StackedBatch(members)
    batch.run_epochs(7)
    captured = batch._replay
    batch.load([1], [members[2]])
    after = batch.run_epochs(EPOCHS)
    assert batch._replay is captured
    np.testing.assert_allclose(after[:, 1, :2], whole[:EPOCHS, 2, :2], rtol=near)
    np.testing.assert_allclose(after[:, 0, :2], whole[7 : 7 + EPOCHS, 0, :2], rtol=near)
    smaller = batch.compact([0])
    np.testing.assert_allclose(smaller.run_epochs(3)[:, 0, :2], whole[-3:, 0, :2], rtol=near)


@pytest.mark.parametrize("name", ["UGDGNN", "GCN"])
def test_dense_features_give_what_sparse_ones_give(name, monkeypatch):
    """Three in ten of the features are there, so they go through the matrix units; entry by entry they give the same numbers."""
    task = task_of(device="cuda")
    shown = torch.rand(90, 64, generator=torch.Generator().manual_seed(0))
    x = SparseFeatures.from_tensor(torch.where(shown < 0.3, shown + 0.1, 0.0)).to("cuda")
    task = train.Task(x, task.graph, task.target, task.train, task.valid, task.test)
    assert stacked_features.form_of(x) is stacked_features.Form.DENSE
    calls, forward = [], stacked_features._dense_forward
    monkeypatch.setattr(
        stacked_features, "_dense_forward", lambda *given: calls.append(given[1].shape[0]) or forward(*given)
    )
    members = members_of(name, task)
    dense = StackedBatch(members).run_epochs(EPOCHS)
    assert set(calls) == {3}  # all trials at once
    one = StackedBatch(members[1:2]).run_epochs(EPOCHS)[:, 0]
    if name in IN_BITS:
        np.testing.assert_array_equal(one, dense[:, 1])
    else:
        np.testing.assert_allclose(one[:, :2], dense[:, 1, :2], rtol=NEAR)
    np.testing.assert_allclose(dense[:, 2, :2], alone(members[2], EPOCHS)[:, :2], rtol=NEAR)
    calls.clear()
    monkeypatch.setattr(stacked_features, "DENSE_FROM", 2.0)
    sparse = StackedBatch(members).run_epochs(EPOCHS)
    assert not calls
    np.testing.assert_allclose(dense[:8, :, :2], sparse[:8, :, :2], rtol=1e-4)
    np.testing.assert_allclose(dense[..., :2], sparse[..., :2], rtol=NEAR)


def _noted(start, opened):
    def noted(self, epochs):
        opened.append(self)
        return start(self, epochs)

    return noted


def test_batches_beside_each_other_change_no_bit(loader, monkeypatch):
    monkeypatch.setattr(engine, "fits_another_batch", lambda device: True)  # others may hold memory
    named = [t for name in ("GCN", "UGDGNN", "AirGNN", "SGC") for t in trials(name, 3, epochs=20)]
    deep = [train.Trial(models.APPNP, {"depth": k}, train.TrainConfig(epochs=20 + k), 0) for k in (1, 9)]
    found = {}
    for beside in (1, 8):
        tracker, seen = MemoryTracker(), []
        train_trials([*named, *deep], loader.prepare, tracker, batches_at_once=beside, watch=seen.append)
        assert tracker.failures == {}
        assert (max(p.running for p in seen) > 6) is (beside > 1)
        found[beside] = {t: (r.epoch, r.train_loss, r.valid_loss, r.test_score) for t, r in tracker.results.items()}
    assert len(found[1]) == len(named) + len(deep)
    assert found[8] == found[1]


def test_a_whole_study_runs_on_the_gpu(tmp_path, monkeypatch):
    space = study.grid(models.UGDGNN, models.GCN, models.AirGNN, seed=range(2), dropout=[0.2, 0.5], epochs=30)
    opened = []
    monkeypatch.setattr(StackedBatch, "start_epochs", _noted(StackedBatch.start_epochs, opened))
    found = study.run(space, "citeseer", store=tmp_path / "s.db", device="cuda")
    assert len(found.table) == 12
    assert {type(batch._first.model) for batch in opened} == {models.UGDGNN, models.GCN, models.AirGNN}
    assert all(batch._replay is not None for batch in opened)
    again = study.run(space, "citeseer", store=tmp_path / "t.db", device="cuda", most=3)
    first, second = ({r.key: r.result for r in s.rows} for s in (found, again))
    for key, result in first.items():
        assert second[key].epoch == result.epoch
        assert second[key].valid_loss == pytest.approx(result.valid_loss, rel=1e-4)


def test_an_exact_lower_level_is_not_taken_for_its_steps(loader):
    found = {}
    for level in train.LowerLevel:
        config = train.TrainConfig(epochs=10, lower_level=level)
        some = [train.Trial(models.APPNP, {"hidden": 16, "depth": 2}, config, seed) for seed in range(2)]
        tracker = MemoryTracker()
        train_trials(some, loader.prepare, tracker)
        assert tracker.failures == {}
        for trial in some:
            _, run = train.train_trial(trial, loader)
            assert tracker.results[trial].valid_loss == pytest.approx(run.best.valid_loss, rel=NEAR)
        found[level] = tracker.results[some[0]].valid_loss
    assert found[train.LowerLevel.EXACT] != pytest.approx(found[train.LowerLevel.UNROLLED], rel=NEAR)


def test_the_network_of_a_row_has_its_numbers():
    found = study.run(study.grid(models.UGDGNN, models.GCN, seed=range(2), epochs=30), "citeseer", device="cuda")
    for row in found.rows:
        trial, model, run = study.train_again(row, found.loader)
        task = found.loader.task(trial.seed, trial.normalise_rows)
        assert run.best.epoch == row.result.epoch
        assert run.best.valid_loss == pytest.approx(row.result.valid_loss, rel=2e-3)
        right = model(task.x, task.graph).argmax(-1)[task.test] == task.target[task.test]
        assert float(right.float().mean()) == pytest.approx(row.result.test_score, abs=2 / task.test.numel())
