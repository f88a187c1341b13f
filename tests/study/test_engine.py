"""Trials among others, in packs of any size, give what they give alone; what goes wrong stays where it went wrong."""

import math
import signal

import numpy as np
import pytest
import torch
from torch import nn

import unspool as us
from reference.cases import doubles
from unspool import datasets, train
from unspool.study.engine import engine, train_trials
from unspool.study.engine.course import Course
from unspool.study.engine.ledger import Notebook
from unspool.study.engine.room import _fitting, _resident_peak, slots_for
from unspool.study.pack import Member
from unspool.study.pack.stacked import Stacked
from unspool.study.trial import Trial
from unspool.train.plan import Select, Stop
from unspool.train.repeat import run_seed

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
def task():
    found = train.Task.of(datasets.contextual_sbm(nodes=60, classes=2, seed=0))
    x, graph = found.x.to(torch.float64), found.graph.to(torch.float64)
    return train.Task(x, graph, found.target, found.train, found.valid, found.test)


@pytest.fixture
def provide(task):
    def ready(trial):
        with doubles():
            return Member(trial, trial.build(int(task.x.shape[1]), 2), task)

    return ready


def alone(trial, task):
    with doubles():
        return run_seed(lambda: trial.model(int(task.x.shape[1]), 2, **trial.settings), trial.seed, task, trial.plan)[1]


def check(trial, result, task):
    run = _known[trial] = _known.get(trial) or alone(trial, task)
    assert (result.epoch, result.epochs, result.reason) == (run.best.epoch, len(run.history), run.reason)
    assert (result.valid_score, result.test_score) == (run.best.valid_score, run.best.test_score)
    assert result.train_loss == pytest.approx(run.best.train_loss, rel=1e-9)
    assert result.valid_loss == pytest.approx(run.best.valid_loss, rel=1e-9)


def plans():
    """Every rule, and different lengths."""
    yield train.Plan(rate=0.05, epochs=14)
    yield train.Plan(rate=0.3, epochs=25, stop=Stop.PATIENCE, patience=3)
    yield train.Plan(rate=0.2, epochs=23, stop=Stop.ABOVE_MEAN, patience=4, earliest=6)
    yield train.Plan(rate=0.1, epochs=9, select=Select.LAST)
    yield train.Plan(rate=0.2, epochs=17, select=Select.VALIDATION_ACCURACY, stop=Stop.PATIENCE, patience=5)


def grid():
    kinds = [
        (us.models.UGDGNN, {}), (us.models.APPNP, {"teleport": 0.3}), (us.models.GPRGNN, {}), (us.models.DAGNN, {}),
    ]  # fmt: skip
    seed = 0
    for kind, more in kinds:
        for plan in plans():
            seed += 1
            yield Trial(kind, {**SMALL, "dropout": 0.2 + 0.1 * (seed % 4), **more}, plan, seed)


@pytest.fixture(scope="module")
def trials():
    return list(grid())


@pytest.mark.parametrize(("most", "chunk", "order"), [(1, 5, 1), (3, 5, 1), (3, 1, -1), (7, 4, 1)])
def test_among_others_as_alone(most, chunk, order, trials, task, provide):
    notebook = Notebook()
    train_trials(trials[::order], provide, notebook, most=most, chunk=chunk)
    assert set(notebook.results) == set(trials)
    assert (notebook.failures, notebook.held) == ({}, set())
    for trial, result in notebook.results.items():
        check(trial, result, task)
        assert result.seconds > 0


def test_packs_are_refilled_and_made_smaller(trials, task, provide):
    sizes, puts = [], []

    class Watched(Stacked):
        def put(self, slots, members):
            super().put(slots, members)
            puts.append(len(members))

        def advance(self, epochs):
            sizes.append(self.slots)
            return super().advance(epochs)

        def shrunk(self, slots):
            made = super().shrunk(slots)
            made.__class__ = Watched
            return made

    mine = [t for t in trials if t.model is us.models.UGDGNN]
    notebook = Notebook()
    train_trials(mine, provide, notebook, most=4, chunk=2, open_pack=Watched)
    assert sizes[0] == 4
    assert sizes[-1] < 4
    assert sizes == sorted(sizes, reverse=True)
    assert puts == [4, 1]
    for trial, result in notebook.results.items():
        check(trial, result, task)


