"""Trials among others, in batches of any size, give what they give alone; what goes wrong stays where it went wrong."""

import math
import signal

import numpy as np
import pytest
import torch
from torch import nn

import unspool as us
from study.double_loader import DoubleLoader, alone
from unspool import datasets, train
from unspool.device import DeviceLost
from unspool.study.batch.stacked_batch import StackedBatch
from unspool.study.engine import engine, train_trials
from unspool.study.engine.memory import _fitting, _resident_peak, slots_for
from unspool.study.engine.tracker import MemoryTracker
from unspool.study.engine.trial_progress import TrialProgress
from unspool.train import Ending, LowerLevel, Monitor, Stop, TaskKind, Trial

pytestmark = pytest.mark.long


_known = {}  # runs alone, by trial
SMALL = {"hidden": 5, "depth": 2}


class Noisy(nn.Module):
    """Draws from torch's generator, which a stack cannot."""

    def __init__(self, in_features, out_features, *, rate=0.5):
        super().__init__()
        self.only, self.rate = us.nn.Linear(in_features, out_features), rate

    def forward(self, x, graph):
        return self.only(nn.functional.dropout(x, self.rate, self.training))


@pytest.fixture(scope="module")
def loader():
    return DoubleLoader(datasets.contextual_sbm(nodes=60, classes=2, seed=0))  # each seed has its own split


@pytest.fixture
def provide(loader):
    return loader.prepare


def check(trial, result, loader):
    run = _known[trial] = _known.get(trial) or alone(trial, loader)
    assert (result.epoch, result.epochs, result.ending) == (run.best.epoch, len(run.history), run.ending)
    assert (result.valid_score, result.test_score) == (run.best.valid_score, run.best.test_score)
    assert result.train_loss == pytest.approx(run.best.train_loss, rel=1e-9)
    assert result.valid_loss == pytest.approx(run.best.valid_loss, rel=1e-9)


def configs():
    """Every rule, and different lengths."""
    yield train.TrainConfig(lr=0.05, epochs=14)
    yield train.TrainConfig(lr=0.3, epochs=25, stop=Stop.PATIENCE, patience=3)
    yield train.TrainConfig(lr=0.2, epochs=23, stop=Stop.ABOVE_MEAN, patience=4, min_epochs=6)
    yield train.TrainConfig(lr=0.1, epochs=9, monitor=Monitor.LAST_EPOCH)
    yield train.TrainConfig(lr=0.2, epochs=17, monitor=Monitor.VALID_SCORE, stop=Stop.PATIENCE, patience=5)


def grid():
    kinds = [
        (us.models.UGDGNN, {}), (us.models.APPNP, {"teleport": 0.3}), (us.models.GPRGNN, {}), (us.models.DAGNN, {}),
    ]  # fmt: skip
    seed = 0
    for kind, more in kinds:
        for config in configs():
            seed += 1
            yield Trial(kind, {**SMALL, "dropout": 0.2 + 0.1 * (seed % 4), **more}, config, seed)


@pytest.fixture(scope="module")
def trials():
    return list(grid())


@pytest.mark.parametrize(("most", "chunk", "order"), [(1, 5, 1), (3, 5, 1), (3, 1, -1), (7, 4, 1)])
def test_among_others_as_alone(most, chunk, order, trials, loader, provide):
    tracker = MemoryTracker()
    train_trials(trials[::order], provide, tracker, most=most, chunk=chunk)
    assert set(tracker.results) == set(trials)
    assert (tracker.failures, tracker.held) == ({}, set())
    for trial, result in tracker.results.items():
        check(trial, result, loader)
        assert result.seconds > 0


