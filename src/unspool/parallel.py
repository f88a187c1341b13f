"""Processes that work side by side: how many, how they start, are told to end, report, and fail."""

from __future__ import annotations

import os
import queue
import signal
import threading
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from multiprocessing import get_context, parent_process
from typing import Any

from unspool.interrupt import deferred_interrupt, note_for_good

#: Fewer epochs than this in all are done before a second process has started.
WORTHWHILE = 2_000
#: Seconds after which a process that was told to end is killed.
PATIENCE = 5.0

#: What a worker reports: an event by name, with its facts.
Event = dict[str, Any]
Work = Callable[[Any, list[Any], Callable[[Event], None]], None]


class WorkerFailed(ValueError):
    """A worker failed; the message is its own."""


def cores() -> int:
    """How many this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1)


def worker_count(asked: int | None, tasks: int, epochs: int, single_threaded: bool) -> int:
    """How many processes train: as many as were asked for, or one per core where one thread trains a task and there is enough to do.

    Args:
        asked: by the user; None leaves it to this rule.
        tasks: what there is to share out.
        epochs: of all tasks together.
        single_threaded: whether a task uses one thread of a CPU, so that the other cores are free.

    Example:
        >>> worker_count(3, tasks=2, epochs=10, single_threaded=True), worker_count(None, 10, 100, True)
        (2, 1)
    """
    if asked is not None:
        return max(min(asked, tasks), 1)
    return min(cores(), tasks) if single_threaded and tasks > 1 and epochs >= WORTHWHILE else 1


def start(processes: Sequence[Any]) -> None:
    """Start processes that ignore Ctrl-C, which a terminal sends to all: whoever started them decides what it means.

    Each of them calls :func:`begin` when it is ready; an interrupt reaches them by :func:`tell_to_end`.
    """
    ours = threading.current_thread() is threading.main_thread()
    before = signal.signal(signal.SIGINT, signal.SIG_IGN) if ours else None
    try:
        for process in processes:
            process.start()
    finally:
        if ours:
            signal.signal(signal.SIGINT, before)


def begin() -> None:
    """In a process that was started: note being told to end from now on, and end at once when the parent is gone."""
    threading.Thread(target=_leave_with_parent, daemon=True).start()
    note_for_good()


def tell_to_end(processes: Sequence[Any]) -> None:
    """Tell processes to end: one that has begun keeps what it has, one that has not has nothing to lose."""
    for process in processes:
        if process.pid is not None and process.is_alive():
            with suppress(ProcessLookupError):
                os.kill(process.pid, signal.SIGTERM)


def wait_for(processes: Sequence[Any], seconds: float | None = None) -> None:
    """Wait until processes have ended; those that take longer than so many seconds are killed."""
    for process in processes:
        process.join(seconds)
        if process.is_alive():
            process.kill()
            process.join()


def run_workers(
    work: Work, order: Any, tasks: Sequence[Any], count: int, explain: Callable[[Exception], str | None]
) -> Iterator[Event]:
    """Share tasks out to processes, and give what they report.

    An interrupt is passed on, and the workers finish as they would alone. One that fails makes the others end.

    Args:
        work: called in each process with the order, its tasks, and what to call with each event.
        order: whatever the work needs; it is pickled.
        tasks: dealt out in turn.
        count: how many processes.
        explain: what is said of an exception; None where its traceback is wanted.
    """
    context = get_context("spawn")
    events: Any = context.Queue()
    shares = [list(tasks[k::count]) for k in range(min(count, len(tasks)))]
    workers = [
        context.Process(target=_worker, args=(work, order, share, number, events, explain))
        for number, share in enumerate(shares)
    ]
    start(workers)
    done: set[int] = set()
    told = False
    try:
        with deferred_interrupt() as interrupt:
            while len(done) < len(workers):
                if interrupt.asked and not told:
                    tell_to_end(workers)
                    told = True
                try:
                    event: Event = events.get(timeout=0.5)
                except queue.Empty:
                    done |= _gone(workers, done, told)
                    continue
                if event["event"] == "failed":
                    raise WorkerFailed(event["sentence"])
                if event["event"] == "done":
                    done.add(event["worker"])
                else:
                    yield event
    finally:
        if len(done) < len(workers):
            tell_to_end(workers)
        wait_for(workers, PATIENCE if len(done) < len(workers) else None)


def _worker(
    work: Work, order: Any, tasks: list[Any], number: int, events: Any, explain: Callable[[Exception], str | None]
) -> None:
    def tell(event: Event) -> None:
        events.put({"worker": number, **event})

    try:
        begin()
        work(order, tasks, tell)
        tell({"event": "done"})
    except Exception as problem:
        said = explain(problem)
        tell({"event": "failed", "sentence": traceback.format_exc() if said is None else said})


def _gone(workers: list[Any], done: set[int], told: bool) -> set[int]:
    """Workers that ended without a word: before they had begun, if they were told to end; else it is a failure."""
    gone = {number for number, worker in enumerate(workers) if number not in done and not worker.is_alive()}
    codes = [workers[number].exitcode for number in sorted(gone) if workers[number].exitcode != 0]
    if codes and not told:
        raise WorkerFailed(
            f"a process that trained seeds ended with code {codes[0]}; run again with --resume, and --jobs 1 if memory is short"
        )
    return gone if told else set()


def _leave_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
