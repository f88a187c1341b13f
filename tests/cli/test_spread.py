"""unspool train --spread: several processes, one job; what they print, keep, and how they end."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
import warnings

import pytest

import unspool as us
from cli.people import ask, card, refuse
from unspool.cli import main as entry

SBM = ["GPRGNN", "--dataset", "contextual_sbm", "--no-report", "--no-baselines"]


def told(rank, size, port):
    """What torchrun tells a process."""
    found = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": size, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    return {name: str(value) for name, value in found.items()}


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def forked(folder, size, *words, others=None):
    """The command in forks of this process; their exit codes, and what each printed. ``others`` is what all but the first are told."""
    port, started = free_port(), []
    for rank in range(size):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            pid = os.fork()
        if pid == 0:
            _run(rank, size, port, folder / f"{rank}.txt", others if rank and others else words)
        started.append(pid)
    codes = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in started]
    return codes, [(folder / f"{rank}.txt").read_text() for rank in range(size)]


def _run(rank, size, port, output, words):
    code = 1
    try:
        os.environ.update(told(rank, size, port))
        sys.stdout = sys.stderr = output.open("w")
        sys.argv = ["unspool", "train", *map(str, words)]
        entry.main()
    except SystemExit as end:
        code = end.code
    except BaseException as problem:
        print(repr(problem))
    sys.stdout.flush()
    os._exit(code)


def seeds(text):
    lines = [json.loads(line) for line in text.splitlines()]
    return {line["seed"]: line for line in lines if line["event"] == "seed"}


@pytest.mark.long
def test_two_processes_train_what_one_trains(tmp_path):
    words = [*SBM, "--epochs", 6, "--seeds", 2, "--json"]
    alone = seeds(ask("train", *words, "--jobs", 1, "--out", tmp_path / "alone"))
    codes, (first, second) = forked(tmp_path, 2, *words, "--out", tmp_path / "both", "--spread", "columns")
    assert (codes, second) == ([0, 0], ""), first + second
    for seed, known in alone.items():
        found = seeds(first)[seed]
        assert found["valid_score"] == known["valid_score"]
        assert abs(found["valid_loss"] - known["valid_loss"]) <= 1e-6
    assert card(tmp_path / "both", 1)["spread"] == "columns over 2 processes"
    assert us.load(tmp_path / "both" / "seed0").card["metrics"]["epochs"] == 6


@pytest.mark.parametrize(
    "words", [("PPNP", *SBM[1:], "--spread", "rows"), ("GCN", *SBM[1:]), ("GCN", "--spread", "rowz")]
)
def test_what_is_wrong_is_said_once_and_ends_all(words, tmp_path):
    codes, (first, second) = forked(tmp_path, 2, *words, "--epochs", 2, "--out", tmp_path / "out")
    assert (codes, second) == ([2, 2], "")
    said = ("PPNP cannot run on a graph that is spread", "torchrun started 2 processes", "Invalid value for '--spread'")
    assert sum(sentence in first for sentence in said) == 1
    assert "Traceback" not in first
    assert not (tmp_path / "out").exists()


def test_the_leading_process_says_why_another_one_ended(tmp_path):
    words = ["GCN", *SBM[1:], "--epochs", 2, "--out", tmp_path / "out", "--spread", "rows"]
    others = ["GCN", "--edges", tmp_path / "none.csv", *words[-4:]]
    codes, (first, second) = forked(tmp_path, 2, *words, others=others)
    assert (codes, second) == ([2, 2], "")
    assert first.splitlines()[-1] == f"unspool: process 1: {tmp_path}/none.csv does not exist; check the path"


def test_the_way_to_start_it_is_named(tmp_path, monkeypatch):
    monkeypatch.delenv("RANK", raising=False)
    words = ["train", *SBM, "--out", tmp_path / "out", "--spread", "rows"]
    assert "torchrun --nproc-per-node 4 -m unspool train" in refuse(*words)
    assert refuse(*words, "--jobs", 2).startswith("--jobs 2: expected 1 with --spread rows")
    for name, value in told(0, 2, 1).items():
        monkeypatch.setenv(name, str(value))
    alone = refuse(*words[:-2])
    assert alone.startswith("torchrun started 2 processes, and without --spread each would train the same by itself")
    assert not (tmp_path / "out").exists()


def popen(rank, size, port, *words):
    command = [sys.executable, "-m", "unspool", "train", *map(str, words)]
    env = {**os.environ, **told(rank, size, port), "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_whoever_ends_or_is_told_to_ends_all_and_resume_goes_on(how, tmp_path):
    out, port = tmp_path / "out", free_port()
    words = [*SBM, "--epochs", 1500, "--stop", "never", "--snapshot-every", 0.2, "--out", out]
    started = [popen(rank, 2, port, *words, "--spread", "rows") for rank in range(2)]
    while not (out / "seed0" / "run.pt").exists():
        assert started[0].poll() is None, started[0].communicate()[0]
        time.sleep(0.1)
    os.kill(started[1].pid, how)
    ended = time.monotonic()
    printed = started[0].communicate(timeout=60)[0]
    assert time.monotonic() - ended < 60
    if how == signal.SIGKILL:
        assert started[0].returncode == 2
        assert "unspool: another of the 2 processes ended" in printed.strip().splitlines()[-1]
    else:
        assert started[0].returncode == started[1].wait() == 130
        assert "--resume continues" in printed
    started[1].communicate()
    text = ask("train", *words[:-2], "--out", out, "--resume", "--json")
    assert seeds(text)[0]["epochs"] == 1500


@pytest.mark.slow
def test_torchrun_starts_it(tmp_path):
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    words = ["-m", "unspool", "train", *SBM, "--epochs", "5", "--out", str(tmp_path / "out"), "--spread", "rows"]
    env = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run([*launcher, *words], env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "one graph, spread by rows over 2 processes" in done.stdout
    assert us.load(tmp_path / "out" / "seed0").card["metrics"]["epochs"] == 5
