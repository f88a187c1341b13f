"""Laws of whole studies: reordered, out of room, with broken trials among good ones; the table is the same, and so is a network."""

import functools
import os
import random
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

import unspool as us
from unspool import datasets, identity, study, train
from unspool.errors import InputError
from unspool.study import Status, Store, StoreProblem, Study, train_trials
from unspool.study.study import StoreTracker, train_again
from unspool.train import Ending, LowerLevel, TaskKind, Trial, TrialLoader

pytestmark = pytest.mark.long


#: Float32, and batches of other widths: BLAS rounds differently, which moves losses by a few units in the seventh digit.
ROUNDING = 1e-5


class Fragile(nn.Module):
    """Raises when it is built, when it is called, or never."""

    def __init__(self, in_features, out_features, *, breaks="never"):
        super().__init__()
        if breaks == "built":
            raise RuntimeError("cannot be built")
        self.breaks, self.only = breaks, us.nn.Linear(in_features, out_features)

    def forward(self, x, graph):
        if self.breaks == "called":
            raise RuntimeError("cannot be called")
        return graph @ self.only(x)


@pytest.fixture(scope="module")
def data():
    return datasets.contextual_sbm(nodes=60, classes=2, seed=0)


@pytest.fixture(scope="module")
def trials(data):
    """Two kinds, two lengths: slots are refilled while others are at work."""
    space = us.study.grid(
        us.models.GCN, us.models.UGDGNN, seed=range(3), hidden=8, depth=2, dropout=[0.2, 0.5], epochs=[4, 9]
    )
    return space.trials(data.name)


def table(study):
    return {row.key: row.result for row in study.rows if row.status is Status.DONE}


def exact(result):
    return result.epoch, result.epochs, result.valid_score, result.test_score, result.ending


def check_same(found, wanted):
    assert found.keys() == wanted.keys()
    for key, result in found.items():
        assert exact(result) == exact(wanted[key])
        assert result.valid_loss == pytest.approx(wanted[key].valid_loss, rel=ROUNDING)
        assert result.train_loss == pytest.approx(wanted[key].train_loss, rel=ROUNDING)


@pytest.fixture(scope="module")
def wanted(trials, data):
    return table(us.study.run(trials, data, device="cpu"))


# -- in any order, in any batches ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("most", [1, 3, 7, 1024])
def test_the_table_does_not_depend_on_batches_and_order(most, trials, data, wanted):
    mixed = random.Random(most).sample(trials, len(trials))
    check_same(table(us.study.run(mixed, data, device="cpu", most=most)), wanted)


@pytest.mark.parametrize("chunk", [1, 4, 100])
def test_the_table_does_not_depend_on_when_one_looks(chunk, trials, data, wanted):
    loader = TrialLoader(data)
    tracker = StoreTracker(Store(None), trials, loader.record)
    train_trials(trials, loader.prepare, tracker, most=5, chunk=chunk)
    check_same(table(Study(tracker.store)), wanted)


def test_pieces_of_a_study_are_the_study(trials, data, wanted):
    store = Store(None)
    for some in (trials[5:9], trials[::2], trials):
        us.study.run(some, data, store=store, device="cpu", most=4)
    check_same(table(Study(store)), wanted)


# -- two datasets ------------------------------------------------------------------------------------------------------


def test_one_store_keeps_two_datasets(tmp_path, trials, data, wanted):
    other = datasets.contextual_sbm(nodes=50, classes=2, seed=1)
    some = trials[:6]
    us.study.run(some, data, store=tmp_path / "study.db", device="cpu")
    before = table(Study.open(tmp_path / "study.db"))
    us.study.run(some, other, store=tmp_path / "study.db", device="cpu")
    after = table(Study.open(tmp_path / "study.db"))
    assert len(after) == 12
    assert {key: after[key] for key in before} == before
    check_same(before, {key: wanted[key] for key in before})
    alone = table(us.study.run(some, other, device="cpu"))
    check_same({key: result for key, result in after.items() if key not in before}, alone)


