"""A run that is told to end (SIGTERM) ends as after Ctrl-C: nothing is lost, nothing is left claimed.

Also where a script started it with ``&``: such a process ignores Ctrl-C, and so do those that it starts.
"""

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager

import pytest

from unspool.models.pretrained import load_with_card
from unspool.study import Status, Store

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(os.name != "posix", reason="signals of this kind are those of POSIX"),
]

#: What Ctrl-C does to a process: nothing where a script started it with &.
DEAF, HEARING = "SIG_IGN", "default_int_handler"


@contextmanager
def started(*words, ctrl_c=DEAF):
    """The command as a process of its own, ended in any case."""
    code = f"import signal; signal.signal(signal.SIGINT, signal.{ctrl_c}); from unspool.cli.main import main; main()"
    with subprocess.Popen(
        [sys.executable, "-c", code, *map(str, words)],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True,
    ) as run:  # fmt: skip
        try:
            yield run
        finally:
            if run.poll() is None:
                os.killpg(run.pid, signal.SIGKILL)


def until(there, run):
    """Wait for something that a run does."""
    end = time.monotonic() + 120
    while time.monotonic() < end and run.poll() is None:
        if there():
            return
        time.sleep(0.05)
    raise AssertionError(run.communicate()[0] if run.poll() is not None else "two minutes were not enough")


def a_trial_has_ended(path):
    if not path.exists():
        return False
    with Store(path) as store:
        return any(row.status is Status.DONE for row in store.rows())


def nothing_is_claimed(path):
    with Store(path) as store:
        statuses = {row.status for row in store.rows()}
    assert Status.DONE in statuses
    assert Status.RUNNING not in statuses


@pytest.mark.parametrize("ctrl_c", [DEAF, HEARING])
def test_a_run_that_is_told_to_end_keeps_what_it_has(tmp_path, ctrl_c):
    words = ["reproduce", "table2", "--preset", "paper", "--datasets", "citeseer", "--models", "SGC", "--seeds", "120"]
    jobs = "1" if ctrl_c == HEARING else "2"
    more = ["--epochs", "40", "--out", tmp_path, "--jobs", jobs, "--device", "cpu"]
    with started(*words, *more, ctrl_c=ctrl_c) as run:
        until(lambda: a_trial_has_ended(tmp_path / "study.db"), run)
        run.send_signal(signal.SIGTERM)
        said, _ = run.communicate(timeout=120)
    assert run.returncode == 130, said
    assert "what has ended is kept" in said
    nothing_is_claimed(tmp_path / "study.db")
    if jobs == "1":  # what others trained is known when they have reported
        told = json.loads((tmp_path / "results" / "machine.json").read_text(encoding="utf-8"))["experiments"]["table2"]
        assert told["trials"] > 0


@pytest.mark.slow
def test_a_study_of_a_script_ends(tmp_path):
    file = tmp_path / "study.db"
    words = ["study", "run", "SGC", "--dataset", "contextual_sbm", "--setting", "lr=0.1,0.2", "--seeds", "30"]
    with started(*words, "--epochs", "400", "--jobs", "1", "--device", "cpu", "--out", file) as run:
        until(lambda: a_trial_has_ended(file), run)
        run.send_signal(signal.SIGTERM)
        said, _ = run.communicate(timeout=120)
    assert run.returncode == 130, said
    nothing_is_claimed(file)


#: A training that goes on until somebody ends it.
ENDLESS = ("train", "SGC", "--dataset", "contextual_sbm", "--epochs", 1_000_000, "--patience", 1_000_000, "--seeds", 2)


@pytest.mark.parametrize("jobs", [pytest.param(1, marks=pytest.mark.slow), 2])
def test_a_training_of_a_script_ends_and_keeps_the_best_epoch(tmp_path, jobs):
    with started(*ENDLESS, "--jobs", jobs, "--no-report", "--snapshot-every", "0.2", "--out", tmp_path) as run:
        until(lambda: all((tmp_path / f"seed{seed}" / "run.pt").exists() for seed in range(jobs)), run)
        run.send_signal(signal.SIGTERM)
        said, _ = run.communicate(timeout=120)
    assert run.returncode == 130, said
    assert "--resume continues" in said
    for seed in range(jobs):
        card = load_with_card(tmp_path / f"seed{seed}")[1]
        assert card["metrics"]["ending"] == "interrupted"
        assert card["metrics"]["epochs"] >= card["metrics"]["epoch"] >= 1


@pytest.mark.slow
def test_a_whole_group_that_is_told_to_end_does_not_fail(tmp_path):
    """Clusters tell every process of a job, not the first alone."""
    with started(*ENDLESS, "--jobs", 2, "--no-report", "--snapshot-every", "0.2", "--out", tmp_path) as run:
        until((tmp_path / "seed1" / "run.pt").exists, run)
        os.killpg(run.pid, signal.SIGTERM)
        said, _ = run.communicate(timeout=120)
    assert run.returncode == 130, said
    assert "Traceback" not in said