def test_batches_are_refilled_and_made_smaller(trials, loader, provide):
    sizes, puts = [], []

    class Watched(StackedBatch):
        def load(self, slots, members):
            super().load(slots, members)
            puts.append(len(members))

        def run_epochs(self, epochs):
            sizes.append(self.slots)
            return super().run_epochs(epochs)

        def compact(self, slots):
            made = super().compact(slots)
            made.__class__ = Watched
            return made

    mine = [t for t in trials if t.model is us.models.UGDGNN]
    tracker = MemoryTracker()
    train_trials(mine, provide, tracker, most=4, chunk=2, open_batch=Watched)
    assert sizes[0] == 4
    assert sizes[-1] < 4
    assert sizes == sorted(sizes, reverse=True)
    assert puts == [4, 1]
    for trial, result in tracker.results.items():
        check(trial, result, loader)


def test_other_settings_share_a_run(loader, provide):
    some = [Trial(us.models.GCN, {"hidden": h, "dropout": d}, train.TrainConfig(epochs=4), s) for s, (h, d) in enumerate([(4, 0.0), (4, 0.5), (6, 0.5), (4, 0.25)])]  # fmt: skip
    some.append(Trial(us.models.PPNP, {"hidden": 4}, train.TrainConfig(epochs=4)))
    some.append(Trial(us.models.MLP, {"hidden": 4}, train.TrainConfig(epochs=4, optimiser=torch.optim.SGD)))
    tracker = MemoryTracker()
    train_trials(some, provide, tracker)
    for trial in some:
        check(trial, tracker.results[trial], loader)


def test_diverging(loader, provide):
    config = train.TrainConfig(epochs=12, lr=0.1)
    some = [Trial(us.models.UGDGNN, {**SMALL, "dropout": 0.5}, config, seed) for seed in range(4)]
    wild = [Trial(us.models.UGDGNN, {**SMALL, "dropout": 0.5}, train.TrainConfig(epochs=12, lr=r), 9) for r in (1e200, 1e150)]  # fmt: skip
    plain, mixed = MemoryTracker(), MemoryTracker()
    train_trials(some, provide, plain, most=6, chunk=3)
    train_trials([*some[:2], *wild, *some[2:]], provide, mixed, most=6, chunk=5)
    for trial in some:
        check(trial, mixed.results[trial], loader)
        assert mixed.results[trial].epoch == plain.results[trial].epoch
    for trial in wild:
        result = mixed.results[trial]
        assert result.ending is Ending.DIVERGED
        assert result.epochs < 12
        assert result.epoch <= result.epochs


def test_diverging_at_once_has_no_scores():
    progress = TrialProgress(Trial(us.models.MLP))
    assert progress.take(np.full((3, 4), np.nan), 0.1) == 0
    assert progress.ending is Ending.DIVERGED
    assert progress.result().epoch == 0
    assert math.isnan(progress.result().valid_score)


def test_bad_settings_fail_alone(loader, provide):
    good = Trial(us.models.MLP, {"hidden": 4, "dropout": 0.5}, train.TrainConfig(epochs=3))
    bad = [Trial(us.models.MLP, {"hidden": 4, "dropout": 1.5}), Trial(us.models.MLP, {"hidden": -1})]
    foreign = Trial(
        us.models.MLP, {"hidden": 4, "dropout": 0.5}, train.TrainConfig(weight_decay={"first": 0.1}, epochs=3)
    )
    groupless = Trial(Noisy, config=train.TrainConfig(weight_decay={"first": 0.1}))
    tracker = MemoryTracker()
    train_trials([bad[0], good, bad[1], foreign, groupless], provide, tracker)
    assert set(tracker.results) == {good, foreign}
    assert "no parameter_groups()" in tracker.failures[groupless]
    assert "dropout=1.5" in tracker.failures[bad[0]]
    assert "hidden=-1" in tracker.failures[bad[1]]


def test_what_does_not_stack_trains_alone(loader, provide, caplog):
    """A module that draws from torch's generator is tried in a stack, and then gives what it gives alone."""
    some = [Trial(Noisy, {"rate": r}, train.TrainConfig(epochs=3), s) for s, r in enumerate((0.5, 0.5, 0.2))]
    tracker = MemoryTracker()
    train_trials(some, provide, tracker)
    assert set(tracker.results) == set(some)
    assert len({r.valid_loss for r in tracker.results.values()}) == 3
    for trial, result in tracker.results.items():
        check(trial, result, loader)
    assert "Noisy goes on one by one" in caplog.text