# -- broken trials -----------------------------------------------------------------------------------------------------


def test_a_trial_that_raises_fails_alone(trials, data, wanted):
    fragile = us.study.grid(Fragile, seed=range(2), breaks=["never", "built", "called"], epochs=3)
    study = us.study.run([*fragile.trials(data.name), *trials], data, device="cpu")
    failed = {row.key: row for row in study.rows if row.status is Status.FAILED}
    assert sorted(row.message for row in failed.values()) == (
        ["RuntimeError: cannot be built"] * 2 + ["RuntimeError: cannot be called"] * 2
    )
    done = table(study)
    assert len(done) == len(trials) + 2
    check_same({key: done[key] for key in wanted}, wanted)
    us.study.run(fragile, data, store=study.store, device="cpu")  # what failed stays so until somebody asks
    assert len(table(study)) == len(done)


# -- a full disk -------------------------------------------------------------------------------------------------------


class Filling(Store):
    """Its disk is full after so many trials."""

    left = 10
    whole = 0

    def finish(self, pairs):
        self.left -= len(pairs)
        if self.left >= 0:
            self.whole += len(pairs)
        else:
            self._connection._sql.execute("PRAGMA max_page_count = 1")  # as many as there are
        super().finish(pairs)


def test_a_disk_that_fills_up_in_the_middle(tmp_path, trials, data, wanted):
    path = tmp_path / "study.db"
    many = us.study.grid(us.models.GCN, seed=range(60), hidden=4, epochs=2).trials(data.name)
    with Filling(path) as store, pytest.raises(StoreProblem, match=r"disk is full.*everything finished before is kept"):
        us.study.run([*trials, *many], data, store=store, device="cpu")
    kept = table(Study.open(path))
    assert 0 < store.whole <= len(kept) < len(trials) + len(many)
    study = us.study.run([*trials, *many], data, store=path, device="cpu")
    done = table(study)
    assert len(done) == len(trials) + len(many)
    assert {key: done[key] for key in kept} == kept
    check_same({key: done[key] for key in wanted}, wanted)


def test_a_store_that_found_room_again_goes_on(tmp_path, trials, data, wanted):
    many = us.study.grid(us.models.GCN, seed=range(60), hidden=4, epochs=2).trials(data.name)
    with Filling(tmp_path / "study.db") as store:
        with pytest.raises(StoreProblem, match="disk is full"):
            us.study.run([*trials, *many], data, store=store, device="cpu")
        store.left = 10**9
        store._connection._sql.execute("PRAGMA max_page_count = 1000000")
        done = table(us.study.run([*trials, *many], data, store=store, device="cpu"))
    assert len(done) == len(trials) + len(many)
    check_same({key: done[key] for key in wanted}, wanted)


# -- what once went wrong for people who ran studies ---------------------------------------------------------------------


def small(model=us.models.GCN, **more):
    return study.grid(model, **{"seed": range(2), "hidden": 4, "epochs": 4, **more})


def test_one_more_seed_for_one_setting_hides_no_other(data):
    store = study.Store(None)
    study.run(small(lr=0.01, epochs=30), data, store=store)
    study.run(small(lr=1e-5, epochs=30, seed=range(3)), data, store=store)
    found = study.Study(store)
    assert found.best().settings["lr"] == 0.01
    assert "settings have 2 to 3 trials each" in found.best().note


def test_losses_of_ones_own_are_told_apart(data):
    store = study.Store(None)
    for factor in (1.0, 5.0):

        def loss(output, target, factor=factor):
            return factor * nn.functional.cross_entropy(output, target)

        study.run(small(seed=0), data, store=store, loss=loss)
    one, other = (row.result.valid_loss for row in study.Study(store).rows)
    assert one != other


def test_optimisers_with_other_settings_are_told_apart(data):
    store = study.Store(None)
    makers = [functools.partial(torch.optim.SGD, momentum=m) for m in (0.0, 0.95)]
    found = study.run([Trial(us.models.GCN, {"hidden": 4}, train.TrainConfig(epochs=4, optimiser=m)) for m in makers], data, store=store)  # fmt: skip
    assert len({row.key for row in found.rows}) == 2


