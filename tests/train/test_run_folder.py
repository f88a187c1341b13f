"""The folder of a job: a model for each seed, whole or not there; what is finished, what goes on, and what is another job's."""

import csv
import os
import signal
from dataclasses import asdict

import pytest
import torch

import unspool as us
from unspool import datasets, train
from unspool.models.pretrained import CARD, HISTORY, read_card, write_card
from unspool.train import Ending, Stop, TaskKind, TrainConfig, Trial, TrialLoader
from unspool.train.run_folder import SNAPSHOT, RunFolder

CONFIG = TrainConfig(epochs=8)
TRIAL = Trial(us.models.GCN, {"hidden": 8}, CONFIG)


@pytest.fixture(autouse=True)
def listening():
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(scope="module")
def data():
    return datasets.contextual_sbm(nodes=60, classes=3, seed=0)


@pytest.fixture(scope="module")
def loader(data):
    return TrialLoader(data, source={"dataset": "contextual_sbm"})


def interrupt(at):
    def watch(now, best):
        if now.epoch == at:
            os.kill(os.getpid(), signal.SIGINT)

    return watch


def test_a_seed_that_cannot_be_trained_leaves_no_folder(data, tmp_path):
    runs = RunFolder(tmp_path, Trial(us.models.PPNP), TrialLoader(data))
    with pytest.raises(us.IncompatibleError):
        runs.train(0, spread=us.graph.Rows())
    assert not runs.place(0).exists()


def test_a_seed_is_trained_kept_and_known_as_finished(loader, tmp_path):
    runs = RunFolder(tmp_path, TRIAL, loader, {"hardware": "a machine"})
    assert runs.finished(2) is None
    run = runs.train(2)
    expected_model, expected = train.train_trial(TRIAL.with_seed(2), loader)
    assert run.history == expected.history
    assert runs.finished(2) == run.best.test_score
    assert runs.finished(3) is None
    model = us.load(runs.place(2))
    assert all(
        torch.equal(a, b)
        for a, b in zip(model.state_dict().values(), expected_model.state_dict().values(), strict=True)
    )
    assert sorted(p.name for p in runs.place(2).iterdir()) == sorted([CARD, HISTORY, model.card["weights"]])
    assert us.load(tmp_path).card == model.card  # the only seed


def test_the_card_says_everything(data, loader, tmp_path):
    runs = RunFolder(tmp_path, TRIAL, loader, {"hardware": "a machine"})
    run = runs.train(2)
    card, trial = read_card(runs.place(2)), TRIAL.with_seed(2)
    assert card["trial"] == trial.to_plain()
    assert card["key"] == trial.key(loader.fingerprint)
    assert Trial.from_plain(card["trial"]).key(card["data"]["fingerprint"]) == card["key"]
    assert card["data"] == {
        "name": data.name, "hash": data.hash, "fingerprint": loader.fingerprint, "split": loader.split(2).hash,
        "split_name": loader.split(2).name, "classes": list(data.classes), "features": None, "targets": [], "categories": {}, "transforms": [],
        "notes": list(data.notes), "source": {"dataset": "contextual_sbm"}, "size": {"nodes": 60, "edges": 240, "features": 16},
    }  # fmt: skip
    assert card["task"] == {"kind": "classes", "score": "accuracy"}
    assert card["metrics"] == {
        **asdict(run.best),
        "seed": 2,
        "epochs": 8,
        "ending": "all_epochs",
        "seconds": run.seconds,
    }
    assert card["hardware"] == "a machine"
    with (runs.place(2) / HISTORY).open() as file:
        rows = list(csv.DictReader(file))
    assert [int(row["epoch"]) for row in rows] == list(range(1, 9))
    assert float(rows[-1]["valid_loss"]) == pytest.approx(run.history[-1].valid_loss, rel=1e-5)


