"""unspool study run: what is trained, what is said of it, how it is cut off and continued."""

import json
import os
import signal
import sys

import pytest

import unspool as us
from cli.people import ask, own, refuse, write_people
from cli.study.small import SMALL, lines, rows, run
from unspool import study
from unspool.cli.study.screen import StudyScreen
from unspool.train import TrialLoader

pytestmark = pytest.mark.long


def test_a_run_says_what_it_does_and_what_came_of_it(tmp_path):
    out = tmp_path / "new" / "study.db"
    text = run(out)
    assert "contextual SBM, homophily 0.8: 1000 nodes" in text
    assert "GCN: 2 settings × 3 seeds\nMLP: 2 settings × 3 seeds" in text
    assert f"12 trials into {out}; on cpu" in text
    assert "best by validation: GCN on contextual_sbm, dropout" in text
    for command in ("best", "show", "model", "compare", "report"):
        assert f"\n  unspool study {command} {out}" in text
    assert len(rows(out)) == 12


def test_the_commands_that_come_next_can_be_typed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    said = run("a study.db").partition("next:")[2]
    commands = [line.strip() for line in said.splitlines() if line.strip()]
    assert len(commands) == 5
    import shlex

    for command in commands:
        program, *words = shlex.split(command)
        assert program == "unspool"
        ask(*words)
    assert us.load("out/best").card["trial"]["model"] == "GCN"


def test_what_is_finished_is_not_trained_again(file, tmp_path):
    before = {row.key: (row.result, row.finished_at) for row in rows(file)}
    text = run(file)
    assert "12 of them there already" in text
    assert {row.key: (row.result, row.finished_at) for row in rows(file)} == before
    out = tmp_path / "study.db"
    run(out, "--seeds", "1", models=("GCN",))
    told = [json.loads(line) for line in run(out, "--json").splitlines()]
    assert (told[0]["event"], told[0]["trials"], told[0]["finished_before"]) == ("start", 12, 2)
    assert (told[-1]["event"], told[-1]["done"], told[-1]["failed"]) == ("summary", 12, 0)
    assert [one["event"] for one in told[-5:-1]] == ["leader"] * 4
    # In another order and in other batches, the same numbers.
    agree(out, file)


def agree(one, other):
    """The same trials with the same results; losses may be rounded another way in another batch."""
    a, b = ({row.key: row.result for row in rows(file)} for file in (one, other))
    assert {k: (r.epoch, r.test_score) for k, r in a.items()} == {k: (r.epoch, r.test_score) for k, r in b.items()}
    assert {k: r.valid_loss for k, r in a.items()} == pytest.approx({k: r.valid_loss for k, r in b.items()}, rel=1e-5)


@pytest.mark.slow  # in make test the library's processes are compared, in tests/study/test_processes.py
def test_several_processes_give_the_same_numbers(file, tmp_path):
    text = ask("study", "run", "GCN", "MLP", *SMALL, "--jobs", "2", "--out", tmp_path / "two.db")
    assert "on cpu, 2 processes" in text
    agree(tmp_path / "two.db", file)


def test_time_that_is_up_leaves_the_rest(tmp_path):
    text = run(tmp_path / "study.db", "--seconds", "0.0001")
    assert "0 of 12 trials have ended, 12 wait; run the same command again to continue" in text
    assert "no process is training; run the same command again to train the 12 that wait" in ask(
        "study", "status", tmp_path / "study.db"
    )
    assert "best by validation" in run(tmp_path / "study.db")


def test_ctrl_c_is_one_sentence(tmp_path, monkeypatch):
    def stop(self, now):
        if now.done:
            os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(StudyScreen, "show", stop)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # shells let background jobs ignore it
    try:
        text = run(tmp_path / "study.db", "--at-once", "2", code=130)
    finally:
        signal.signal(signal.SIGINT, before)
    assert "trials have ended and are kept; run the same command again to continue" in text
    kept = [row for row in rows(tmp_path / "study.db") if row.status is study.Status.DONE]
    assert 2 <= len(kept) < 12
    monkeypatch.undo()
    assert f"{len(kept)} of them there already" in run(tmp_path / "study.db")


def test_failures_are_told_and_can_be_tried_again(tmp_path, monkeypatch):
    ready, broken = TrialLoader.prepare, [1]

    def prepare(self, trial):
        if trial.seed in broken:
            raise ValueError("the sun was in my eyes")
        return ready(self, trial)

    monkeypatch.setattr(TrialLoader, "prepare", prepare)
    out = tmp_path / "study.db"
    text = run(out)
    assert "4 trials failed" in text
    assert "trial 2 and 3 more: ValueError: the sun was in my eyes" in text
    assert "4 failed" not in ask("study", "best", out)
    assert "trial 2 and 3 more" in ask("study", "status", out)
    assert "failed: ValueError: the sun was in my eyes" in ask("study", "show", out, 2)
    assert "it is failed; study run --retry-failed trains it again" in refuse(
        "study", "model", out, 2, "--out", tmp_path / "m"
    )
    assert "4 trials failed" in run(out)  # they count as ended
    broken.clear()
    assert "failed" not in run(out, "--retry-failed")
    broken.extend(range(3))
    told = run(tmp_path / "none.db", "--json", code=1).splitlines()
    assert json.loads(told[-1])["failed"] == 12
    assert json.loads(told[-1])["best"] is None


