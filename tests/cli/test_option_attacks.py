"""Random bad values for the options of every command: done, refused in a sentence, or a wrong usage; nothing else."""

import pytest

from cli import option_attacks as attacks
from unspool.errors import InputError

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return attacks.scene(tmp_path_factory.mktemp("people"))


@pytest.mark.parametrize("start", [*range(0, 400, 100), pytest.param(400, marks=pytest.mark.slow)])
def test_generated_options(place, tmp_path, monkeypatch, start):
    monkeypatch.chdir(tmp_path)  # some values are names of files
    for seed in range(start, start + 100 if start < 400 else 5000):
        assert attacks.judge(seed, place)[0] is None, f"seed {seed}"


def test_every_command_and_all_options_of_training_are_attacked():
    every = attacks.leaves()
    assert {path[0] for path in every} == set(attacks.cli.commands) - attacks.LEFT_OUT
    tried = {p.name for p in every[("study", "run")].params if p.name not in attacks.LONG}
    assert {
        "settings",
        "lr",
        "weight_decay",
        "monitor",
        "stop",
        "min_epochs",
        "lower_level",
        "loss",
        "keep",
        "ranges",
    } <= tried
    for path in (("predict",), ("explain",), ("spectrum",), ("study", "model")):
        assert "model" in {p.name for p in every[path].params}


def test_the_judge_can_fail(place, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(attacks, "asked", lambda seed, place: ["models", "GCN"])
    monkeypatch.setattr("unspool.cli.models.run", lambda name, as_json: {}[name])
    assert attacks.judge(0, place)[1] == "traceback"

    def refused(name, as_json):
        raise InputError("name", name, "something", "give split=... in Python")

    monkeypatch.setattr("unspool.cli.models.run", refused)
    assert attacks.judge(0, place)[1] == "python"