def test_other_settings_share_a_run(task, provide):
    some = [Trial(us.models.GCN, {"hidden": h, "dropout": d}, train.Plan(epochs=4), s) for s, (h, d) in enumerate([(4, 0.0), (4, 0.5), (6, 0.5), (4, 0.25)])]  # fmt: skip
    some.append(Trial(us.models.PPNP, {"hidden": 4}, train.Plan(epochs=4)))
    some.append(Trial(us.models.MLP, {"hidden": 4}, train.Plan(epochs=4, optimiser=torch.optim.SGD)))
    notebook = Notebook()
    train_trials(some, provide, notebook)
    for trial in some:
        check(trial, notebook.results[trial], task)


def test_diverging(task, provide):
    plan = train.Plan(epochs=12, rate=0.1)
    some = [Trial(us.models.UGDGNN, {**SMALL, "dropout": 0.5}, plan, seed) for seed in range(4)]
    wild = [Trial(us.models.UGDGNN, {**SMALL, "dropout": 0.5}, train.Plan(epochs=12, rate=r), 9) for r in (1e200, 1e150)]  # fmt: skip
    plain, mixed = Notebook(), Notebook()
    train_trials(some, provide, plain, most=6, chunk=3)
    train_trials([*some[:2], *wild, *some[2:]], provide, mixed, most=6, chunk=5)
    for trial in some:
        check(trial, mixed.results[trial], task)
        assert mixed.results[trial].epoch == plain.results[trial].epoch
    for trial in wild:
        result = mixed.results[trial]
        assert result.reason == "diverged"
        assert result.epochs < 12
        assert result.epoch <= result.epochs


def test_diverging_at_once_has_no_scores():
    course = Course(Trial(us.models.MLP))
    assert course.take(np.full((3, 4), np.nan), 0.1) == 0
    assert course.reason == "diverged"
    assert course.result().epoch == 0
    assert math.isnan(course.result().valid_score)


def test_bad_settings_fail_alone(task, provide):
    good = Trial(us.models.MLP, {"hidden": 4, "dropout": 0.5}, train.Plan(epochs=3))
    bad = [Trial(us.models.MLP, {"hidden": 4, "dropout": 1.5}), Trial(us.models.MLP, {"hidden": -1})]
    foreign = Trial(us.models.MLP, {"hidden": 4, "dropout": 0.5}, train.Plan(decay={"first": 0.1}, epochs=3))
    groupless = Trial(Noisy, plan=train.Plan(decay={"first": 0.1}))
    notebook = Notebook()
    train_trials([bad[0], good, bad[1], foreign, groupless], provide, notebook)
    assert set(notebook.results) == {good, foreign}
    assert "no parameter_groups()" in notebook.failures[groupless]
    assert "dropout rate 1.5" in notebook.failures[bad[0]]
    assert "hidden=-1" in notebook.failures[bad[1]]


def test_what_does_not_stack_trains_alone(task, provide):
    some = [Trial(Noisy, {"rate": r}, train.Plan(epochs=3), s) for s, r in enumerate((0.5, 0.5, 0.2))]
    notebook = Notebook()
    train_trials(some, provide, notebook)
    assert set(notebook.results) == set(some)
    assert len({r.valid_loss for r in notebook.results.values()}) == 3


def test_out_of_memory_halves_the_pack(trials, task, provide):
    tried = []

    class Tight(Stacked):
        def advance(self, epochs):
            tried.append(self.slots)
            if self.slots > 1:
                raise torch.OutOfMemoryError("CUDA out of memory")
            return super().advance(epochs)

    mine = [t for t in trials if t.model is us.models.GPRGNN]
    notebook = Notebook()
    train_trials(mine, provide, notebook, open_pack=Tight)
    assert tried[:3] == [5, 2, 1]
    for trial in mine:
        check(trial, notebook.results[trial], task)


def test_out_of_memory_with_one_slot_fails_the_trial(provide, monkeypatch):
    def broken(members):
        raise MemoryError("no room")

    monkeypatch.setattr(engine, "Alone", broken)
    some = [Trial(us.models.MLP, plan=train.Plan(epochs=2), seed=s) for s in range(3)]
    notebook = Notebook()
    train_trials(some, provide, notebook, open_pack=broken)
    assert set(notebook.failures.values()) == {"MemoryError: no room"}
    assert len(notebook.failures) == 3