def test_numbers_keep_their_scale_and_links_have_no_split(data, tmp_path):
    random = torch.Generator().manual_seed(0)
    numbers = datasets.from_tensors(data.edge_index, data.features, targets=50 + torch.randn(60, 2, generator=random))
    runs = RunFolder(tmp_path / "numbers", Trial(us.models.SGC, {}, CONFIG, normalise_rows=True), TrialLoader(numbers))
    runs.train(0)
    card = read_card(runs.place(0))
    scaling = runs.loader.task(0, normalise_rows=True).scaling
    assert card["task"] == {
        "kind": "numbers", "score": "R²", "centre": scaling.centre.tolist(), "scale": scaling.scale.tolist(),
    }  # fmt: skip
    assert card["data"]["transforms"] == ["row_normalised"]
    links = RunFolder(tmp_path / "links", Trial(us.models.SGC, {}, CONFIG), TrialLoader(data, kind=TaskKind.LINKS))
    links.train(0)
    assert read_card(links.place(0))["data"]["split"] is None
    assert links.finished(0) is not None


def test_a_run_that_was_cut_off_goes_on_to_the_same_numbers(loader, tmp_path):
    runs = RunFolder(tmp_path, TRIAL, loader)
    cut = runs.train(1, watch=interrupt(3))
    assert cut.ending is Ending.INTERRUPTED
    assert us.load(runs.place(1)).card["metrics"]["ending"] == "interrupted"  # what there is can be used
    assert (runs.place(1) / SNAPSHOT).is_file()
    assert runs.finished(1) is None
    seen = []
    run = runs.train(1, resume=True, watch=lambda now, best: seen.append(now.epoch))
    assert seen[0] == 4
    assert run.history == train.train_trial(TRIAL.with_seed(1), loader)[1].history
    assert runs.finished(1) == run.best.test_score
    assert not (runs.place(1) / SNAPSHOT).exists()


def test_without_resuming_a_run_begins_anew_and_the_old_model_stays_until_then(loader, tmp_path):
    runs = RunFolder(tmp_path, TRIAL, loader)
    runs.train(1)
    old = read_card(runs.place(1))

    def watch(now, best):
        assert read_card(runs.place(1)) == old
        if now.epoch == 3:
            raise RuntimeError("the power is gone")

    with pytest.raises(RuntimeError, match="the power is gone"):
        runs.train(1, watch=watch)
    assert read_card(runs.place(1)) == old
    assert runs.finished(1) is not None
    seen = []
    runs.train(1, watch=lambda now, best: seen.append(now.epoch))
    assert seen[0] == 1


def test_more_epochs_change_nothing_where_a_run_ended_by_itself(loader, tmp_path):
    def job(epochs, stop=Stop.PATIENCE, patience=2):
        return RunFolder(tmp_path, Trial(us.models.GCN, {"hidden": 8}, TrainConfig(lr=0.5, epochs=epochs, stop=stop, patience=patience)), loader)  # fmt: skip

    run = job(300).train(0)
    assert run.ending is Ending.STOPPED
    assert job(400).finished(0) == job(len(run.history)).finished(0) == run.best.test_score
    with pytest.raises(us.IncompatibleError, match="was trained with epochs"):
        job(len(run.history) - 1).finished(0)
    with pytest.raises(us.IncompatibleError, match="was trained with patience 2, not 3"):
        job(300, patience=3).finished(0)


def test_more_epochs_are_another_job_where_a_run_went_through_all(loader, tmp_path):
    RunFolder(tmp_path, TRIAL, loader).train(0)
    longer = RunFolder(tmp_path, Trial(us.models.GCN, {"hidden": 8}, CONFIG.replace(epochs=9)), loader)
    with pytest.raises(us.IncompatibleError, match="was trained with epochs 8, not 9"):
        longer.finished(0)


class Mine(us.models.GCN):
    """Of one's own."""


@pytest.mark.parametrize(
    ("other", "words"),
    [
        (Trial(us.models.SGC, {}, CONFIG), "the model GCN, not SGC"),
        (Trial(Mine, {"hidden": 8}, CONFIG), "the model GCN, not .*:Mine"),
        (Trial(us.models.GCN, {"hidden": 9}, CONFIG), "hidden 8, not 9"),
        (Trial(us.models.GCN, {"hidden": 8, "depth": 3}, CONFIG), "depth 2, not 3"),
        (Trial(us.models.GCN, {}, CONFIG), "hidden 8, not 64"),
        (Trial(us.models.GCN, {"hidden": 8}, CONFIG.replace(lr=0.1)), r"lr 0\.01, not 0\.1"),
        (Trial(us.models.GCN, {"hidden": 8}, CONFIG.replace(optimiser=torch.optim.SGD)), "optimiser Adam, not SGD"),
        (Trial(us.models.GCN, {"hidden": 8}, CONFIG, normalise_rows=True), r"other rows of features \(scaled or not\)"),
    ],
)
def test_a_folder_of_another_job_is_refused_and_the_difference_named(other, words, loader, tmp_path):
    RunFolder(tmp_path, TRIAL, loader).train(0)
    with pytest.raises(
        us.IncompatibleError, match=rf"was trained with {words}; choose another path=\.\.\., or leave resume=\.\.\. out"
    ):
        RunFolder(tmp_path, other, loader).finished(0)


