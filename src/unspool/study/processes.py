"""One study, several processes: each claims what is free, and the store keeps them apart."""

from __future__ import annotations

import pickle
import time
from collections.abc import Callable
from contextlib import suppress
from multiprocessing import get_context
from typing import Any

import torch

from unspool import parallel
from unspool.errors import IncompatibleError
from unspool.study.engine import train_trials
from unspool.study.engine.progress import EVERY, Progress, pause_after
from unspool.study.store import Glance, Status
from unspool.train import TrialLoader
from unspool.train.threads import asked_threads, use_threads


def train_together(
    tracker: Any, loader: TrialLoader, jobs: int, watch: Callable[[Progress], None] | None, **options: Any
) -> None:
    """Let several processes train the trials of a tracker, and watch them.

    On small graphs one thread trains a batch nearly as fast as two, so the other cores take batches of their own. An interrupt is
    passed on; whoever dies leaves its unfinished trials to the next run.

    Args:
        tracker: a :class:`~unspool.study.study.StoreTracker` on a file.
        loader: makes trials ready.
        jobs: how many processes.
        watch: told how it is getting on.
        options: of :func:`~unspool.study.engine.train_trials`.
    """
    context = get_context("spawn")
    threads = max(torch.get_num_threads() // jobs, 1)  # of each process, on graphs that take several
    asked = asked_threads()
    workers = [context.Process(target=_work, args=(tracker, loader, (threads, asked), options)) for _ in range(jobs)]
    seen = _Seen(tracker)
    try:
        parallel.start(workers)
    except (pickle.PicklingError, AttributeError, TypeError) as problem:
        raise IncompatibleError(
            f"something cannot go to other processes ({problem}); give a loss and models that have a name in a module, or jobs=1"
        ) from problem
    pause = EVERY
    try:
        while any(worker.is_alive() for worker in workers):
            time.sleep(pause)
            if watch is not None:
                looked = time.process_time()
                watch(seen())
                pause = pause_after(time.process_time() - looked)
    except KeyboardInterrupt:
        parallel.tell_to_end(workers)
        raise
    finally:
        parallel.wait_for(workers)
    if all(worker.exitcode for worker in workers):
        raise IncompatibleError(
            f"all {jobs} processes ended early (code {workers[0].exitcode}); call from under if __name__ == '__main__', or with jobs=1 to see other reasons"
        )
    if watch is not None:
        watch(seen())
    lost = sum(worker.exitcode != 0 for worker in workers)
    left = seen.waiting() if lost else 0
    if left:
        raise IncompatibleError(
            f"{lost} of {jobs} processes ended early and left {left} trials; run again to train them, with fewer jobs if memory is short"
        )


def _work(tracker: Any, loader: TrialLoader, threads: tuple[int, int | None], options: dict[str, Any]) -> None:
    torch.set_num_threads(threads[0])
    with suppress(KeyboardInterrupt), use_threads(threads[1]):
        parallel.begin()
        train_trials(tracker.trials, loader.prepare, tracker, **options)


class _Seen:
    """How far the trials of a tracker are, from their store; rates count what ended since this was made."""

    def __init__(self, tracker: Any) -> None:
        self._store, self._names = tracker.store, {key: trial for trial, key in tracker.keys.items()}
        self._began = time.monotonic()
        self._before = {one.key for one in self._glances() if one.ended}

    def _glances(self) -> list[Glance]:
        return [one for one in self._store.glances() if one.key in self._names]

    def waiting(self) -> int:
        """Trials that nobody trains."""
        return sum(one.status is Status.WAITING for one in self._glances())

    def __call__(self) -> Progress:
        seen, spent = self._glances(), max(time.monotonic() - self._began, 1e-9)
        done = [one for one in seen if one.ended]
        new = [one for one in done if one.key not in self._before]
        scored = [(one.valid_score, one.key) for one in done if one.valid_score is not None]
        best = None if not scored else (max(scored)[0], self._names[max(scored)[1]])
        epochs = sum(one.epochs for one in new if one.epochs is not None)
        left = None if not new else spent * (len(seen) - len(done)) / len(new)
        running = sum(one.status is Status.RUNNING for one in seen)
        return Progress(len(done), len(seen), running, epochs / spent, len(new) / spent, best, left)
