"""unspool study model: the network of a trial, handed over."""

import json
import shlex

import pytest

import unspool as us
from cli.people import ask, own, refuse, write_people

pytestmark = pytest.mark.long


SETS = {
    "another depth and dropout": ("GCN", ["--setting", "depth=3", "--dropout", "0.2", "--setting", "batch_norm=true"]),
    "decay of all groups": ("APPNP", ["--weight-decay", "0.003", "--lr", "0.0123", "--setting", "teleport=0.3"]),
    "decay by group": ("GCNII", ["--weight-decay", "first=0.01;convolution=0.1", "--depth", "3", "--hidden", "8"]),
    "no decay": ("UGDGNN", ["--weight-decay", "0", "--setting", "channels=hidden"]),
    "patience": ("MLP", ["--patience", "3", "--epochs", "30", "--monitor", "valid_score"]),
    "the last epoch": ("MLP", ["--monitor", "last_epoch", "--stop", "never"]),
    "above the mean": ("MLP", ["--stop", "above_mean", "--patience", "2", "--min-epochs", "4"]),
    "another optimiser": ("SGC", ["--optimiser", "sgd", "--weight-decay", "0.01"]),
    "solved exactly": ("APPNP", ["--lower-level", "exact"]),
    "an object": ("AirGNN", ["--setting", "adjoint=checkpointed(every=2)", "--depth", "4"]),
    "a list": ("GPRGNN", ["--setting", "start=warm", "--setting", "warm=0.5/0.3/0.2", "--depth", "2"]),
    "a split": ("SGC", ["--split", "random:0.5/0.25/0.25"]),
    "scaled rows": ("SGC", ["--normalise-rows"]),
}


def one(out, model, words):
    """Run one trial with seed 3; what ``show`` says about it."""
    small = ["--dataset", "contextual_sbm", "--jobs", "1", "--first-seed", "3", "--seeds", "1", "--out", out]
    short = [] if "--epochs" in words else ["--epochs", "8"]
    ask("study", "run", model, *small, *short, *words)
    return json.loads(ask("study", "show", out, "1", "--json"))


@pytest.mark.parametrize("name", SETS)
def test_the_network_is_that_of_the_trial(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    told = one("study.db", *SETS[name])
    words = shlex.split(told["command"])
    assert words[:3] == ["unspool", "study", "model"]
    ask(*words[1:])
    model = us.load("out/trial1")
    assert model.card["key"] == told["key"]
    assert model.card["trial"] == told["trial"]
    for number in ("epoch", "epochs", "ending"):
        assert model.card["metrics"][number] == told["result"][number]
    for number in ("test_score", "valid_score", "valid_loss", "train_loss"):
        assert model.card["metrics"][number] == pytest.approx(told["result"][number], rel=1e-4)
    rows = [word for word in ("--split",) if word in SETS[name][1]]
    held = json.loads(ask("predict", "out/trial1", "--only", "test", "--out", "p.csv", "--json"))
    assert rows or held["accuracy_on_known"] == pytest.approx(told["result"]["test_score"], abs=1e-6)


@pytest.mark.parametrize("more", [["--label-column", "team"], ["--target-column", "price"]], ids=["classes", "numbers"])
def test_own_files_need_not_be_named_again(tmp_path, monkeypatch, more):
    monkeypatch.chdir(write_people(tmp_path))
    ask("study", "run", "APPNP", *own(tmp_path, *more), "--seeds", "2", "--epochs", "5", "--out", "s.db")
    ask("study", "model", "s.db", "2", "--out", "m")
    assert us.load("m").card["metrics"]["seed"] == 1


def test_links_and_other_losses_are_kept_in_mind(tmp_path, monkeypatch):
    monkeypatch.chdir(write_people(tmp_path))
    ask("study", "run", "APPNP", *own(tmp_path), "--loss", "links", "--seeds", "1", "--epochs", "4", "--out", "s.db")
    ask("study", "model", "s.db", "1", "--out", "m")
    assert us.load("m").card["task"]["kind"] == "links"


def test_other_data_are_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(write_people(tmp_path))
    ask(
        "study",
        "run",
        "SGC",
        *own(tmp_path, "--label-column", "team"),
        "--seeds",
        "1",
        "--epochs",
        "3",
        "--out",
        "s.db",
    )
    text = (tmp_path / "people.csv").read_text()
    (tmp_path / "people.csv").write_text(text.replace("p7,", "p7,1", 1))
    assert "was trained on" in refuse("study", "model", "s.db", "1", "--out", "m")
    assert not (tmp_path / "m" / "model.json").exists()


def test_a_changed_network_is_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "calm_net.py").write_text(CALM)
    monkeypatch.syspath_prepend(str(tmp_path))
    ask(
        "study", "run", "calm_net:Calm", "--dataset", "contextual_sbm", "--seeds", "1", "--epochs", "3", "--out", "s.db"
    )
    assert "not imported just because a file names it" in refuse("study", "model", "s.db", "1", "--out", "m")
    ask("study", "model", "s.db", "1", "--model", "calm_net:Calm", "--out", "m")
    import calm_net

    monkeypatch.setattr(calm_net, "PULL", 0.4)
    said = refuse("study", "model", "s.db", "1", "--model", "calm_net:Calm", "--out", "other")
    assert "the code of Calm has changed" in said