def test_only_what_the_ledger_gives(trials, task, provide):
    class Shared(Notebook):
        def claim(self, wanted, count):
            return super().claim([t for t in wanted if t.seed % 2], count)

    notebook = Shared()
    train_trials(trials, provide, notebook, most=3)
    assert set(notebook.results) == {t for t in trials if t.seed % 2}
    train_trials(trials, provide, notebook, most=3)  # nothing is trained twice


def test_the_ledgers_own_trouble_is_not_hidden(provide):
    class Full(Notebook):
        def finish(self, ended):
            raise OSError("the disk is full")

    notebook = Full()
    with pytest.raises(OSError, match="disk is full"):
        train_trials([Trial(us.models.MLP, plan=train.Plan(epochs=2))], provide, notebook)


@pytest.fixture
def roomy(monkeypatch):
    """A device with room for several packs."""
    monkeypatch.setattr(engine, "room_beside", lambda device: True)


@pytest.fixture(params=[False, True], ids=["in turns", "sent ahead"])
def ahead(request, monkeypatch):
    """Whether packs are sent ahead, as they are on a GPU."""
    whole = engine._Engine._run_pack
    if request.param:
        monkeypatch.setattr(
            engine._Engine, "_run_pack", lambda self, pack, kind, *rest: whole(self, pack, "cuda", *rest)
        )


@pytest.mark.usefixtures("roomy", "ahead")
@pytest.mark.parametrize(("beside", "most"), [(2, 10), (8, 14)])
def test_packs_beside_each_other_change_nothing(beside, most, trials, task, provide):
    seen, alone_seen = [], []
    notebook, one_by_one = Notebook(), Notebook()
    train_trials(trials, provide, notebook, most=most, chunk=4, beside=beside, watch=seen.append)
    train_trials(trials, provide, one_by_one, most=most, chunk=4, beside=1, watch=alone_seen.append)
    assert max(p.running for p in alone_seen) <= 5 < max(p.running for p in seen) <= most
    assert set(notebook.results) == set(trials)
    assert (notebook.failures, notebook.held) == ({}, set())
    for trial, result in notebook.results.items():
        check(trial, result, task)
        other = one_by_one.results[trial]
        assert (result.epoch, result.train_loss, result.valid_loss) == (other.epoch, other.train_loss, other.valid_loss)


@pytest.mark.usefixtures("roomy")
def test_a_pack_that_breaks_beside_others_leaves_them_alone(trials, task, provide):
    class Fragile(Stacked):
        def advance(self, epochs):
            if self._first.trial.model is us.models.GPRGNN:
                raise RuntimeError("broken")
            return super().advance(epochs)

    notebook = Notebook()
    train_trials(trials, provide, notebook, most=12, beside=8, open_pack=Fragile)
    assert (notebook.failures, notebook.held) == ({}, set())
    for trial, result in notebook.results.items():
        check(trial, result, task)


@pytest.mark.usefixtures("ahead")
@pytest.mark.parametrize("chunk", [1, 64, 100])
def test_any_chunk_does(chunk, trials, task, provide, caplog):
    notebook = Notebook()
    train_trials(trials[:5], provide, notebook, chunk=chunk)
    for trial, result in notebook.results.items():
        check(trial, result, task)
    assert not caplog.records


@pytest.mark.usefixtures("roomy")
def test_memory_that_others_have_is_waited_for(trials, task, provide):
    opened = []

    class Crowded(Stacked):
        """Fits beside no other kind of model."""

        def __init__(self, members):
            kind = members[0].trial.model
            if any(other is not kind for other in opened):
                raise torch.OutOfMemoryError("CUDA out of memory")
            super().__init__(members)
            opened.append(kind)

        def advance(self, epochs):
            if self._first.trial.model not in opened:
                opened.append(self._first.trial.model)
            return super().advance(epochs)

    class Free(Notebook):
        def finish(self, ended):
            super().finish(ended)
            if len(self.results) % 5 == 0:  # the last of its kind
                opened.clear()

    notebook = Free()
    train_trials(trials, provide, notebook, most=20, beside=8, open_pack=Crowded)
    assert (notebook.failures, notebook.held) == ({}, set())
    assert len(notebook.results) == len(trials)
    for trial, result in notebook.results.items():
        check(trial, result, task)