def test_an_optimiser_without_a_name_goes_into_no_file(data, tmp_path):
    class Maker:
        def __call__(self, groups, lr):
            return torch.optim.SGD(groups, lr=lr)

    config = train.TrainConfig(epochs=2, optimiser=Maker())
    with pytest.raises(ValueError, match="cannot be distinguished from others in a file"):
        study.run([Trial(us.models.GCN, {"hidden": 4}, config)], data, store=tmp_path / "s.db")


def test_an_optimiser_may_have_any_name(data):
    def own_sgd(groups, lr):
        return torch.optim.SGD(groups, lr=lr)

    trial = Trial(us.models.GCN, {"hidden": 4}, train.TrainConfig(epochs=2, optimiser=own_sgd))
    assert study.run([trial], data).rows[0].result is not None


def test_lambdas_are_told_apart_by_what_they_do(data, tmp_path):
    makers = [
        lambda groups, lr: torch.optim.SGD(groups, lr=lr),
        lambda groups, lr: torch.optim.SGD(groups, lr=10 * lr),
    ]
    found = study.run(small(optimiser=makers), data, store=tmp_path / "s.db")
    assert [best.n for best in found.table.groups()] == [2, 2]
    assert len({best.loss.mean for best in found.table.groups()}) == 2


def made(factor):
    class Mine(nn.Module):
        def __init__(self, in_features, out_features):
            super().__init__()
            self.layer = us.nn.Linear(in_features, out_features)

    Mine.forward = eval(f"lambda self, x, graph: {factor} * self.layer(x)")
    return Mine


def test_a_changed_model_is_another_one():
    assert Trial(made(1.0)).key("x") != Trial(made(0.0)).key("x")
    assert Trial(made(1.0)).key("x") == Trial(made(1.0)).key("x")


def test_one_trial_in_many_spellings_is_one():
    def key(**settings):
        return Trial(us.models.GCN, settings, seed=np.int64(1)).key("x")

    assert key(dropout=0) == key(dropout=0.0)
    assert key() == key(hidden=64, dropout=0.5, bias=True)
    assert key(hidden=8) != key()


def test_other_splits_of_the_same_data_stand_apart(data):
    store = study.Store(None)
    study.run(small(lr=0.01), data, store=store)
    other = data.with_split(lambda d: datasets.splits.random(d.labels, (0.5, 0.25, 0.25), seed=3))
    study.run(small(lr=0.01), other, store=store)
    found = study.Study(store)
    assert len({one["data"] for one in found.table.records()}) == 2
    with pytest.raises(us.IncompatibleError, match="cannot be compared"):
        found.best()


def test_measures_are_words_or_refused(data):
    found = study.run(small(), data)
    assert found.best(by="score").valid.mean == found.best().valid.mean
    for wrong in ("test_score", "accuracy", None):
        with pytest.raises(ValueError, match="'score' or 'loss'"):
            found.best(by=wrong)
        with pytest.raises(ValueError, match="'score' or 'loss'"):
            found.importance(target=wrong)


class Broken(nn.Module):
    """Fails as long as something outside of it is not there."""

    def __init__(self, in_features, out_features):
        super().__init__()
        self.layer = nn.Linear(in_features, out_features)

    def forward(self, x, graph):
        if "UNSPOOL_REPAIRED" not in os.environ:
            raise TypeError("no such thing")
        return self.layer(x)


def test_failures_are_seen_and_can_be_tried_again(data, monkeypatch):
    store = study.Store(None)
    space = study.grid(Broken, seed=range(2), epochs=2)
    found = study.run(space, data, store=store)
    assert "2 of 2 failed (TypeError: no such thing)" in str(found)
    with pytest.raises(us.IncompatibleError, match="2 of 2 failed"):
        found.best()
    monkeypatch.setenv("UNSPOOL_REPAIRED", "yes")
    assert len(study.run(space, data, store=store).table) == 0
    assert len(study.run(space, data, store=store, retry_failed=True).table) == 2