def test_links_train_among_each_other_as_alone():
    loader = DoubleLoader(datasets.contextual_sbm(nodes=60, classes=2, seed=0), kind=TaskKind.LINKS)
    some = [Trial(us.models.GPRGNN, SMALL, train.TrainConfig(epochs=6), seed) for seed in range(3)]
    tracker = MemoryTracker()
    train_trials(some, loader.prepare, tracker, chunk=2)
    assert tracker.failures == {}
    for trial in some:
        check(trial, tracker.results[trial], loader)


def test_steps_and_minimisers_share_a_run(loader, provide):
    some = [
        Trial(us.models.APPNP, {**SMALL, "teleport": teleport}, train.TrainConfig(epochs=6, lower_level=level), seed)
        for seed, teleport in enumerate((0.1, 0.5))
        for level in LowerLevel
    ]
    refused = Trial(us.models.GPRGNN, SMALL, train.TrainConfig(epochs=6, lower_level=LowerLevel.EXACT))
    foreign = Trial(Noisy, {}, train.TrainConfig(epochs=6, lower_level=LowerLevel.EXACT))
    tracker = MemoryTracker()
    train_trials([*some, refused, foreign], provide, tracker)
    for trial in some:
        check(trial, tracker.results[trial], loader)
    losses = {(t.seed, t.config.lower_level): tracker.results[t].valid_loss for t in some}
    assert all(losses[s, LowerLevel.UNROLLED] != losses[s, LowerLevel.EXACT] for s in (0, 1))
    assert set(tracker.failures) == {refused, foreign}
    assert "GPRGNN cannot be solved exactly" in tracker.failures[refused]
    assert "Noisy cannot be solved exactly" in tracker.failures[foreign]


def test_out_of_memory_halves_the_batch(trials, loader, provide):
    tried = []

    class Tight(StackedBatch):
        def run_epochs(self, epochs):
            tried.append(self.slots)
            if self.slots > 1:
                raise torch.OutOfMemoryError("CUDA out of memory")
            return super().run_epochs(epochs)

    mine = [t for t in trials if t.model is us.models.GPRGNN]
    tracker = MemoryTracker()
    train_trials(mine, provide, tracker, open_batch=Tight)
    assert tried[:3] == [5, 2, 1]
    for trial in mine:
        check(trial, tracker.results[trial], loader)


def test_out_of_memory_with_one_slot_fails_the_trial(provide, monkeypatch):
    def broken(members):
        raise MemoryError("no room")

    monkeypatch.setattr(engine, "SingleTrial", broken)
    some = [Trial(us.models.MLP, config=train.TrainConfig(epochs=2), seed=s) for s in range(3)]
    tracker = MemoryTracker()
    train_trials(some, provide, tracker, open_batch=broken)
    assert set(tracker.failures.values()) == {"MemoryError: no room"}
    assert len(tracker.failures) == 3


def test_only_what_the_tracker_gives(trials, loader, provide):
    class Shared(MemoryTracker):
        def claim(self, wanted, count):
            return super().claim([t for t in wanted if t.seed % 2], count)

    tracker = Shared()
    train_trials(trials, provide, tracker, most=3)
    assert set(tracker.results) == {t for t in trials if t.seed % 2}
    train_trials(trials, provide, tracker, most=3)  # nothing is trained twice


def test_the_trackers_own_trouble_is_not_hidden(provide):
    class Full(MemoryTracker):
        def finish(self, ended):
            raise OSError("the disk is full")

    tracker = Full()
    with pytest.raises(OSError, match="disk is full"):
        train_trials([Trial(us.models.MLP, config=train.TrainConfig(epochs=2))], provide, tracker)


@pytest.fixture
def roomy(monkeypatch):
    """A device with room for several batches."""
    monkeypatch.setattr(engine, "fits_another_batch", lambda device: True)


