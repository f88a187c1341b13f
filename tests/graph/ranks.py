"""Processes that work on one graph: forks of the test's own process, which have torch loaded."""

import os
import signal
import sys
import tempfile
import time
import traceback
import warnings
from datetime import timedelta
from pathlib import Path

import torch
from torch import distributed

#: Seconds after which a test has hung.
LIMIT = 120


def on_ranks(size, work, gone=()):
    """What ``work(rank)`` gives in each of so many processes; None for those that are expected to be gone before its end."""
    folder = Path(tempfile.mkdtemp())
    started = [_fork(rank, size, folder, work) for rank in range(size)]
    ended = dict(zip(range(size), _waited(started), strict=True))
    failed = [rank for rank, code in ended.items() if code != 0 and rank not in gone]
    told = [(folder / f"{rank}.txt").read_text() for rank in failed]
    assert not failed, "\n".join(told)
    return [None if rank in gone else torch.load(folder / f"{rank}.pt", weights_only=False) for rank in range(size)]


def _fork(rank, size, folder, work):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # newer Pythons warn of forks beside threads; no thread of ours holds anything
        pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        torch.set_num_threads(1)
        how = {"init_method": f"file://{folder}/store", "timeout": timedelta(seconds=60)}
        distributed.init_process_group("gloo", rank=rank, world_size=size, **how)
        torch.save(work(rank), folder / f"{rank}.pt")
        code = 0
    except BaseException:
        (folder / f"{rank}.txt").write_text(traceback.format_exc())
    sys.stdout.flush()
    os._exit(code)


def _waited(pids):
    end, left, codes = time.monotonic() + LIMIT, list(pids), {}
    while left and time.monotonic() < end:
        for pid in list(left):
            done, status = os.waitpid(pid, os.WNOHANG)
            if done:
                codes[pid] = os.waitstatus_to_exitcode(status)
                left.remove(pid)
        time.sleep(0.01)
    for pid in left:
        os.kill(pid, signal.SIGKILL)
        codes[pid] = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return [codes[pid] for pid in pids]


def said(work):
    """The sentence in which something is refused."""
    try:
        work()
    except Exception as problem:
        return f"{type(problem).__name__}: {problem}"
    return "not refused"
