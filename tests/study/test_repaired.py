"""What once went wrong for people who ran studies."""

import functools
import os

import numpy as np
import pytest
import torch
from torch import nn

import unspool as us
from unspool import datasets, study, train
from unspool.cli.study.file import table_of


@pytest.fixture(scope="module")
def data():
    return datasets.contextual_sbm(nodes=60, classes=2, seed=0)


def small(model=us.models.GCN, **more):
    return study.grid(model, **{"seed": range(2), "hidden": 4, "epochs": 4, **more})


def test_one_more_seed_for_one_setting_hides_no_other(data):
    store = study.Store(None)
    study.run(small(rate=0.01, epochs=30), data, store=store)
    study.run(small(rate=1e-5, epochs=30, seed=range(3)), data, store=store)
    found = study.Study(store)
    assert found.best().settings["rate"] == 0.01
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
    found = study.run([study.Trial(us.models.GCN, {"hidden": 4}, train.Plan(epochs=4, optimiser=m)) for m in makers], data, store=store)  # fmt: skip
    assert len({row.key for row in found.rows}) == 2


def test_an_optimiser_without_a_name_goes_into_no_file(data, tmp_path):
    class Maker:
        def __call__(self, groups, lr):
            return torch.optim.SGD(groups, lr=lr)

    plan = train.Plan(epochs=2, optimiser=Maker())
    with pytest.raises(ValueError, match="cannot be told from others in a file"):
        study.run([study.Trial(us.models.GCN, {"hidden": 4}, plan)], data, store=tmp_path / "s.db")


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
    assert study.Trial(made(1.0)).key("x") != study.Trial(made(0.0)).key("x")
    assert study.Trial(made(1.0)).key("x") == study.Trial(made(1.0)).key("x")


def test_one_trial_in_many_spellings_is_one():
    def key(**settings):
        return study.Trial(us.models.GCN, settings, seed=np.int64(1)).key("x")

    assert key(dropout=0) == key(dropout=0.0)
    assert key() == key(hidden=64, dropout=0.5, bias=True)
    assert key(hidden=8) != key()


def test_other_splits_of_the_same_data_stand_apart(data):
    store = study.Store(None)
    study.run(small(rate=0.01), data, store=store)
    other = data.with_split(lambda d: datasets.splits.random(d.labels, (0.5, 0.25, 0.25), seed=3))
    study.run(small(rate=0.01), other, store=store)
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
    assert {row.result.reason for row in found.rows} == {"diverged"}


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
    good = study.run(small(rate=0.05, epochs=30), data, store=file)
    poor = study.run(small(rate=1e-6, epochs=2), data, store=file)
    assert poor.best().settings["rate"] == 1e-6
    assert len(poor.rows) == len(poor.table) == 2
    assert len(study.Study.open(file).rows) == 4
    assert study.Study.open(file).best().settings == good.best().settings
    exported = poor.export(tmp_path / "poor.csv").read_text().splitlines()
    assert len(exported) == 3
    (outcome,) = study.evaluate([small(rate=1e-6, epochs=2)], data, store=file)
    assert outcome.test.mean == poor.best().test.mean


@pytest.mark.parametrize("name", ["macro-F1", "F1", "a-b-c", "- x -"])
def test_the_name_of_a_score_stays_whole(data, tmp_path, name):
    loss = train.Own(nn.functional.cross_entropy, lambda output, target: (output.argmax(-1) == target).float().mean(), name)  # fmt: skip
    file = tmp_path / "study.db"
    found = study.run(small(), data, store=file, loss=loss)
    assert found.table.score == found.best().score == study.Study.open(file).best().score == name
    assert table_of(file).score == name


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