@pytest.fixture(params=[False, True], ids=["in turns", "sent ahead"])
def ahead(request, monkeypatch):
    """Whether batches are sent ahead, as they are on a GPU."""
    whole = engine._Engine._run_batch
    if request.param:
        monkeypatch.setattr(
            engine._Engine, "_run_batch", lambda self, batch, kind, *rest: whole(self, batch, "cuda", *rest)
        )


@pytest.mark.usefixtures("roomy", "ahead")
@pytest.mark.parametrize(("beside", "most"), [(2, 10), (8, 14)])
def test_batches_beside_each_other_change_nothing(beside, most, trials, loader, provide):
    seen, alone_seen = [], []
    tracker, one_by_one = MemoryTracker(), MemoryTracker()
    train_trials(trials, provide, tracker, most=most, chunk=4, batches_at_once=beside, watch=seen.append)
    train_trials(trials, provide, one_by_one, most=most, chunk=4, batches_at_once=1, watch=alone_seen.append)
    assert max(p.running for p in alone_seen) <= 5 < max(p.running for p in seen) <= most
    assert set(tracker.results) == set(trials)
    assert (tracker.failures, tracker.held) == ({}, set())
    for trial, result in tracker.results.items():
        check(trial, result, loader)
        other = one_by_one.results[trial]
        assert (result.epoch, result.train_loss, result.valid_loss) == (other.epoch, other.train_loss, other.valid_loss)


@pytest.mark.usefixtures("roomy")
def test_a_batch_that_breaks_beside_others_leaves_them_alone(trials, loader, provide):
    class Fragile(StackedBatch):
        def run_epochs(self, epochs):
            if self._first.trial.model is us.models.GPRGNN:
                raise RuntimeError("broken")
            return super().run_epochs(epochs)

    tracker = MemoryTracker()
    train_trials(trials, provide, tracker, most=12, batches_at_once=8, open_batch=Fragile)
    assert (tracker.failures, tracker.held) == ({}, set())
    for trial, result in tracker.results.items():
        check(trial, result, loader)


@pytest.mark.usefixtures("roomy")
def test_a_lost_device_ends_the_study_and_no_trial_fails_for_it(trials, loader, provide, monkeypatch):
    opened = []

    class Faulty(StackedBatch):
        """The third batch steps outside the memory of the GPU."""

        def run_epochs(self, epochs):
            opened.append(self) if self not in opened else None
            if opened.index(self) == 2:
                raise RuntimeError("CUDA error: an illegal memory access was encountered\nCUDA kernel errors might ...")
            return super().run_epochs(epochs)

    monkeypatch.setattr(engine, "settle", lambda device: False)
    tracker = MemoryTracker()
    with pytest.raises(
        DeviceLost, match=r"cpu has stopped working .*illegal memory access was encountered\); what had ended is kept"
    ):
        train_trials(trials, provide, tracker, most=4, batches_at_once=1, open_batch=Faulty)
    assert (tracker.failures, tracker.held) == ({}, set())
    assert len(tracker.results) < len(trials)
    for trial, result in tracker.results.items():
        check(trial, result, loader)


@pytest.mark.usefixtures("ahead")
@pytest.mark.parametrize("chunk", [1, 64, 100])
def test_any_chunk_does(chunk, trials, loader, provide, caplog):
    tracker = MemoryTracker()
    train_trials(trials[:5], provide, tracker, chunk=chunk)
    for trial, result in tracker.results.items():
        check(trial, result, loader)
    assert not caplog.records


@pytest.mark.usefixtures("roomy")
def test_memory_that_others_have_is_waited_for(trials, loader, provide):
    opened = []

    class Crowded(StackedBatch):
        """Fits beside no other kind of model."""

        def __init__(self, members):
            kind = members[0].trial.model
            if any(other is not kind for other in opened):
                raise torch.OutOfMemoryError("CUDA out of memory")
            super().__init__(members)
            opened.append(kind)

        def run_epochs(self, epochs):
            if self._first.trial.model not in opened:
                opened.append(self._first.trial.model)
            return super().run_epochs(epochs)

    class Free(MemoryTracker):
        def finish(self, ended):
            super().finish(ended)
            if len(self.results) % 5 == 0:  # the last of its kind
                opened.clear()

    tracker = Free()
    train_trials(trials, provide, tracker, most=20, batches_at_once=8, open_batch=Crowded)
    assert (tracker.failures, tracker.held) == ({}, set())
    assert len(tracker.results) == len(trials)
    for trial, result in tracker.results.items():
        check(trial, result, loader)


