"""Random bad values for the options of every command: done, refused in a sentence, or a wrong usage; nothing else."""

import pytest

from cli import option_attacks as attacks


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return attacks.scene(tmp_path_factory.mktemp("people"))


@pytest.mark.parametrize("start", range(0, 80, 20))
def test_generated_options(place, tmp_path, monkeypatch, start):
    monkeypatch.chdir(tmp_path)  # some values are names of files
    for seed in range(start, start + 20):
        assert attacks.judge(seed, place)[0] is None, f"seed {seed}"


def test_the_judge_can_fail(place, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(attacks, "asked", lambda seed, place: ["models", "GCN"])
    monkeypatch.setattr("unspool.cli.lists.show_models", lambda name, as_json: {}[name])
    assert attacks.judge(0, place)[1] == "traceback"
