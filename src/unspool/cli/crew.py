"""Several seeds at once, in processes of their own: on small graphs one thread trains a seed, and the other cores are free."""

from __future__ import annotations

import os
import queue
import traceback
from collections.abc import Callable, Iterator
from multiprocessing import get_context
from typing import Any

from unspool.cli.sentence import sentence
from unspool.train import processes
from unspool.train.interrupt import deferred_interrupt

#: Fewer epochs than this in all are done before a second process has started.
WORTHWHILE = 1000

#: Seconds after which a member that was told to end is killed.
PATIENCE = 5.0

#: What a member of the crew says: an event by name, with its facts.
Event = dict[str, Any]
Work = Callable[[Any, list[int], Callable[[Event], None]], None]


class Failed(ValueError):
    """A member of the crew came to grief, in its own words."""


def cores() -> int:
    """How many this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1)


def shares(seeds: list[int], jobs: int) -> list[list[int]]:
    """Seeds dealt out in turn.

    Example:
        >>> shares([0, 1, 2, 3, 4], 2)
        [[0, 2, 4], [1, 3]]
    """
    return [seeds[i::jobs] for i in range(min(jobs, len(seeds)))]


def together(work: Work, order: Any, seeds: list[int], jobs: int) -> Iterator[Event]:
    """Let a crew work on seeds, and hear what happens.

    An interrupt is passed on, and the crew finishes as it would alone. A member that fails makes the others end.

    Args:
        work: called in each process with the order, its seeds, and what to call with each event.
        order: whatever the work needs; it is pickled.
        seeds: all seeds.
        jobs: how many processes.
    """
    context = get_context("spawn")
    events: Any = context.Queue()
    crew = [
        context.Process(target=_member, args=(work, order, share, number, events))
        for number, share in enumerate(shares(seeds, jobs))
    ]
    processes.start(crew)
    done: set[int] = set()
    passed_on = False
    try:
        with deferred_interrupt() as interrupt:
            while len(done) < len(crew):
                if interrupt.asked and not passed_on:
                    processes.pass_on(crew)
                    passed_on = True
                try:
                    event: Event = events.get(timeout=0.5)
                except queue.Empty:
                    done |= _gone(crew, done, told=passed_on)
                    continue
                if event["event"] == "failed":
                    raise Failed(event["sentence"])
                if event["event"] == "done":
                    done.add(event["member"])
                else:
                    yield event
    finally:
        if len(done) < len(crew):
            processes.pass_on(crew)
        processes.wait_for(crew, PATIENCE if len(done) < len(crew) else None)


def _member(work: Work, order: Any, seeds: list[int], number: int, events: Any) -> None:
    def tell(event: Event) -> None:
        events.put({"member": number, **event})

    try:
        processes.begin()
        work(order, seeds, tell)
        tell({"event": "done"})
    except Exception as problem:
        said = sentence(problem)
        tell({"event": "failed", "sentence": traceback.format_exc() if said is None else said})


def _gone(crew: list[Any], done: set[int], told: bool) -> set[int]:
    """Members that ended without a word: before they had begun, if they were told to end; else it is a failure."""
    gone = {number for number, member in enumerate(crew) if number not in done and not member.is_alive()}
    codes = [crew[number].exitcode for number in sorted(gone) if crew[number].exitcode != 0]
    if codes and not told:
        raise Failed(
            f"a process that trained seeds ended with code {codes[0]}; run again with --resume, and --jobs 1 if memory is short"
        )
    return gone if told else set()
