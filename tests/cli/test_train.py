"""unspool train: short runs on the built-in data, their folder, and how a job ends."""

import json
import os
import signal
import sys

import pytest

import unspool as us
from cli.people import ask, card, refuse, train
from unspool.cli import main as entry
from unspool.cli.train import Reporter
from unspool.models.pretrained import load_with_card


def test_trains_on_the_built_in_data(tmp_path):
    text = ask("train", "--epochs", "4", "--seeds", "2", "--out", tmp_path)
    assert "the paper prints 71.68 ± 0.70" in text
    model, held = load_with_card(tmp_path / "seed1")
    assert held["metrics"]["seed"] == held["trial"]["seed"] == 1
    assert held["data"]["name"] == "CiteSeer"
    assert held["data"]["source"] == {"dataset": "citeseer"}
    assert isinstance(model, us.models.StableGNN)
    assert "for its own model, UGDGNN (unspool train UGDGNN)" in text
    assert not (tmp_path / "seed0" / "run.pt").exists()


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        ([], ("StableGNN", "stable")),
        (["--preset", "grand"], ("StableGNN", "grand")),
        (["--preset", "paper"], ("UGDGNN", "paper")),
        (["--loss", "classes"], ("UGDGNN", "paper")),
        (["--dataset", "contextual_sbm"], ("UGDGNN", "default")),
        (["UGDGNN"], ("UGDGNN", "paper")),
    ],
)
def test_the_model_that_is_taken_when_none_is_named(tmp_path, words, wanted):
    ask("train", *words, "--epochs", 1, "--out", tmp_path, "--no-report", "--no-baselines")
    held = card(tmp_path)["trial"]
    assert (held["model"].rpartition(":")[2], held["preset"]) == wanted


@pytest.mark.long
def test_json_lines_and_the_same_numbers_again(tmp_path):
    lines = []
    for name in ("a", "b"):
        text = ask("train", "SGC", "--epochs", "3", "--json", "--out", tmp_path / name)
        lines.append([json.loads(line) for line in text.splitlines()])
    a, b = (next(line for line in found if line["event"] == "seed") for found in lines)
    assert all(a[name] == b[name] for name in a if name not in ("folder", "seconds"))
    assert lines[0][-1]["event"] == "summary"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["NOPE"], "MODEL NOPE: expected the name of a model"),
        (["--dataset", "nowhere"], "--dataset nowhere: expected the name of a data set"),
        (["GCNII", "--dataset", "cs", "--preset", "official"], "GCNII has no official setting on cs"),
    ],
)
def test_the_culprit_is_named(arguments, sentence, tmp_path):
    assert refuse("train", *arguments, "--out", tmp_path).startswith(sentence)


@pytest.mark.long
def test_finished_seeds_are_not_trained_again(tmp_path):
    words = ["train", "SGC", "--epochs", "3", "--out", tmp_path]
    ask(*words)
    before = (tmp_path / "seed0" / "model.json").stat().st_mtime_ns
    assert "seed 0: finished before" in ask(*words, "--resume", "--seeds", "2")
    assert (tmp_path / "seed0" / "model.json").stat().st_mtime_ns == before
    assert (tmp_path / "seed1" / "model.json").is_file()


def test_how_one_came_by_the_settings_does_not_count(tmp_path):
    """What the paper's preset says, said by hand, is the same job."""
    train(tmp_path, "--dataset", "citeseer", model="SGC", epochs=2)
    held = card(tmp_path)["trial"]
    said = [part for name, value in held["settings"].items() for part in ("--setting", f"{name}={value}")]
    more = ["--lr", held["config"]["lr"], "--weight-decay", held["config"]["weight_decay"], "--normalise-rows"]
    text = ask("train", "SGC", "--preset", "default", "--stop", "never", *said, *more, "--epochs", 2, "--out", tmp_path, "--resume")  # fmt: skip
    assert "seed 0: finished before" in text


def test_the_paper_is_not_blamed_for_another_configuration(tmp_path):
    assert "under its own settings" in ask("train", "SGC", "--epochs", "2", "--no-report", "--out", tmp_path / "t")