def test_outputs_that_are_no_numbers_have_no_score(data):
    class Leaving(nn.Module):
        def __init__(self, in_features, out_features):
            super().__init__()
            self.layer = us.nn.Linear(in_features, out_features)

        def forward(self, x, graph):
            out = self.layer(x)
            return out if self.training else out * float("nan")

    found = study.run(study.grid(Leaving, seed=[0, 1], epochs=3), data)
    assert {row.result.ending for row in found.rows} == {Ending.DIVERGED}


def test_notebooks_show_a_few_lines(data):
    found = study.run(small(dropout=[0.1, 0.2, 0.3]), data)
    for thing in (found, found.table, found.best(), found.compare({"dropout": 0.1}, {"dropout": 0.3})):
        assert repr(thing) == str(thing)
        assert len(repr(thing)) < 2000


def test_bad_wishes_of_run_are_sentences(data):
    with pytest.raises(ValueError, match="seconds=-1"):
        study.run(small(), data, seconds=-1)
    with pytest.raises((ValueError, RuntimeError), match="foo"):
        study.run(small(), data, device="foo")
    with pytest.raises(ValueError, match="n=-1"):
        study.run(small(), data).table.leaders(-1)


def test_a_run_answers_for_its_own_trials_alone(data, tmp_path):
    file = tmp_path / "study.db"
    good = study.run(small(lr=0.05, epochs=30), data, store=file)
    poor = study.run(small(lr=1e-6, epochs=2), data, store=file)
    assert poor.best().settings["lr"] == 1e-6
    assert len(poor.rows) == len(poor.table) == 2
    assert len(study.Study.open(file).rows) == 4
    assert study.Study.open(file).best().settings == good.best().settings
    exported = poor.export(tmp_path / "poor.csv").read_text().splitlines()
    assert len(exported) == 3
    (outcome,) = study.evaluate([small(lr=1e-6, epochs=2)], data, store=file)
    assert outcome.test.mean == poor.best().test.mean


@pytest.mark.parametrize("name", ["macro-F1", "F1", "a-b-c", "- x -"])
def test_the_name_of_a_score_stays_whole(data, tmp_path, name):
    loss = train.Own(nn.functional.cross_entropy, lambda output, target: (output.argmax(-1) == target).float().mean(), name)  # fmt: skip
    file = tmp_path / "study.db"
    found = study.run(small(), data, store=file, loss=loss)
    assert found.best().score == study.Study.open(file).best().score == name
    assert {row.data.score for row in study.Study.open(file).rows} == {name}


def scaled(factor):
    class Mine(nn.Module):
        def __init__(self, in_features, out_features):
            super().__init__()
            self.layer = us.nn.Linear(in_features, out_features)

        def forward(self, x, graph):
            return factor * self.layer(x)

    return Mine


def test_a_model_that_was_changed_meanwhile_is_mixed_with_nothing(data, tmp_path):
    file = tmp_path / "study.db"
    study.run(study.grid(scaled(1.0), seed=range(3), epochs=4), data, store=file)
    found = study.run(study.grid(scaled(-2.0), seed=range(2, 4), epochs=4), data, store=file)
    assert "code" not in found.table.columns
    both = study.Study.open(file).table
    assert sorted(best.n for best in both.groups()) == [2, 3]
    assert len({best.settings["code"] for best in both.groups()}) == 2
    assert len(both.filter(code=both.groups()[0].settings["code"])) == 3
    assert "code" in str(both)


# -- what is predicted ---------------------------------------------------------------------------------------------------


