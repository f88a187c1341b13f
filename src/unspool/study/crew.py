"""One study, several processes: each claims what is free, and the store keeps them apart."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from multiprocessing import get_context, parent_process
from typing import Any

import torch

from unspool.refusal import Refusal
from unspool.study.engine import train_trials
from unspool.study.engine.progress import EVERY, Progress
from unspool.study.provide import Provider
from unspool.study.store import Row, Status


def train_together(
    ledger: Any, provide: Provider, jobs: int, watch: Callable[[Progress], None] | None, **options: Any
) -> None:
    """Let several processes train the trials of a ledger, and watch them.

    On small graphs one thread trains a pack nearly as fast as two, so the other cores take packs of their own. An interrupt is
    passed on; whoever dies leaves its unfinished trials to the next run.

    Args:
        ledger: a :class:`~unspool.study.run.StoreLedger` on a file.
        provide: makes trials ready.
        jobs: how many processes.
        watch: told how it is getting on.
        options: of :func:`~unspool.study.engine.train_trials`.
    """
    context = get_context("spawn")
    threads = max(torch.get_num_threads() // jobs, 1)
    crew = [context.Process(target=_work, args=(ledger, provide, threads, options)) for _ in range(jobs)]
    began = time.monotonic()
    for member in crew:
        member.start()
    try:
        while any(member.is_alive() for member in crew):
            time.sleep(EVERY)
            if watch is not None:
                watch(_seen(ledger, time.monotonic() - began))
    except KeyboardInterrupt:
        for member in crew:
            if member.pid is not None and member.is_alive():
                with suppress(ProcessLookupError):
                    os.kill(member.pid, signal.SIGINT)
        raise
    finally:
        for member in crew:
            member.join()
    if all(member.exitcode for member in crew):
        raise Refusal(
            f"all {jobs} processes ended early (code {crew[0].exitcode}); run with jobs=1 to see why, or with fewer if memory is short"
        )
    if watch is not None:
        watch(_seen(ledger, time.monotonic() - began))


def _work(ledger: Any, provide: Provider, threads: int, options: dict[str, Any]) -> None:
    threading.Thread(target=_leave_with_parent, daemon=True).start()
    torch.set_num_threads(threads)
    with suppress(KeyboardInterrupt):
        train_trials(ledger.trials, provide, ledger, **options)


def _leave_with_parent() -> None:
    """End when the process that started this one is gone."""
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _seen(ledger: Any, seconds: float) -> Progress:
    """How far the trials of a ledger are, from their store."""
    mine = set(ledger.keys.values())
    rows: list[Row] = [row for row in ledger.store.rows() if row.key in mine]
    done = [row for row in rows if row.status in (Status.DONE, Status.FAILED)]
    running = sum(row.status is Status.RUNNING for row in rows)
    scored = [
        (row.result.valid_score, row.key) for row in done if row.result is not None and row.result.valid_score >= 0
    ]
    epochs = sum(row.result.epochs for row in done if row.result is not None)
    names = {key: trial for trial, key in ledger.keys.items()}
    best = None if not scored else (max(scored)[0], names[max(scored)[1]])
    left = None if not done else seconds * (len(rows) - len(done)) / len(done)
    return Progress(len(done), len(rows), running, epochs / seconds, len(done) / seconds, best, left)
