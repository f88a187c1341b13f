"""kill -9 in the middle of a study: what was finished stays, and the end is that of a run that was left alone."""

import os
import signal
import subprocess
import sys
import time

import pytest

from cli.people import ask
from unspool import study

pytestmark = pytest.mark.long


WORK = [
    "study", "run", "GCN", "MLP", "--dataset", "contextual_sbm", "--seeds", "8", "--epochs", "60", "--hidden", "8",
    "--at-once", "2", "--jobs", "1",
]  # fmt: skip


def finished(file):
    """The numbers of all trials that are done; none while there is no file yet."""
    if not file.exists() or not file.stat().st_size:
        return {}
    try:
        with study.Store.open(file, study.Access.READ) as store:
            return {row.key: numbers(row.result) for row in store.rows() if row.result is not None}
    except study.StoreProblem:  # its tables are being made
        return {}


def numbers(result):
    return {name: value for name, value in vars(result).items() if name != "seconds"}


def close(value):
    """Losses may be rounded another way in another pack."""
    return pytest.approx(value, rel=1e-5) if isinstance(value, float) else value


def killed(file, done):
    """Start the study, and kill it when so many trials are done."""
    command = [sys.executable, "-m", "unspool.cli.main", *WORK, "--out", str(file), "--quiet"]
    with subprocess.Popen(command, env={**os.environ, "OMP_NUM_THREADS": "1"}) as work:
        end = time.monotonic() + 60
        while len(finished(file)) < done and work.poll() is None and time.monotonic() < end:
            time.sleep(0.01)
        work.send_signal(signal.SIGKILL)
        assert work.wait() == -signal.SIGKILL
    return finished(file)


def test_killed_and_continued(tmp_path):
    file = tmp_path / "study.db"
    kept = killed(file, done=4)
    assert 4 <= len(kept) < 16
    text = ask("study", "status", file)
    assert f"no process is training; run the same command again to train the {16 - len(kept)} that wait" in text
    assert f"{len(kept)} of them there already" in ask(*WORK, "--out", file)
    assert kept.items() <= finished(file).items()
    ask(*WORK, "--out", tmp_path / "whole.db")
    cut, whole = finished(file), finished(tmp_path / "whole.db")
    assert cut.keys() == whole.keys()
    for key, result in cut.items():
        assert result == {name: close(value) for name, value in whole[key].items()}
    assert not list(tmp_path.glob("*.lock"))
