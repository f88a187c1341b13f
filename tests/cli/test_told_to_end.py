"""A run that is told to end (SIGTERM) ends as after Ctrl-C: nothing is lost, nothing is left claimed."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from unspool.study import Status, Store


@pytest.mark.skipif(os.name != "posix", reason="signals of this kind are those of POSIX")
@pytest.mark.parametrize("jobs", ["1", "2"])
def test_a_run_that_is_told_to_end_keeps_what_it_has(tmp_path, jobs):
    words = [
        "reproduce",
        "table2",
        "--preset",
        "paper",
        "--datasets",
        "citeseer",
        "--models",
        "SGC",
        "--seeds",
        "60",
        "--epochs",
        "400",
    ]
    code = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); from unspool.cli.main import main; main()"
    with subprocess.Popen(
        [sys.executable, "-c", code, *words, "--out", tmp_path, "--jobs", jobs, "--device", "cpu"],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    ) as run:  # fmt: skip
        _wait_for_a_result(tmp_path / "study.db", run)
        run.send_signal(signal.SIGTERM)
        said, _ = run.communicate(timeout=120)
    assert run.returncode == 130, said
    assert "what has ended is kept" in said
    with Store(tmp_path / "study.db") as store:
        statuses = [row.status for row in store.rows()]
    assert Status.DONE in statuses
    assert Status.RUNNING not in statuses
    if jobs == "1":  # what others trained is known when they have reported
        told = json.loads((tmp_path / "results" / "machine.json").read_text(encoding="utf-8"))["experiments"]["table2"]
        assert told["trials"] > 0


def _wait_for_a_result(path, run):
    until = time.monotonic() + 120
    while time.monotonic() < until and run.poll() is None:
        if path.exists():
            with Store(path) as store:
                if any(row.status is Status.DONE for row in store.rows()):
                    return
        time.sleep(0.2)
    raise AssertionError(
        f"no trial ended: {run.communicate()[0] if run.poll() is not None else 'two minutes were not enough'}"
    )