def test_other_data_and_other_code_are_refused(data, loader, tmp_path):
    RunFolder(tmp_path, TRIAL, loader).train(0)
    other = TrialLoader(datasets.contextual_sbm(nodes=60, classes=3, seed=1))
    with pytest.raises(us.IncompatibleError, match="was trained with other data, another split or another loss"):
        RunFolder(tmp_path, TRIAL, other).finished(0)
    card = read_card(tmp_path / "seed0")
    write_card(tmp_path / "seed0", {**card, "key": "0" * 24})
    with pytest.raises(us.IncompatibleError, match="was trained with other code of the model"):
        RunFolder(tmp_path, TRIAL, loader).finished(0)


def test_settings_that_are_said_at_their_defaults_are_the_same_job(loader, tmp_path):
    runs = RunFolder(tmp_path, TRIAL, loader)
    runs.train(0)
    said = Trial(us.models.GCN, us.models.GCN.schema.complete({"hidden": 8}), CONFIG, preset="paper")
    assert RunFolder(tmp_path, said, loader).finished(0) == runs.finished(0)


def test_a_damaged_model_is_not_finished(loader, tmp_path):
    runs = RunFolder(tmp_path, TRIAL, loader)
    runs.train(0)
    next(runs.place(0).glob("*.safetensors")).write_bytes(b"")
    with pytest.raises(ValueError, match="is damaged"):
        runs.finished(0)


class Own(torch.nn.Module):
    """Not of ours, with a setting that no file can hold."""

    def __init__(self, in_features, out_features, width=4, act=torch.relu):
        super().__init__()
        self.linear, self.act = torch.nn.Linear(in_features, out_features), act

    def forward(self, x, graph):
        return self.act(self.linear(x))


def test_what_cannot_be_kept_is_said_before_it_is_trained(loader, tmp_path):
    for settings in ({"act": torch.tanh}, {"width": "wide"}, {"widht": 3}):
        runs = RunFolder(tmp_path, Trial(Own, settings, CONFIG), loader)
        with pytest.raises(us.InputError) as caught:
            runs.train(0, watch=lambda *_: pytest.fail("too late"))
        assert caught.value.argument == next(iter(settings))
    assert not list(tmp_path.iterdir())


def test_plain_modules_are_kept_and_told_apart(loader, tmp_path):
    runs = RunFolder(tmp_path, Trial(Own, {}, CONFIG), loader)
    run = runs.train(0)
    assert runs.finished(0) == run.best.test_score
    for said, words in (({"width": 4}, None), ({"width": 5}, "width 4, not 5")):
        other = RunFolder(tmp_path, Trial(Own, said, CONFIG), loader)
        if words is None:
            assert other.finished(0) == run.best.test_score
        else:
            with pytest.raises(us.IncompatibleError, match=words):
                other.finished(0)


def test_what_others_keep_in_a_folder_stays(loader, tmp_path):
    runs = RunFolder(tmp_path, TRIAL, loader)
    runs.place(0).mkdir()
    (runs.place(0) / "notes.txt").write_text("mine")
    runs.train(0)
    runs.train(0)
    assert (runs.place(0) / "notes.txt").read_text() == "mine"
    assert len(list(runs.place(0).iterdir())) == 4


SEEN = {}


class Remembering(us.models.SGC):
    """Keeps something in its module while it trains."""

    def forward(self, x, graph, edge_weight=None):
        SEEN[len(SEEN)] = 1.0
        return super().forward(x, graph, edge_weight)


def test_a_trained_model_is_known_by_its_code_before_it_was_trained(loader, tmp_path):
    SEEN.clear()
    RunFolder(tmp_path, Trial(Remembering, {}, CONFIG), loader).train(0)
    assert SEEN
    SEEN.clear()  # as in a new process
    assert isinstance(us.load(tmp_path, model=Remembering), Remembering)
