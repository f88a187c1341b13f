"""Run by test_killed.py in a process of its own: train, be killed again and again, come back.

Forks children that run ``unspool train --resume`` and kills each after a random time, so that moments inside snapshots and
inside the writing of the finished folder are hit too; then others that train anew over a finished model. Prints how many were
killed.
"""

import contextlib
import os
import random
import signal
import sys
import time
from pathlib import Path

import torch

from unspool.cli.main import cli
from unspool.models.pretrained import load_with_card

torch.set_num_threads(1)


def command(out, *more):
    width = [] if "--hidden" in more else ["--hidden", "8"]
    return [
        "train", "GCN", "--dataset", "contextual_sbm", "--epochs", "120", "--seeds", "2", *width, "--out", str(out),
        "--snapshot-every", "0", "--no-report", "--quiet", *more,
    ]  # fmt: skip


def child(out, *more):
    pid = os.fork()
    if pid:
        return pid
    status = 1
    with contextlib.suppress(SystemExit):
        try:
            cli(command(out, *more), standalone_mode=False)
            status = 0
        except BaseException as problem:  # a resume that fails must be seen by the parent
            print(f"{type(problem).__name__}: {problem}", flush=True)
    os._exit(status)


def main():
    out, kills = Path(sys.argv[1]), int(sys.argv[2])
    cli(command(out / "warm", "--epochs", "1"), standalone_mode=False)  # loads what is loaded once
    began = time.monotonic()
    cli(command(out / "whole"), standalone_mode=False)
    whole = time.monotonic() - began
    rng, killed = random.Random(0), 0
    for _ in range(kills * 5):
        pid = child(out / "cut", "--resume")
        time.sleep(rng.uniform(0.02, 0.25) * whole)
        os.kill(pid, signal.SIGKILL)
        _, status = os.waitpid(pid, 0)
        if os.WIFSIGNALED(status):
            killed += 1
        elif os.WEXITSTATUS(status):
            sys.exit("a resume failed")
        else:  # it got through: begin again, so that every kill finds work, and wait for less on a machine that became faster
            whole *= 0.8
            for file in sorted((out / "cut").glob("seed*/*")):
                file.unlink()
        if killed >= kills:
            break
    pid = child(out / "cut", "--resume")
    if os.waitpid(pid, 0)[1]:
        sys.exit("the last resume failed")
    print(f"killed {killed}, and over a finished model {over(out / 'over', rng, kills // 2)}")


def over(out, rng, kills):
    """Train other widths over a finished model, and be killed: what is there is the old model or the new one, whole."""
    width, killed = 8, 0
    began = time.monotonic()
    cli(command(out, "--seeds", "1"), standalone_mode=False)
    whole = time.monotonic() - began
    for _ in range(kills * 10):
        wanted = 12 - width
        pid = child(out, "--seeds", "1", "--hidden", str(wanted))
        time.sleep(rng.uniform(0.1, 0.9) * whole)
        os.kill(pid, signal.SIGKILL)
        _, status = os.waitpid(pid, 0)
        if os.WIFSIGNALED(status):
            killed += 1
        elif os.WEXITSTATUS(status):
            sys.exit("training over a finished model failed")
        else:
            whole *= 0.9
        model, card = load_with_card(out / "seed0")
        width = card["settings"]["hidden"]
        if width not in (8, 4) or model.p_pre.layers[0].weight.shape[1] != width:
            sys.exit("old and new are mixed")
        if killed >= kills:
            break
    return killed


if __name__ == "__main__":
    main()
