"""Many trials at once: packs that are filled, refilled and made smaller until every trial has ended."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from typing import Protocol

import torch

from unspool.study.alone import Alone
from unspool.study.course import Course
from unspool.study.groups import open_pack as _open_pack
from unspool.study.groups import signature, sort_trials
from unspool.study.pack import Member, Pack
from unspool.study.progress import Clock, Progress
from unspool.study.room import slots_for
from unspool.study.trial import Result, Trial
from unspool.train.epochs import few_threads
from unspool.train.interrupt import deferred_interrupt

#: Epochs between two looks at the results; on a GPU a look means waiting for it.
CHUNK = {"cpu": 5, "cuda": 25}
#: Trials that are offered to the ledger at once, at least.
_OFFER = 64


class Ledger(Protocol):
    """Who keeps the results, and knows which trials are free."""

    def claim(self, wanted: Sequence[Trial], count: int) -> list[Trial]:
        """Up to ``count`` of these trials, to be trained here; the others are done, or somebody else has them."""
        ...

    def finish(self, ended: Sequence[tuple[Trial, Result]]) -> None:
        """These trials have ended."""
        ...

    def fail(self, trial: Trial, message: str) -> None:
        """This trial cannot be trained."""
        ...

    def release(self, trials: Sequence[Trial]) -> None:
        """These trials were claimed and did not end; others may have them."""
        ...


class Notebook:
    """The simplest ledger: results in memory, everything is free.

    Attributes:
        results: what came of each trial.
        failures: why others could not be trained.

    Example:
        >>> Notebook().results
        {}
    """

    def __init__(self) -> None:
        self.results: dict[Trial, Result] = {}
        self.failures: dict[Trial, str] = {}
        self.held: set[Trial] = set()

    def claim(self, wanted: Sequence[Trial], count: int) -> list[Trial]:
        """The first that are neither held nor ended."""
        free = [t for t in wanted if t not in self.held and t not in self.results and t not in self.failures]
        self.held.update(free[:count])
        return free[:count]

    def finish(self, ended: Sequence[tuple[Trial, Result]]) -> None:
        """Write results down."""
        for trial, result in ended:
            self.results[trial] = result
            self.held.discard(trial)

    def fail(self, trial: Trial, message: str) -> None:
        """Write a failure down."""
        self.failures[trial] = message
        self.held.discard(trial)

    def release(self, trials: Sequence[Trial]) -> None:
        """Let go."""
        self.held.difference_update(trials)


def train_trials(
    trials: Sequence[Trial],
    provide: Callable[[Trial], Member],
    ledger: Ledger,
    *,
    most: int = 1024,
    chunk: int | None = None,
    watch: Callable[[Progress], None] | None = None,
    seconds: float | None = None,
    open_pack: Callable[[Sequence[Member]], Pack] = _open_pack,
) -> None:
    """Train trials, as many at once as are fast; each gives what :func:`unspool.train.repeat.run_seed` gives for it alone.

    Trials that can be stacked are; a slot whose trial has ended takes the next one. What raises fails by itself, the others
    go on. When it is interrupted, unfinished trials are released, and what has ended is in the ledger.

    Args:
        trials: in the order in which they are to begin.
        provide: makes a trial ready. Tasks on the same data must hold the same objects ``x``, ``graph`` and ``target``.
        ledger: who is asked before a trial begins, and told when it ends.
        most: the largest number of trials at once.
        chunk: epochs between two looks at the results; no result depends on it.
        watch: told how it is getting on.
        seconds: when to stop and release what is not finished.
        open_pack: makes packs out of members of one signature.

    Example:
        >>> import unspool as us
        >>> from unspool import datasets, train
        >>> data = datasets.contextual_sbm(nodes=60, classes=2, seed=0)
        >>> task, plan = train.Task.of(data), train.Plan(epochs=20)
        >>> provide = lambda trial: Member(trial, trial.build(data.features.shape[1], 2), task)
        >>> grid = [Trial(us.models.GCN, {"hidden": 8, "dropout": d}, plan, seed=s) for d in (0.2, 0.5) for s in (0, 1, 2)]
        >>> notebook = Notebook()
        >>> train_trials(grid, provide, notebook)
        >>> len(notebook.results), notebook.results[grid[0]].reason
        (6, 'all epochs')
    """
    if most < 1:
        raise ValueError(f"most={most}: at least one trial trains at a time")
    if chunk is not None and chunk < 1:
        raise ValueError(f"chunk={chunk}: expected at least one epoch")
    _Engine(trials, provide, ledger, most, chunk, watch, seconds, open_pack).run()


class _TimeIsUp(Exception):
    """The seconds that were given are over."""


class _Engine:
    """The state of one call of :func:`train_trials`."""

    def __init__(
        self,
        trials: Sequence[Trial],
        provide: Callable[[Trial], Member],
        ledger: Ledger,
        most: int,
        chunk: int | None,
        watch: Callable[[Progress], None] | None,
        seconds: float | None,
        open_pack: Callable[[Sequence[Member]], Pack],
    ) -> None:
        self.trials, self.provide, self.ledger = list(trials), provide, ledger
        self.most, self.chunk, self.open_pack = most, chunk, open_pack
        self.clock = Clock(len(self.trials), watch)
        self.until = None if seconds is None else self.clock.began + seconds
        self.claimed: dict[Trial, None] = {}  # an ordered set
        self.misfits: deque[Member] = deque()  # claimed, and of another signature than was guessed
        self.stopping: Callable[[], bool] = lambda: False

    def run(self) -> None:
        """All groups, one after another."""
        try:
            with deferred_interrupt() as interrupt:
                self.stopping = lambda: interrupt.asked
                for group in sort_trials(self.trials, self.provide):
                    self._run_queue(_Queue(self, group))
                if interrupt.asked:
                    raise KeyboardInterrupt
        except _TimeIsUp:
            pass
        finally:
            if self.claimed:
                self.ledger.release(list(self.claimed))
                self.claimed.clear()
        self.clock.tell(running=0, at_once=True)

    def _run_queue(self, queue: _Queue) -> None:
        while (first := queue.next()) is not None:
            self._run_like(first, queue)

    def _run_like(self, first: Member, queue: _Queue) -> None:
        """Train trials of one signature, as long as the queue gives some."""
        alike = signature(first)
        wanted = 1 if alike is None else min(self.most, 1 + queue.length())
        open_pack, slots = self.open_pack, 1
        members = [first]
        while members:
            try:
                if slots < wanted:
                    slots = slots_for(first, open_pack, wanted)
                members += queue.some(alike, slots - len(members))
                members = _Busy(self, open_pack, members[:slots], queue, alike).run() + members[slots:]
                wanted = slots
            except (_TimeIsUp, KeyboardInterrupt):
                raise
            except Exception as problem:
                members = self._unfinished(members)
                ...
