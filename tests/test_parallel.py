"""Several seeds at once: the same numbers as one after another, and failures in words."""

import os
import signal
import time

import pytest
from click.testing import CliRunner

from unspool.cli.main import cli
from unspool.parallel import WORTHWHILE, WorkerFailed, cores, run_workers, worker_count


def good(order, seeds, tell):
    for seed in seeds:
        tell({"event": "seed", "seed": seed, "twice": order * seed})


def bad(order, seeds, tell):
    if 1 in seeds:
        raise ValueError("seed 1 is not to my taste; choose another")
    time.sleep(600)  # ends by a kill alone


def killed(order, seeds, tell):
    if 1 in seeds:
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(600)  # ends by a kill alone


@pytest.mark.long
def test_every_seed_is_worked_on_once():
    found = {event["seed"]: event["twice"] for event in run_workers(good, 2, [0, 1, 2, 3, 4], 2, str)}
    assert found == {0: 0, 1: 2, 2: 4, 3: 6, 4: 8}


@pytest.mark.long
@pytest.mark.parametrize(
    ("work", "sentence"),
    [(bad, "seed 1 is not to my taste; choose another"), (killed, "ended with code -9; run again with --resume")],
)
def test_a_worker_that_fails_ends_the_others(work, sentence):
    with pytest.raises(WorkerFailed, match=sentence):
        list(run_workers(work, None, [0, 1], 2, str))  # nobody waits for the sleeper


def broken(order, tasks, tell):
    raise RuntimeError("a fault of the program")


def test_what_nobody_explains_comes_with_its_traceback():
    with pytest.raises(WorkerFailed, match="Traceback"):
        list(run_workers(broken, None, [0], 1, nothing))


def nothing(problem):
    return None


def test_how_many_work_is_one_rule():
    assert [worker_count(asked, tasks=3, epochs=10**6, single_threaded=False) for asked in (1, 2, 9)] == [1, 2, 3]
    assert worker_count(None, 8, WORTHWHILE, single_threaded=True) == min(cores(), 8)
    assert worker_count(None, 8, WORTHWHILE - 1, single_threaded=True) == 1
    assert worker_count(None, 1, WORTHWHILE, single_threaded=True) == 1
    assert worker_count(None, 8, WORTHWHILE, single_threaded=False) == 1
    assert cores() >= 1


@pytest.mark.long
def test_at_once_and_one_after_another_agree(tmp_path):
    wish = ["train", "SGC", "--epochs", "5", "--seeds", "3", "--no-report"]
    for name, jobs in (("one", "1"), ("many", "2")):
        done = CliRunner().invoke(cli, [*wish, "--jobs", jobs, "--out", str(tmp_path / name)])
        assert done.exit_code == 0, done.output
    for seed in range(3):
        a, b = (tmp_path / name / f"seed{seed}" for name in ("one", "many"))
        assert (a / "history.csv").read_text() == (b / "history.csv").read_text()
        assert [f.name for f in a.glob("*.safetensors")] == [f.name for f in b.glob("*.safetensors")]