def test_several_sets_in_one_file(tmp_path):
    out = tmp_path / "study.db"
    run(out, "--seeds", "2", models=("GCN",))
    run(out, "--seeds", "2", "--dataset", "grid", models=("GCN",))
    run(out, "--seeds", "2", "--dataset", "grid", "--split", "random:0.5/0.25/0.25", models=("GCN",))
    told = lines("status", out)[0]["datasets"]
    assert list(told) == ["contextual_sbm", "grid", "grid (random:0.5/0.25/0.25)"]
    assert {one["data"] for one in lines("best", out)} == set(told)
    assert {one["data"] for one in lines("best", out, "--dataset", "Grid")} == {"grid"}
    assert "on grid (" in ask(
        "study", "compare", out, "dropout=0.2", "dropout=0.5", "--dataset", "grid (random:0.5/0.25/0.25)"
    )
    names = {line.rpartition("/")[2] for line in ask("study", "plot", out, "--out", tmp_path / "p").splitlines()}
    assert {"leaders.png", "choices-contextual-sbm.png", "choices-grid.png"} <= names


def test_a_split_of_the_built_in_set_is_told_apart(tmp_path):
    out = tmp_path / "study.db"
    for more in ([], ["--split", "per-class:20/30"]):
        ask("study", "run", "SGC", "--epochs", "1", "--seeds", "1", "--jobs", "1", "--quiet", *more, "--out", out)
    assert [row.data.name for row in rows(out)] == ["citeseer", "citeseer (per-class:20/30)"]


KINDS = {
    "classes": (["--label-column", "team"], "accuracy"),
    "numbers": (["--target-column", "price"], "R²"),
    "two numbers": (["--target-column", "price", "--target-column", "size", "--loss", "numbers"], "R²"),
    "binary": (["--label-column", "vip", "--loss", "binary"], "AUC"),
    "ranking": (["--target-column", "price", "--loss", "ranking"], "pairs in order"),
    "links": (["--loss", "links"], "AUC"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_loss_on_files_of_ones_own(tmp_path, kind):
    people, out = write_people(tmp_path), tmp_path / "study.db"
    more, score = KINDS[kind]
    small = ["study", "run", "GCN", "--epochs", "20", "--seeds", "2", "--hidden", "8", "--jobs", "1", "--out", out]
    assert "settings that are not given come from the preset default" in ask(*small, *own(people, *more), "--keep", "1")
    assert {row.data.score for row in rows(out)} == {score}
    for row in rows(out):
        card = us.load(out.with_name("study.db.models") / "best1" / f"seed{row.trial['seed']}").card
        assert (card["key"], card["task"]["score"]) == (row.key, score)
        assert card["task"]["kind"] == row.data.kind == kind.removeprefix("two ")
        assert card["metrics"]["test_score"] == pytest.approx(row.result.test_score, abs=1e-6)


def test_two_kinds_of_answers_in_one_file(tmp_path):
    people, out = write_people(tmp_path), tmp_path / "study.db"
    small = ["study", "run", "GCN", "--epochs", "40", "--seeds", "2", "--hidden", "8", "--jobs", "1", "--out", out]
    ask(*small, *own(people, "--label-column", "team"))
    ask(*small, *own(people, "--target-column", "price"))
    said = refuse("study", "importance", out)
    assert said.endswith("; name one with --dataset")
    assert said.count("friends ") == 2
    (told,) = lines("best", out, "--dataset", f"friends {rows(out)[-1].data.fingerprint[:6]}")
    assert told["score"] == "R²"
    assert told["valid_mean"] > 0.2  # prices around 100 are learnt, since they are brought to size one


class Still(us.models.SGC):
    """A model of one's own on a data set of the paper."""


def test_presets_that_differ_between_models_are_told(tmp_path):
    small = ["--seeds", "1", "--epochs", "1", "--jobs", "1", "--out", tmp_path / "s.db"]
    said = ask("study", "run", f"{__name__}:Still", "SGC", *small)
    assert "Still: default (rows as they are); SGC: paper (rows" in said
    assert "give --preset default --normalise-rows" in said
    said = ask("study", "run", f"{__name__}:Still", "SGC", *small, "--preset", "default", "--normalise-rows")
    assert "come from the preset default (rows scaled to sum 1)" in said


@pytest.mark.parametrize(
    ("machines", "said"),
    [
        (
            "head",
            "--machines head: expected auto, local, or the HOST:PORT of a Ray cluster that this machine belongs to",
        ),
        (
            "auto",
            "training on several machines needs Ray: pip install 'unspool[ray]' on each of them, or train on this one alone",
        ),
    ],
)
def test_machines_that_are_not_there_are_a_sentence(tmp_path, monkeypatch, machines, said):
    monkeypatch.setitem(sys.modules, "ray", None)
    assert refuse("study", "run", *SMALL, "--out", tmp_path / "study.db", "--machines", machines) == said
    assert not (tmp_path / "study.db").exists()


def test_a_gpu_of_a_cluster_has_no_number(tmp_path):
    said = refuse("study", "run", *SMALL, "--out", tmp_path / "study.db", "--machines", "auto", "--device", "cuda:1")
    assert said.startswith("--device cuda:1: expected cpu or cuda with --machines; each worker")