def test_links_are_studied_through_a_loader(data, tmp_path):
    loader = TrialLoader(data, kind=TaskKind.LINKS)
    found = study.run(small(), loader, store=tmp_path / "study.db")
    assert {row.status for row in found.rows} == {Status.DONE}
    about = {(row.data.score, row.data.kind, row.data.fingerprint) for row in found.rows}
    assert about == {("AUC", "links", loader.fingerprint)}
    for row in found.rows:
        trial = Trial.from_plain(row.trial)
        _, run = train.train_trial(trial, loader)
        assert row.result.valid_loss == run.best.valid_loss  # alone or in a study, to the last bit
        assert row.result.test_score == run.best.test_score
    assert len({row.result.valid_loss for row in found.rows}) == 2  # each seed has its own links
    both = study.run(small(), data, store=tmp_path / "study.db")  # classes of the same data are something else
    assert {row.data.score for row in both.rows} == {"accuracy"}
    assert len(study.Study.open(tmp_path / "study.db").rows) == 4


@pytest.mark.parametrize(
    "kind", [TaskKind.CLASSES, TaskKind.BINARY, TaskKind.NUMBERS, TaskKind.RANKING], ids=lambda kind: kind.name
)
def test_every_kind_of_task_is_what_it_is_alone(data, kind):
    if kind in (TaskKind.NUMBERS, TaskKind.RANKING):
        data = datasets.from_tensors(data.edge_index, data.features, targets=10 * data.features[:, 0] + 3)
    loader = TrialLoader(data, kind=kind)
    found = study.run(small(us.models.GPRGNN, seed=range(3)), loader)
    assert {row.data for row in found.rows} == {loader.record}
    assert {(row.data.score, row.data.kind) for row in found.rows} == {(loader.score, kind.name.lower())}
    for row in found.rows:
        _, run = train.train_trial(Trial.from_plain(row.trial), loader)
        assert row.result.epoch == run.best.epoch
        assert row.result.valid_loss == pytest.approx(run.best.valid_loss, rel=ROUNDING)
        assert row.result.test_score == pytest.approx(run.best.test_score, rel=ROUNDING)


def test_a_loss_that_would_not_count_is_refused(data):
    for wrong in (
        lambda: study.run(small(), TrialLoader(data), loss=train.Binary()),
        lambda: study.evaluate([small()], TrialLoader(data), loss=train.Binary()),
        lambda: TrialLoader(data, kind=TaskKind.LINKS, loss=train.Binary()),
    ):
        with pytest.raises(InputError) as caught:
            wrong()
        assert caught.value.argument == "loss"


def test_lower_levels_are_compared_in_one_study(data):
    space = study.grid(us.models.APPNP, seed=range(2), hidden=4, depth=2, epochs=4, lower_level=list(LowerLevel))
    found = study.run(space, data)
    assert found.table.varied == ("lower_level", "seed")
    assert [best.settings["lower_level"] for best in found.table.groups()] == ["unrolled", "exact"]
    for row in found.rows:
        trial = Trial.from_plain(row.trial)
        model, run = train.train_trial(trial, data)
        assert model.solved_exactly is (trial.config.lower_level is LowerLevel.EXACT)
        assert row.result.valid_loss == pytest.approx(run.best.valid_loss, rel=ROUNDING)
    with pytest.raises(ValueError, match="GPRGNN cannot be solved exactly"):
        study.run(small(us.models.GPRGNN, lower_level=LowerLevel.EXACT), data)


class Drawing(nn.Module):
    """Its dropout is torch's own, which draws from torch's generator."""

    def __init__(self, in_features, out_features, *, rate=0.5):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(in_features, 6), nn.Dropout(rate), nn.Linear(6, out_features))

    def forward(self, x, graph):
        return graph @ self.body(x)


@pytest.mark.parametrize("most", [1, 1024])
def test_modules_that_draw_are_what_they_are_alone(data, most, caplog):
    found = study.run(study.grid(Drawing, seed=range(3), rate=[0.2, 0.5], epochs=6), data, most=most)
    assert {row.status for row in found.rows} == {Status.DONE}
    for row in found.rows:
        _, run = train.train_trial(Trial.from_plain(row.trial, Drawing), data)
        exactly = (run.best.epoch, run.best.train_loss, run.best.valid_loss, run.best.test_score)
        result = row.result
        assert (result.epoch, result.train_loss, result.valid_loss, result.test_score) == exactly
    assert ("goes on one by one" in caplog.text) is (most > 1)


