"""A model of one's own with two settings has everything that a named one has."""

import json

import numpy as np
import pytest
import torch

import unspool as us
from unspool.models.registry import name_of
from unspool.train import TrainConfig, Trial, TrialLoader, train_trial
from unspool.train.run_folder import RunFolder


class Calm(us.models.Model):
    """A linear layer, smoothed."""

    pull: float = us.setting(0.1, "how strongly a node keeps its own signal", above=0, at_most=1, search=us.study.uniform(0.1, 0.9))  # fmt: skip
    depth: int = us.setting(4, "number of layers", at_least=1)

    def build(self):
        self.p_pre = us.nn.Linear(self.in_features, self.out_features)
        problem = us.Fidelity(self.pull) + us.Smoothness(1 - self.pull)
        self.propagation = us.unroll(problem, us.GradientDescent(step=0.5), self.depth)


CONFIG = TrainConfig(epochs=6, lr=0.05)


@pytest.fixture(scope="module")
def data():
    return us.datasets.contextual_sbm(nodes=60, classes=3, seed=0)


@pytest.fixture(scope="module")
def loader(data):
    return TrialLoader(data)


def problem(call):
    with pytest.raises(us.InputError) as caught:
        call()
    return caught.value


@pytest.mark.parametrize(
    ("given", "argument", "value", "expected"),
    [
        ({"pull": 0}, "pull", 0, "a number in (0, 1]"),
        ({"pull": "0.1"}, "pull", "0.1", "a number in (0, 1]"),
        ({"depth": 2.5}, "depth", 2.5, "a whole number of at least 1"),
    ],
)
def test_every_door_checks_its_settings(data, given, argument, value, expected):
    def grid():
        return us.study.run(us.study.grid(Calm, seed=0, epochs=1, **given), data, device="cpu")

    def trained():
        return train_trial(Trial(Calm, given, CONFIG), data)

    def fitted():
        return us.NodeClassifier(Calm, epochs=1, **given).fit(data.features, data.labels, graph=data.graph)

    for call in (lambda: Calm(3, 2, **given), trained, grid, fitted):
        found = problem(call)
        assert (found.argument, found.value, found.expected) == (argument, value, expected)


def test_it_keeps_the_laws_of_models():
    us.testing.check_model(lambda: Calm(4, 3, pull=0.3), features=4)


def test_it_computes_what_it_says():
    graph, x = us.graph.ring(5), torch.eye(5)
    model = Calm(5, 2, pull=0.3, depth=3).eval()
    h = z = model.p_pre(x)
    for _ in range(3):
        h = 0.7 * (graph @ h) + 0.3 * z
    assert torch.allclose(model(x, graph), h, atol=1e-6)
    assert str(model.objective) == "0.3 ‖H − X‖²  +  0.7 ‖B H‖²"
    assert model.solve_exactly().solved_exactly


def test_a_study_walks_over_its_settings(data):
    space = us.study.grid(Calm, us.models.SGC, seed=range(2), pull=[0.1, 0.5], depth=[1, 2], epochs=3)
    assert len(space) == 2 * (4 + 2)
    found = us.study.run(space, data, device="cpu")
    mine = [row for row in found.rows if row.trial["model"] == name_of(Calm)]
    assert {(row.trial["settings"]["pull"], row.trial["settings"]["depth"]) for row in mine} == {
        (0.1, 1), (0.1, 2), (0.5, 1), (0.5, 2),
    }  # fmt: skip
    for row in mine[:2]:  # a stack of trials is the single trials
        trial = Trial.from_plain(row.trial, Calm)
        assert row.result.test_score == pytest.approx(train_trial(trial, data)[1].best.test_score)


def test_it_is_searched_where_it_says(data):
    space = us.study.random(Calm, count=4, epochs=1, preset=None)
    drawn = [trial.settings["pull"] for trial in space.trials("mine")]
    assert all(0.1 <= pull <= 0.9 for pull in drawn)
    assert len(set(drawn)) == 4


