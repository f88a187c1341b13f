"""unspool study: run, look, continue; what is printed and what is in the file."""

import csv
import io
import json
import os
import signal
import statistics
from datetime import datetime, timedelta

import pytest
from rich.console import Console

from cli.people import ask
from unspool import study
from unspool.cli.study.file import columns
from unspool.cli.study.screen import StudyScreen
from unspool.cli.study.status import rate

#: 2 models × 2 rates of dropout × 3 seeds on a generated graph.
SMALL = ["--dataset", "contextual_sbm", "--seeds", "3", "--epochs", "15", "--hidden", "8", "--dropout", "0.2,0.5"]


def run(out, *more, models=("GCN", "MLP"), code=0):
    return ask("study", "run", *models, *SMALL, "--jobs", "1", "--out", out, *more, code=code)


def lines(*arguments):
    return [json.loads(line) for line in ask("study", *arguments, "--json").splitlines()]


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    out = tmp_path_factory.mktemp("study") / "study.db"
    run(out)
    return out


def rows(file):
    with study.Store.open(file, study.Access.READ) as store:
        return store.rows()


def test_a_run_says_what_it_does_and_what_came_of_it(tmp_path):
    text = run(tmp_path / "new" / "study.db")
    assert "contextual_sbm: 1000 nodes" in text
    assert "GCN: 2 settings × 3 seeds\nMLP: 2 settings × 3 seeds" in text
    assert f"12 trials into {tmp_path}/new/study.db; on cpu" in text
    assert "best by validation: GCN on contextual_sbm, dropout" in text
    for command in ("best", "show", "compare", "importance", "plot"):
        assert f"\n  unspool study {command} {tmp_path}/new/study.db" in text
    assert len(rows(tmp_path / "new" / "study.db")) == 12


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
    # In another order and in other packs, the same numbers.
    agree(out, file)


def agree(one, other):
    """The same trials with the same results; losses may be rounded another way in another pack."""
    a, b = ({row.key: row.result for row in rows(file)} for file in (one, other))
    assert {k: (r.epoch, r.test_score) for k, r in a.items()} == {k: (r.epoch, r.test_score) for k, r in b.items()}
    assert {k: r.valid_loss for k, r in a.items()} == pytest.approx({k: r.valid_loss for k, r in b.items()}, rel=1e-5)


def test_several_processes_give_the_same_numbers(file, tmp_path):
    text = ask("study", "run", "GCN", "MLP", *SMALL, "--jobs", "2", "--out", tmp_path / "two.db")
    assert "on cpu, 2 processes" in text
    agree(tmp_path / "two.db", file)