# -- the network of a row ------------------------------------------------------------------------------------------------


def score_of(model, loader, row):
    """The score of a network on the test nodes of a row."""
    task = loader.task(row.trial["seed"], row.trial["normalise_rows"])
    with torch.no_grad():
        read = task.loss.read(model(task.x, task.graph), task.test)
    return float(task.loss.score(read, task.target[task.test]))


#: Trials that are stacked, and trials that train alone.
KINDS = {
    "stacked": lambda: study.grid(us.models.GCN, us.models.APPNP, seed=range(3), hidden=4, epochs=20, dropout=[0.2, 0.5]),
    "stacked, rows scaled": lambda: [Trial(us.models.GCN, {"hidden": 4}, train.TrainConfig(epochs=9), s, normalise_rows=True) for s in range(3)],
    "stopped early": lambda: study.grid(us.models.GPRGNN, seed=range(3), hidden=4, lr=0.2, epochs=60, patience=4),
    "a single trial": lambda: study.grid(us.models.UGDGNN, seed=2, hidden=4, depth=2, epochs=12),
    "a minimiser": lambda: study.grid(us.models.PPNP, seed=range(2), hidden=4, epochs=9),
    "solved exactly": lambda: study.grid(us.models.APPNP, seed=range(2), hidden=4, epochs=9, lower_level=LowerLevel.EXACT),
    "another optimiser": lambda: study.grid(us.models.MLP, seed=range(2), hidden=4, lr=0.1, epochs=9, optimiser=torch.optim.SGD),
    "a setting that is an object": lambda: study.grid(us.models.AirGNN, seed=0, hidden=4, epochs=5, adjoint=us.Checkpointed(every=2)),
    "torch's dropout": lambda: study.grid(Drawing, seed=range(2), epochs=9),
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_the_network_of_a_row_has_its_numbers(data, kind):
    found = study.run(KINDS[kind](), data, device="cpu")
    own = Drawing if kind == "torch's dropout" else None
    for row in found.rows:
        trial, model, run = train_again(row, found.loader, model=own)
        assert trial.key(row.data.fingerprint) == row.key
        assert run.best.epoch == row.result.epoch
        assert run.best.valid_loss == pytest.approx(row.result.valid_loss, rel=2e-3)
        assert not model.training
        assert score_of(model, found.loader, row) == pytest.approx(row.result.test_score, abs=1e-6)
        again = found.model(row)  # the study knows its trials, and their classes
        assert all(torch.equal(a, b) for a, b in zip(model.parameters(), again.parameters(), strict=True))


def test_the_network_of_links_has_their_numbers(data):
    found = study.run(small(epochs=9), TrialLoader(data, kind=TaskKind.LINKS))
    for row in found.rows:
        assert score_of(found.model(row), found.loader, row) == pytest.approx(row.result.test_score, abs=1e-6)


def test_networks_are_found_by_number(data):
    found = study.run(small(seed=range(3)), data, device="cpu")
    one, other = found.model(2), found.model(found.rows[1])
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), other.parameters(), strict=True))
    assert found.model(np.int64(1)).settings == found.model(1).settings
    for wrong in (0, 4, -1, "1", 1.0, True, None, [1]):
        with pytest.raises(InputError) as caught:
            found.model(wrong)
        assert (caught.value.argument, caught.value.value) == ("row", wrong)


def test_a_study_that_was_opened_asks_for_its_data(data, tmp_path):
    file = tmp_path / "study.db"
    before = study.run(small(epochs=9), data, store=file, device="cpu")
    opened = study.Study.open(file)
    row = opened.rows[0]
    with pytest.raises(InputError) as caught:
        opened.model(row)
    assert caught.value.argument == "data"
    assert score_of(opened.model(row, data=data), before.loader, row) == pytest.approx(row.result.test_score, abs=1e-6)