def test_its_settings_are_typed_and_shown():
    schema = Calm.schema
    assert schema["pull"].parse("0.25") == 0.25
    assert schema["depth"].parse("7") == 7
    assert problem(lambda: schema["depth"].parse("many")).expected == schema["depth"].typed
    assert str(Trial(Calm, {"pull": 0.25, "depth": 7})).startswith("Calm(pull=0.25, depth=7), lr 0.01")


def test_it_is_saved_and_comes_back_where_it_is_named(tmp_path):
    x, graph = torch.eye(5), us.graph.ring(5)
    model = Calm(5, 2, pull=0.3).eval()
    us.save(model, tmp_path, metrics={"test": 0.5})
    card = json.loads((tmp_path / "model.json").read_text())
    assert card["model"] == name_of(Calm)
    assert card["settings"] == {"pull": 0.3, "depth": 4}
    with pytest.raises(us.IncompatibleError, match="is not imported just because a file names it"):
        us.load(tmp_path)
    again = us.load(tmp_path, model=Calm)
    assert type(again) is Calm
    assert again.settings == model.settings
    assert again.card["metrics"] == {"test": 0.5}
    assert torch.equal(again(x, graph), model(x, graph))
    with pytest.raises(us.IncompatibleError, match="and not GCN"):
        us.load(tmp_path, model=us.models.GCN)


def test_a_solved_one_comes_back_solved(tmp_path):
    x, graph = torch.eye(5), us.graph.ring(5)
    model = Calm(5, 2).eval().solve_exactly()
    us.save(model, tmp_path)
    again = us.load(tmp_path, model=Calm)
    assert again.solved_exactly
    assert torch.equal(again(x, graph), model(x, graph))


def test_a_job_of_it_is_resumed_from_its_folder(loader, tmp_path):
    runs = RunFolder(tmp_path, Trial(Calm, {"pull": 0.3}, CONFIG), loader)
    run = runs.train(0)
    assert runs.finished(0) == run.best.test_score
    other = RunFolder(tmp_path, Trial(Calm, {"pull": 0.4}, CONFIG), loader)
    with pytest.raises(us.IncompatibleError, match=r"was trained with pull 0\.3, not 0\.4"):
        other.finished(0)
    assert us.load(runs.place(0), model=Calm).pull == 0.3


def test_its_keys_tell_its_settings_apart(loader):
    def key(**settings):
        return Trial(Calm, settings).key(loader.fingerprint)

    assert key() == key(pull=0.1) == key(depth=4, pull=0.1)
    assert key(pull=1) == key(pull=1.0) == key(pull=np.float64(1.0))
    assert len({key(), key(pull=0.2), key(depth=5), Trial(us.models.SGC).key(loader.fingerprint)}) == 4


def test_another_default_is_another_trial(loader):
    def sibling(**changes):
        return type("Calm", (Calm,), {"__module__": Calm.__module__, **changes})

    assert Trial(sibling(depth=5)).key("") != Trial(sibling()).key("")


def test_an_estimator_trains_it(data):
    clf = us.NodeClassifier(Calm, pull=0.3, epochs=40, lr=0.1).fit(data.features, data.labels, graph=data.graph)
    assert clf.model_.pull == 0.3
    assert clf.get_params()["pull"] == 0.3
    assert clf.score(data.features, data.labels) > 0.5


def test_parts_of_it_go_to_a_named_model_and_back_from_a_file(tmp_path):
    """The file names two classes: a named one, and the one that its parts came from."""
    x, graph = torch.eye(5), us.graph.ring(5)
    model = Calm(5, 2, pull=0.3).eval()
    richer = us.models.UGDGNN.from_model(model)
    assert torch.allclose(richer(x, graph), model(x, graph), atol=1e-6)
    us.save(richer, tmp_path)
    with pytest.raises(us.IncompatibleError, match="is not imported just because a file names it"):
        us.load(tmp_path)
    again = us.load(tmp_path, model=Calm)
    assert type(again) is us.models.UGDGNN
    assert torch.equal(again(x, graph), richer(x, graph))
