"""unspool study show: the command that it prints trains this very trial."""

import json
import shlex

import pytest

from cli.people import ask
from unspool import study
from unspool.cli.study.again import again

SETS = {
    "another depth and dropout": ("GCN", ["--set", "depth=3", "--dropout", "0.2", "--set", "batch_norm=true"]),
    "decay of all groups": ("APPNP", ["--decay", "0.003", "--rate", "0.0123", "--set", "teleport=0.3"]),
    "decay of all but hops": ("UGDGNN", ["--decay", "0.002", "--set", "channels=hidden"]),
    "no decay": ("UGDGNN", ["--decay", "0", "--set", "channels=hidden"]),
    "the preset's decay": ("GPRGNN", ["--preset", "default", "--decay", "0.0005", "--dropout", "0.3"]),
    "patience": ("MLP", ["--patience", "3", "--epochs", "30", "--set", "select=accuracy"]),
    "no stop": ("MLP", ["--set", "stop=never"]),
    "another optimiser": ("SGC", ["--set", "optimiser=sgd", "--decay", "0.01"]),
    "a split": ("SGC", ["--split", "random:0.5/0.25/0.25"]),
}


def one(out, model, words):
    """Run one trial with seed 3; what ``show`` says about it."""
    small = ["--dataset", "contextual_sbm", "--jobs", "1", "--first-seed", "3", "--seeds", "1", "--out", out]
    short = [] if "--epochs" in words else ["--epochs", "8"]
    ask("study", "run", model, *small, *short, *words)
    return json.loads(ask("study", "show", out, "1", "--json"))


@pytest.mark.parametrize("name", SETS)
def test_the_command_trains_this_very_trial(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    told = one("study.db", *SETS[name])
    words = shlex.split(told["command"])
    assert words[:2] == ["unspool", "train"]
    ended = [json.loads(line) for line in ask(*words[1:], "--json", "--no-report").splitlines()]
    (seed,) = [event for event in ended if event["event"] == "seed"]
    for number in ("epoch", "epochs", "reason"):
        assert seed[number] == told["result"][number]
    for number in ("test_score", "valid_score", "valid_loss", "train_loss"):
        assert seed[number] == pytest.approx(told["result"][number], rel=1e-5)


def test_what_train_has_no_words_for_comes_as_python(tmp_path):
    told = one(tmp_path / "study.db", "UGDGNN", ["--set", "select=last", "--set", "channels=hidden"])
    assert told["command"] is None
    assert "never the last" in told["why_no_command"]
    assert "in Python:" in ask("study", "show", tmp_path / "study.db", 1)
    held = {}
    exec(
        told["python"].replace("print(us.study.run([trial], data).table)", "found = us.study.run([trial], data)"), held
    )
    (row,) = held["found"].rows
    assert row.key == told["key"]
    assert row.result.test_score == pytest.approx(told["result"]["test_score"], rel=1e-6)


def test_trials_that_no_command_trains(tmp_path):
    told = one(tmp_path / "study.db", "MLP", ["--set", "select=last"])
    assert told["why_no_command"] == "unspool train keeps the best epoch, never the last"
    (row,) = study.Study.open(tmp_path / "study.db").rows
    other = again(study.Row(**{**vars(row), "described": {**row.described, "model": "mine.Net"}}))
    assert other.reason == "mine.Net is no model of this package"
    changed = again(study.Row(**{**vars(row), "mark": "0-0-accuracy"}))
    assert changed.reason == "contextual_sbm is not the set of that name as it comes, or has another split"


def test_a_trial_is_found_by_the_beginning_of_its_key(tmp_path):
    told = one(tmp_path / "study.db", "MLP", [])
    assert f"key               {told['key']}" in ask("study", "show", tmp_path / "study.db", told["key"][:6])