def test_a_loader_brings_back_what_was_predicted(data, tmp_path):
    file, loader = tmp_path / "study.db", TrialLoader(data, kind=TaskKind.LINKS)
    study.run(small(epochs=9), loader, store=file)
    opened = study.Study.open(file)
    with pytest.raises(us.IncompatibleError, match="give the data, the split and the loss"):
        opened.model(1, data=data)
    row = opened.rows[0]
    assert score_of(opened.model(row, data=loader), loader, row) == pytest.approx(row.result.test_score, abs=1e-6)


def test_data_may_be_named(tmp_path):
    file = tmp_path / "study.db"
    study.run(study.grid(us.models.SGC, seed=0, epochs=2), "citeseer", store=file, device="cpu")
    row = study.Study.open(file).rows[0]
    assert (row.data.name, row.data.source) == ("citeseer", {"dataset": "citeseer"})
    assert study.Study.open(file).model(1, data=row.data.source["dataset"]).settings["depth"] == 2


def other_data(data):
    return {
        "other data": datasets.contextual_sbm(nodes=60, classes=2, seed=1),
        "another split": data.with_split(lambda d: datasets.splits.random(d.labels, (0.5, 0.25, 0.25), seed=3)),
        "other features": data.row_normalised(),
    }


@pytest.mark.parametrize("what", ["other data", "another split", "other features"])
def test_other_data_are_refused(data, what):
    found = study.run(small(), data, device="cpu")
    wrong = other_data(data)[what]
    with pytest.raises(us.IncompatibleError, match=r"trial 1 was trained on .* with the fingerprint") as caught:
        found.model(1, data=wrong)
    assert found.rows[0].data.fingerprint in str(caught.value)
    assert TrialLoader(wrong).fingerprint in str(caught.value)


def test_another_loss_is_refused(data):
    found = study.run(small(), data, device="cpu")
    for loader in (TrialLoader(data, kind=TaskKind.BINARY), TrialLoader(data, kind=TaskKind.LINKS)):
        with pytest.raises(us.IncompatibleError, match="give the data, the split and the loss"):
            train_again(found.rows[0], loader)


def halved(groups, lr):
    return torch.optim.SGD(groups, lr=lr / 2)


@pytest.fixture
def kept(data, tmp_path):
    """A study that was run, and the same from its file, as another process would have it."""

    def run(space):
        found = study.run(space, data, store=tmp_path / "study.db", device="cpu")
        return found, study.Study.open(tmp_path / "study.db")

    return run


@pytest.mark.parametrize("optimiser", [halved, functools.partial(torch.optim.SGD, momentum=0.5)])
def test_an_optimiser_that_files_know_by_name_is_refused_where_only_the_file_is(data, optimiser, kept):
    found, opened = kept(small(optimiser=optimiser))
    row = found.rows[0]
    assert score_of(found.model(1), found.loader, row) == pytest.approx(row.result.test_score, abs=1e-6)
    with pytest.raises(us.IncompatibleError, match="cannot be built again from a file"):
        opened.model(1, data=data)


class Shaped(nn.Module):
    """Takes a function, which no file holds."""

    def __init__(self, in_features, out_features, act=torch.relu):
        super().__init__()
        self.only, self.act = us.nn.Linear(in_features, out_features), act

    def forward(self, x, graph):
        return self.act(self.only(x))


def test_a_setting_that_files_know_by_name_is_refused_where_only_the_file_is(data, kept):
    found, opened = kept(study.grid(Shaped, seed=0, epochs=2, act=torch.tanh))
    row = found.rows[0]
    assert found.model(1).act is torch.tanh
    assert score_of(found.model(1), found.loader, row) == pytest.approx(row.result.test_score, abs=1e-6)
    with pytest.raises(
        us.IncompatibleError, match="the setting act of this trial is an object that files know by name only"
    ):
        opened.model(1, data=data, model=Shaped)