CALM = """
import unspool as us

PULL = 0.3


class Calm(us.models.Model):
    depth: int = us.setting(3, "number of steps", at_least=1)

    def build(self):
        self.p_pre = us.nn.Linear(self.in_features, self.out_features)
        self.propagation = us.unroll(us.Fidelity(PULL) + us.Smoothness(1 - PULL), us.GradientDescent(step=0.5), self.depth)
"""


BENT = """
from dataclasses import dataclass
from typing import Any

import unspool as us


@dataclass(frozen=True, eq=False)
class Bent(us.SmoothTerm):
    weight: Any
    delta: float

    def value(self, h, given):
        return ((h - given.x).square() + self.delta**2).sqrt().sum((-2, -1)) * given[self.weight]

    def gradient(self, h, given):
        d = h - given.x
        return d / (d.square() + self.delta**2).sqrt() * given[self.weight]

    def lipschitz(self, given):
        return given[self.weight] / self.delta


class Tempered(us.models.Model):
    delta: float = us.setting(0.5, "where it bends", above=0)

    def build(self):
        self.p_pre = us.nn.Linear(self.in_features, self.out_features)
        self.propagation = us.unroll(Bent(0.5, self.delta) + us.Smoothness(0.5), us.GradientDescent(), 2)
"""


def test_every_trial_of_a_model_with_its_own_term_has_its_network_and_a_study_grows(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bent_net.py").write_text(BENT)
    monkeypatch.syspath_prepend(str(tmp_path))
    small = ["--dataset", "contextual_sbm", "--seeds", "2", "--epochs", "3", "--jobs", "1", "--out", "s.db"]
    assert "already" not in ask("study", "run", "bent_net:Tempered", "--setting", "delta=0.2", *small)
    assert "2 of them there already" in ask("study", "run", "bent_net:Tempered", "--setting", "delta=0.1,0.2", *small)
    for number in (1, 2, 3, 4):
        ask("study", "model", "s.db", number, "--model", "bent_net:Tempered", "--out", f"m{number}")


def test_unfinished_trials_have_no_network(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with us.study.Store("s.db") as store:
        store.add([us.train.Trial(us.models.SGC)], us.train.DataRecord("contextual_sbm", "5e1f"))
    assert "has no trained network: it is waiting" in refuse("study", "model", "s.db", "1", "--out", "m")
    assert "has no trial 7" in refuse("study", "model", "s.db", "7", "--out", "m")


def test_a_trial_that_diverged_offers_no_network(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    small = ["--dataset", "contextual_sbm", "--seeds", "1", "--epochs", "9", "--jobs", "1", "--out", "s.db"]
    said = ask("study", "run", "UGDGNN", "--lr", "1e30", *small, "--keep", "1")
    assert "study model" not in said
    assert "trial 1 diverged, so it has no network" in said
    assert "study model" not in ask("study", "show", "s.db", "1")
    assert json.loads(ask("study", "show", "s.db", "1", "--json"))["command"] is None
    said = refuse("study", "model", "s.db", "1", "--out", "m")
    assert "trial 1 of s.db has no trained network: its losses became infinite" in said


def test_the_commands_that_are_printed_name_a_function_that_gave_the_data(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "calm_data.py").write_text(
        "import unspool as us\n\n\ndef tiny():\n    return us.datasets.contextual_sbm(nodes=60, classes=2, seed=0)\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    small = ["--dataset", "calm_data:tiny", "--split", "random:0.5/0.25/0.25", "--seeds", "1", "--epochs", "3"]
    said = ask("study", "run", "SGC", *small, "--jobs", "1", "--out", "s.db")
    lines = [line.strip() for line in said.splitlines()]
    (command,) = [line for line in lines if line.startswith("unspool study model")]
    assert command in ask("study", "show", "s.db", "1").replace("out/trial1", "out/best")
    said = ask(*shlex.split(command)[1:])
    ask(*shlex.split(next(line for line in said.splitlines() if "unspool predict" in line))[1:])
