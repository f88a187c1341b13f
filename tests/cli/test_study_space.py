"""unspool study run: what is typed about settings and data, and the trials that come of it."""

import json

import pytest

from cli.people import ask, own, write_people
from unspool import study


def rows(file):
    with study.Store.open(file, study.Access.READ) as store:
        return store.rows()


def test_random_draws_and_the_papers_grid(tmp_path):
    draw = ["--random", "4", "--range", "rate=0.001:0.1:log", "--range", "depth=2..6", "--range", "dropout=0.1:0.9"]
    small = ["study", "run", "APPNP", "--dataset", "contextual_sbm", "--seeds", "1", "--jobs", "1"]
    ask(*small, "--epochs", "2", "--set", "bias=true,false", *draw, "--out", tmp_path / "a.db")
    held = [row.described for row in rows(tmp_path / "a.db")]
    assert len(held) == 4
    assert all(0.001 <= one["plan"]["rate"] <= 0.1 and 2 <= one["settings"]["depth"] <= 6 for one in held)
    assert len({one["plan"]["rate"] for one in held}) == 4
    assert "APPNP: 324 settings × 1 seed" in ask(
        *small, "--paper-grid", "--seconds", "0.0001", "--out", tmp_path / "b.db"
    )


def test_words_of_the_plan(tmp_path):
    out = tmp_path / "study.db"
    words = ["select=accuracy,last", "optimiser=adam,sgd", "stop=never", "weights=pos"]
    said = [part for word in words for part in ("--set", word)]
    ask(
        "study",
        "run",
        "SGC",
        "--dataset",
        "grid",
        "--epochs",
        "2",
        "--seeds",
        "1",
        "--jobs",
        "1",
        *said,
        "--seconds",
        "0.00001",
        "--out",
        out,
    )
    held = [row.described for row in rows(out)]
    assert {(one["plan"]["select"][:4], one["plan"]["optimiser"]) for one in held} == {
        ("high", "Adam"), ("high", "SGD"), ("the ", "Adam"), ("the ", "SGD"),
    }  # fmt: skip
    assert all(one["plan"]["stop"] == "never" and one["settings"]["weights"] == "pos" for one in held)


def test_own_files(tmp_path):
    people, out = write_people(tmp_path), tmp_path / "study.db"
    small = ["study", "run", "GCN", "--epochs", "40", "--seeds", "2", "--hidden", "8", "--jobs", "1", "--out", out]
    assert "preset default" in ask(*small, *own(people, "--label-column", "team"))
    ask(*small, *own(people, "--target-column", "price"))
    with pytest.raises(AssertionError, match=r"friends .* and friends .*; name one with --dataset"):
        ask("study", "importance", out)
    told = json.loads(ask("study", "best", out, "--dataset", f"friends {rows(out)[-1].mark[:6]}", "--json"))
    assert told["score"] == "R²"
    assert told["valid_mean"] > 0.2  # prices around 100 are learnt, since they are brought to size one
    assert "friends is no set with a name" in ask("study", "show", out, 1)