def test_time_that_is_up_leaves_the_rest(tmp_path):
    text = run(tmp_path / "study.db", "--seconds", "0.0001")
    assert "0 of 12 trials have ended, 12 wait; run the same command again to continue" in text
    assert "nobody is training; run the same command again to train the 12 that wait" in ask(
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
    ready, broken = study.Provider.__call__, [1]

    def provide(self, trial):
        if trial.seed in broken:
            raise ValueError("the sun was in my eyes")
        return ready(self, trial)

    monkeypatch.setattr(study.Provider, "__call__", provide)
    out = tmp_path / "study.db"
    text = run(out)
    assert "4 trials failed" in text
    assert "trial 2 and 3 more: ValueError: the sun was in my eyes" in text
    assert "4 failed" not in ask("study", "best", out)
    assert "trial 2 and 3 more" in ask("study", "status", out)
    assert "failed: ValueError: the sun was in my eyes" in ask("study", "show", out, 2)
    assert "4 trials failed" in run(out)  # they count as ended
    broken.clear()
    assert "failed" not in run(out, "--retry-failed")
    broken.extend(range(3))
    told = run(tmp_path / "none.db", "--json", code=1).splitlines()
    assert json.loads(told[-1])["failed"] == 12
    assert json.loads(told[-1])["best"] is None


def test_status_counts(file):
    text = ask("study", "status", file)
    assert text.splitlines()[1].split() == ["contextual_sbm", "0", "0", "12", "0", "12"]
    assert "all trials have ended" in text
    (told,) = lines("status", file)
    assert (told["done"], told["datasets"]["contextual_sbm"]["done"], told["workers"]) == (12, 12, [])
    assert "all trials have ended" in ask("study", "status", file, "--watch")


def test_status_while_others_train(tmp_path, monkeypatch):
    out, heard = tmp_path / "study.db", []
    monkeypatch.setattr(
        StudyScreen, "show", lambda self, now: now.running and not heard and heard.append(lines("status", out)[0])
    )
    run(out, "--at-once", "2")
    (told,) = heard
    (worker,) = told["workers"]
    assert worker["pid"] == os.getpid()
    assert 0 < worker["trials"] == told["running"]


def test_the_speed_is_that_of_the_last_minute(file):
    held = rows(file)
    assert rate(held) > 0
    last = max(row.finished_at for row in held)
    assert rate(held, datetime.fromisoformat(last) + timedelta(hours=1)) is None


def test_best_is_chosen_by_validation(file):
    told, held = lines("best", file), rows(file)
    assert len(told) == 4
    assert [one["valid_mean"] for one in told] == sorted((one["valid_mean"] for one in told), reverse=True)
    for one in told:
        mine = [
            row.result
            for row in held
            if row.described["model"] == one["model"]
            and row.described["settings"]["dropout"] == one["settings"]["dropout"]
        ]
        assert one["test_mean"] == pytest.approx(statistics.fmean(result.test_score for result in mine))
        assert one["test_std"] == pytest.approx(statistics.stdev(result.test_score for result in mine))
    assert len(lines("best", file, "--top", 2)) == 2
    assert [one["model"] for one in lines("best", file, "--each", "model")] == ["GCN", "MLP"]
    assert {one["model"] for one in lines("best", file, "--where", "model=mlp")} == {"MLP"}
    assert [one["valid_loss"] for one in lines("best", file, "--by", "loss")] == sorted(o["valid_loss"] for o in told)
    (whole,) = lines("best", file, "--over", "seed", "--over", "dropout", "--where", "GCN")
    assert whole["trials"] == 6
    assert "best by validation score: GCN on contextual_sbm" in ask("study", "best", file)
    assert "validation loss" in ask("study", "best", file, "--by", "loss")


def test_a_narrow_terminal_cuts_no_digits_off():
    printed, text = columns("dropout", "validation"), io.StringIO()
    printed.add_row("0.29891234", "82.00 ± 12.73 %")
    Console(file=text, width=12).print(printed)
    assert sorted(text.getvalue().replace("\n", " ").replace(" ", "")) == sorted(
        "dropoutvalidation0.2989123482.00±12.73%"
    )


def test_compare_says_one_sentence(file):
    text = ask("study", "compare", file, "GCN", "MLP")
    assert len(text.splitlines()) == 1
    assert text.startswith("GCN ")
    assert "95 % interval" in text
    assert "GCN (dropout 0.2)" in ask("study", "compare", file, "GCN,dropout=0.2", "GCN,dropout=0.5")
    assert "Wilcoxon" in ask("study", "compare", file, "gcn", "mlp", "--test", "wilcoxon", "--confidence", "0.9")
    (told,) = lines("compare", file, "--all")
    assert told["p_corrected"] is not None
    assert told["difference"] == pytest.approx(told["a"]["test_mean"] - told["b"]["test_mean"], abs=1e-6)


def test_importance_sums_to_one(file):
    (told,) = lines("importance", file)
    assert sum(told["shares"].values()) + sum(p["share"] for p in told["interactions"]) + told["rest"] == pytest.approx(
        1
    )
    assert "model" in ask("study", "importance", file)
    assert list(lines("importance", file, "--where", "GCN", "--by", "loss")[0]["shares"]) == ["dropout"]


def test_pictures(file, tmp_path):
    text = ask("study", "plot", file, "--out", tmp_path / "a")
    assert text.split() == [
        str(tmp_path / "a" / f"{name}.png") for name in ("leaders", "choices", "importance", "grid")
    ]
    assert all((tmp_path / "a" / f"{name}.png").read_bytes()[1:4] == b"PNG" for name in ("leaders", "grid"))
    ask("study", "plot", file, "--out", tmp_path / "b", "--format", "svg", "--where", "GCN", "--where", "dropout=0.2")
    assert [path.name for path in (tmp_path / "b").iterdir()] == ["leaders.svg"]  # nothing varies


@pytest.mark.parametrize("ending", ["csv", "json", "jsonl", "parquet"])
def test_export(file, tmp_path, ending):
    out = tmp_path / f"trials.{ending}"
    assert ask("study", "export", file, out) == f"12 trials in {out}\n"
    if ending == "csv":
        with out.open(newline="") as held:
            told = list(csv.DictReader(held))
        assert [float(one["test_score"]) for one in told] == [row.result.test_score for row in rows(file)]


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
