"""Several seeds at once: the same numbers as one after another, and failures in words."""

import os
import signal
import time

import pytest
from click.testing import CliRunner

from unspool.cli import crew
from unspool.cli.crew import Failed, shares, together
from unspool.cli.main import cli


def good(order, seeds, tell):
    for seed in seeds:
        tell({"event": "seed", "seed": seed, "twice": order * seed})


def bad(order, seeds, tell):
    if 1 in seeds:
        raise ValueError("seed 1 is not to my taste; choose another")
    time.sleep(600)  # deaf to everything but a kill


def killed(order, seeds, tell):
    if 1 in seeds:
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(600)  # deaf to everything but a kill


def test_every_seed_is_worked_on_once():
    found = {event["seed"]: event["twice"] for event in together(good, 2, [0, 1, 2, 3, 4], 2)}
    assert found == {0: 0, 1: 2, 2: 4, 3: 6, 4: 8}


@pytest.mark.parametrize(
    ("work", "sentence"),
    [(bad, "seed 1 is not to my taste; choose another"), (killed, "ended with code -9; run again with --resume")],
)
def test_a_member_that_fails_ends_the_others(work, sentence):
    with pytest.raises(Failed, match=sentence):
        list(together(work, None, [0, 1], 2))  # nobody waits for the sleeper


@pytest.mark.parametrize("jobs", [1, 2, 3, 8])
def test_shares_are_even(jobs):
    dealt = shares(list(range(7)), jobs)
    assert sorted(seed for share in dealt for seed in share) == list(range(7))
    assert max(map(len, dealt)) - min(map(len, dealt)) <= 1


def test_at_once_and_one_after_another_agree(tmp_path):
    wish = ["train", "SGC", "--epochs", "5", "--seeds", "3", "--no-report"]
    for name, jobs in (("one", "1"), ("many", "2")):
        done = CliRunner().invoke(cli, [*wish, "--jobs", jobs, "--out", str(tmp_path / name)])
        assert done.exit_code == 0, done.output
    for seed in range(3):
        a, b = (tmp_path / name / f"seed{seed}" for name in ("one", "many"))
        assert (a / "history.csv").read_text() == (b / "history.csv").read_text()
        assert [f.name for f in a.glob("*.safetensors")] == [f.name for f in b.glob("*.safetensors")]


def test_there_is_a_core():
    assert crew.cores() >= 1