@pytest.mark.usefixtures("roomy", "ahead")
def test_what_trains_beside_others_is_released_when_interrupted(trials, provide):
    def stop(progress):
        if progress.running > 8:
            raise KeyboardInterrupt

    tracker = MemoryTracker()
    with pytest.raises(KeyboardInterrupt):
        train_trials(trials, provide, tracker, most=12, batches_at_once=8, chunk=1, watch=stop)
    assert (tracker.failures, tracker.held) == ({}, set())


def test_a_batch_is_waited_for_where_everything_ends():
    ended = []

    class Sent:
        def finish_epochs(self):
            ended.append(True)

    turn = engine._in_the_meantime(Sent())
    next(turn)
    turn.close()
    assert ended == [True]


@pytest.mark.parametrize("kind", ["raised", "signal"])
def test_interrupted(kind, provide):
    some = [Trial(us.models.MLP, config=train.TrainConfig(epochs=4 if s < 2 else 400), seed=s) for s in range(6)]

    def stop(progress):
        if progress.done == 2:
            if kind == "raised":
                raise KeyboardInterrupt
            signal.raise_signal(signal.SIGINT)

    tracker = MemoryTracker()
    before = signal.getsignal(signal.SIGINT)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            train_trials(some, provide, tracker, most=3, watch=stop)
    finally:
        signal.signal(signal.SIGINT, before)
    assert set(tracker.results) == set(some[:2])
    assert (tracker.failures, tracker.held) == ({}, set())


def test_time_that_is_up(provide):
    some = [Trial(us.models.MLP, config=train.TrainConfig(epochs=3), seed=s) for s in range(2)]
    tracker = MemoryTracker()
    train_trials(some, provide, tracker, seconds=0.0)
    assert (tracker.results, tracker.held) == ({}, set())


def test_progress(trials, provide):
    seen = []
    tracker = MemoryTracker()
    train_trials(trials, provide, tracker, most=4, watch=seen.append)
    last = seen[-1]
    assert (last.done, last.total, last.running, last.seconds_left) == (len(trials), len(trials), 0, 0.0)
    assert last.best[0] == max(r.valid_score for r in tracker.results.values())
    assert last.epochs_per_second > 0
    assert [p.done for p in seen] == sorted(p.done for p in seen)


def test_bad_numbers(provide):
    with pytest.raises(ValueError, match="most=0"):
        train_trials([], provide, MemoryTracker(), most=0)
    with pytest.raises(ValueError, match="chunk=0"):
        train_trials([], provide, MemoryTracker(), chunk=0)
    with pytest.raises(ValueError, match="batches_at_once=0"):
        train_trials([], provide, MemoryTracker(), batches_at_once=0)


def test_slots_fit_into_memory(provide):
    assert _fitting(100, 2, 6, (20.0, 60.0), 1000.0) == 80  # ten bytes each, four fifths of a thousand
    assert _fitting(30, 2, 6, (20.0, 60.0), 1000.0) == 30
    assert _fitting(100, 2, 6, (2000.0, 6000.0), 1000.0) == 1
    assert _fitting(100, 2, 6, None, 1000.0) == 100
    member = provide(Trial(us.models.MLP, {"hidden": 4}))
    assert slots_for(member, StackedBatch, 1000) == 16
    peaks = _resident_peak(member, StackedBatch)
    assert peaks is None or min(peaks) >= 0

    def full(members):
        raise torch.OutOfMemoryError("CUDA out of memory")

    assert slots_for(member, full, 5) == 5  # small graphs are not measured