def test_a_class_of_ones_own_must_be_given_where_only_the_file_is(data, kept):
    found, opened = kept(study.grid(Fragile, seed=0, epochs=2))
    assert isinstance(found.model(1), Fragile)
    with pytest.raises(us.IncompatibleError, match="not imported just because a file names it"):
        opened.model(1, data=data)
    with pytest.raises(us.IncompatibleError, match=r"holds a model .*Fragile, and not .*Shaped"):
        opened.model(1, data=data, model=Shaped)
    assert isinstance(opened.model(1, data=data, model=Fragile), Fragile)


def test_code_that_has_changed_is_refused(data, monkeypatch, kept):
    found, opened = kept(study.grid(Fragile, seed=0, epochs=2))
    monkeypatch.setattr(Fragile, "forward", lambda self, x, graph: -self.only(x))
    with pytest.raises(us.IncompatibleError, match="the code of Fragile has changed since"):
        opened.model(1, data=data, model=Fragile)
    with pytest.raises(us.IncompatibleError, match="the code of Fragile has changed since"):  # in the same process, too
        found.model(1)


class Tuned(Fragile):
    gain = 1.0

    def forward(self, x, graph):
        return self.gain * super().forward(x, graph)


def test_code_that_has_changed_by_less_than_rounding_is_refused(data, monkeypatch):
    found = study.run(study.grid(Tuned, seed=0, epochs=2), data, device="cpu")
    monkeypatch.setattr(Tuned, "gain", 1.00001)
    with pytest.raises(us.IncompatibleError, match="the code of Tuned has changed since"):
        found.model(1)
    monkeypatch.undo()
    assert found.model(1) is not None


class Restless(Fragile):
    def forward(self, x, graph):
        return super().forward(x, graph) + random.random()


def test_a_model_that_never_does_the_same_twice_is_not_blamed_on_the_machine(data):
    found = study.run(study.grid(Restless, seed=0, epochs=2), data, device="cpu")
    row = replace(found.rows[0], result=replace(found.rows[0].result, valid_loss=5.0))
    with pytest.raises(
        us.IncompatibleError, match=r"or Restless computes with something .* \(random numbers of its own"
    ):
        found.model(row)


def test_numbers_of_another_version_are_refused(data, monkeypatch, kept):
    _, opened = kept(small())
    monkeypatch.setattr(identity, "NUMERICS", identity.NUMERICS + 1)
    with pytest.raises(us.IncompatibleError, match="the code of GCN has changed since"):
        opened.model(1, data=data)


@pytest.mark.parametrize("change", [{"epoch": 1}, {"valid_loss": 0.5}, {"valid_loss": float("nan")}])
def test_other_numbers_are_refused(data, change):
    found = study.run(small(epochs=20, lr=0.05), data, device="cpu")
    row = found.rows[0]
    assert row.result.epoch > 1
    other = replace(row, result=replace(row.result, **change))
    with pytest.raises(us.IncompatibleError, match="this machine rounds differently; train it where the study ran"):
        found.model(other)
    close = replace(row, result=replace(row.result, valid_loss=row.result.valid_loss * (1 + 1e-3)))
    assert found.model(close) is not None


def test_a_trial_that_diverged_has_no_network(data):
    found = study.run(small(us.models.UGDGNN, lr=1e30, epochs=9), data, device="cpu")
    assert {row.result.ending for row in found.rows} == {Ending.DIVERGED}
    with pytest.raises(train.Diverged):
        found.model(1)


def test_a_trial_that_nobody_has_trained_has_a_network_too(data):
    found = study.run(small(), data, device="cpu", seconds=1e-9)
    assert {row.status for row in found.rows} == {Status.WAITING}
    trial, model, run = train_again(found.rows[0], found.loader)
    assert len(run.history) == trial.config.epochs
    assert not model.training


def test_a_joined_study_knows_its_data(data):
    store = study.Store(None)
    one, other = (study.run(small(seed=seed), data, store=store, device="cpu") for seed in (0, 1))
    both = one.joined(other)
    assert len(both.rows) == 2
    assert Study(store, keys=()).joined(other).model(2) is not None
    assert both.model(2) is not None
    assert len(Study(store).joined(one).rows) == 2  # all and some are all