@pytest.mark.usefixtures("roomy", "ahead")
def test_what_trains_beside_others_is_released_when_interrupted(trials, provide):
    def stop(progress):
        if progress.running > 8:
            raise KeyboardInterrupt

    notebook = Notebook()
    with pytest.raises(KeyboardInterrupt):
        train_trials(trials, provide, notebook, most=12, beside=8, chunk=1, watch=stop)
    assert (notebook.failures, notebook.held) == ({}, set())


def test_a_pack_is_waited_for_where_everything_ends():
    ended = []

    class Sent:
        def end(self):
            ended.append(True)

    turn = engine._in_the_meantime(Sent())
    next(turn)
    turn.close()
    assert ended == [True]


def test_halves_of_an_advance_are_the_whole(trials, provide):
    members = [provide(t) for t in trials[:5]]
    one, two = Stacked(members), Stacked(members)
    whole = one.advance(70)  # more than are kept at a time
    parts = []
    for epochs in (64, 6):
        two.begin(epochs)
        parts.append(two.end())
    np.testing.assert_array_equal(np.concatenate(parts), whole)
    with pytest.raises(ValueError, match="65 epochs ahead"):
        two.begin(65)


@pytest.mark.parametrize("kind", ["raised", "signal"])
def test_interrupted(kind, provide):
    some = [Trial(us.models.MLP, plan=train.Plan(epochs=4 if s < 2 else 400), seed=s) for s in range(6)]

    def stop(progress):
        if progress.done == 2:
            if kind == "raised":
                raise KeyboardInterrupt
            signal.raise_signal(signal.SIGINT)

    notebook = Notebook()
    before = signal.getsignal(signal.SIGINT)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            train_trials(some, provide, notebook, most=3, watch=stop)
    finally:
        signal.signal(signal.SIGINT, before)
    assert set(notebook.results) == set(some[:2])
    assert (notebook.failures, notebook.held) == ({}, set())


def test_time_that_is_up(provide):
    some = [Trial(us.models.MLP, plan=train.Plan(epochs=3), seed=s) for s in range(2)]
    notebook = Notebook()
    train_trials(some, provide, notebook, seconds=0.0)
    assert (notebook.results, notebook.held) == ({}, set())


def test_progress(trials, provide):
    seen = []
    notebook = Notebook()
    train_trials(trials, provide, notebook, most=4, watch=seen.append)
    last = seen[-1]
    assert (last.done, last.total, last.running, last.seconds_left) == (len(trials), len(trials), 0, 0.0)
    assert last.best[0] == max(r.valid_score for r in notebook.results.values())
    assert last.epochs_per_second > 0
    assert [p.done for p in seen] == sorted(p.done for p in seen)


def test_bad_numbers(provide):
    with pytest.raises(ValueError, match="most=0"):
        train_trials([], provide, Notebook(), most=0)
    with pytest.raises(ValueError, match="chunk=0"):
        train_trials([], provide, Notebook(), chunk=0)
    with pytest.raises(ValueError, match="beside=0"):
        train_trials([], provide, Notebook(), beside=0)


def test_slots_fit_into_memory(provide):
    assert _fitting(100, 2, 6, (20.0, 60.0), 1000.0) == 80  # ten bytes each, four fifths of a thousand
    assert _fitting(30, 2, 6, (20.0, 60.0), 1000.0) == 30
    assert _fitting(100, 2, 6, (2000.0, 6000.0), 1000.0) == 1
    assert _fitting(100, 2, 6, None, 1000.0) == 100
    member = provide(Trial(us.models.MLP, {"hidden": 4}))
    assert slots_for(member, Stacked, 1000) == 16
    peaks = _resident_peak(member, Stacked)
    assert peaks is None or min(peaks) >= 0

    def full(members):
        raise torch.OutOfMemoryError("CUDA out of memory")

    assert slots_for(member, full, 5) == 5  # small graphs are not measured