def test_an_interrupted_job_says_so_in_its_code(tmp_path, monkeypatch, capsys):
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # shells let background jobs ignore it

    def cut(self, now, best):
        if now.epoch == 3:
            os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(Reporter, "__call__", cut)
    monkeypatch.setattr(
        sys, "argv", ["unspool", "train", "SGC", "--epochs", "9", "--no-report", "--out", str(tmp_path)]
    )
    with pytest.raises(SystemExit) as ended:
        entry.main()
    signal.signal(signal.SIGINT, before)
    assert ended.value.code == 130
    assert "--resume continues" in capsys.readouterr().out


# -- classes and data of one's own -------------------------------------------------------------------------------------

OWN = """
import torch, unspool as us
from unspool import datasets


class Calm(us.models.Model):
    depth: int = us.setting(3, "number of steps", at_least=1)

    def build(self):
        self.p_pre = us.nn.Linear(self.in_features, self.out_features)
        self.propagation = us.unroll(us.Fidelity(0.3) + us.Smoothness(0.7), us.GradientDescent(step=0.5), self.depth)


class Plain(torch.nn.Module):
    def __init__(self, in_features, out_features, *, width: int = 4):
        super().__init__()
        self.first, self.second = torch.nn.Linear(in_features, width), torch.nn.Linear(width, out_features)

    def forward(self, x, graph):
        return self.second(self.first(x).relu())


def towns():
    return datasets.contextual_sbm(nodes=60, classes=2, seed=5)
"""


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder with a module of one's own, where the command is run."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [place for place in sys.path if place != ""])
    (tmp_path / "own_to_train.py").write_text(OWN)
    yield tmp_path
    sys.modules.pop("own_to_train", None)


@pytest.mark.long
@pytest.mark.parametrize(("name", "setting"), [("Calm", "depth=4"), ("Plain", "width=6")])
def test_a_class_and_data_of_ones_own(here, name, setting):
    words = [f"own_to_train:{name}", "--dataset", "own_to_train:towns", "--setting", setting, "--epochs", 5]
    text = ask("train", *words, "--out", "job", "--seeds", 2)
    assert f"{name}, preset default: {setting.replace('=', ' ')}" in text
    from own_to_train import towns

    told, (key, value) = json.loads((here / "job" / "seed0" / "model.json").read_text()), setting.split("=")
    assert told["model"] == f"own_to_train:{name}"
    assert told["settings"][key] == int(value)
    assert told["data"]["source"] == {"dataset": "own_to_train:towns"}
    assert told["data"]["hash"] == towns().hash
    assert "seed 1: finished before" in ask("train", *words, "--out", "job", "--seeds", 2, "--resume")
    known = ["--model", f"own_to_train:{name}", "--dataset", "own_to_train:towns"]
    held = json.loads(ask("predict", "job", *known, "--out", "p.csv", "--json"))
    assert (held["nodes"], held["models"]) == (60, 2)
    assert "not imported just because a file names it" in refuse("predict", "job", "--out", "q.csv")
    ask("spectrum" if name == "Calm" else "models", *(["job/seed0", *known[:2]] if name == "Calm" else [words[0]]))


def test_own_data_take_the_defaults_and_not_the_papers(here):
    train(here / "a", "--dataset", "own_to_train:towns", model="SGC", epochs=2)
    assert card(here / "a")["trial"]["preset"] == "default"
    train(here / "b", "--dataset", "citeseer", model="own_to_train:Calm", epochs=2)
    import own_to_train

    held = load_with_card(here / "b" / "seed0", model=own_to_train.Calm)[1]["trial"]
    assert (held["preset"], held["normalise_rows"]) == ("default", False)


def test_the_preset_of_the_paper_may_be_asked_for(here):
    train(here / "c", "--dataset", "citeseer", "--preset", "paper", model="own_to_train:Calm", epochs=2)
    import own_to_train

    held = load_with_card(here / "c" / "seed0", model=own_to_train.Calm)[1]["trial"]
    assert (held["preset"], held["normalise_rows"]) == ("paper", True)
