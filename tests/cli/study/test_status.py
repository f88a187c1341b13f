"""unspool study status: counts, speed, and who is training."""

import os

from cli.people import ask
from cli.study.small import lines, run
from unspool.cli.study.screen import StudyScreen


def test_counts(file):
    text = ask("study", "status", file)
    assert text.splitlines()[1].split() == ["contextual_sbm", "0", "0", "12", "0", "12"]
    assert "all trials have ended" in text
    (told,) = lines("status", file)
    assert (told["done"], told["datasets"]["contextual_sbm"]["done"], told["workers"]) == (12, 12, [])
    assert "all trials have ended" in ask("study", "status", file, "--watch")


def test_while_others_train(tmp_path, monkeypatch):
    out, heard = tmp_path / "study.db", []
    monkeypatch.setattr(
        StudyScreen, "show", lambda self, now: now.running and not heard and heard.append(lines("status", out)[0])
    )
    run(out, "--at-once", "2")
    (told,) = heard
    (worker,) = told["workers"]
    assert worker["pid"] == os.getpid()
    assert 0 < worker["trials"] == told["running"]
