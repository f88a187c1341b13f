"""Many trials at once: batches that are filled, refilled and made smaller until every trial has ended."""

from __future__ import annotations

import contextlib
import logging
import time
from collections import deque
from collections.abc import Callable, Generator, Hashable, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor

from unspool.device import DeviceLost
from unspool.interrupt import deferred_interrupt
from unspool.study.batch import AsyncBatch, TrialBatch
from unspool.study.batch.single_trial import SingleTrial
from unspool.study.batch.stacked_batch import RING
from unspool.study.engine.batching import FULL, Alone, signature, sort_trials
from unspool.study.engine.batching import open_batch as _open_batch
from unspool.study.engine.broken import why_broken
from unspool.study.engine.memory import fits_another_batch, settle, slots_for
from unspool.study.engine.progress import Clock, Progress
from unspool.study.engine.queue import Queue, Ready
from unspool.study.engine.tracker import TrialTracker
from unspool.study.engine.trial_progress import TrialProgress
from unspool.train import PreparedTrial, Result, Trial
from unspool.train.conduct import ChangedData
from unspool.train.epochs import few_threads

_LOG = logging.getLogger(__name__)

#: Epochs between two looks at the results; on a GPU a look means waiting for it.
CHUNKS = {"cpu": 5, "cuda": 25}
#: Batches at the same time on a GPU, where groups are small. Measured on an H200: eight groups of five trials end 1.2 to 1.5 times sooner so.
BATCHES_AT_ONCE = 8


def train_trials(
    trials: Sequence[Trial],
    provide: Callable[[Trial], PreparedTrial],
    tracker: TrialTracker,
    *,
    most: int = 1024,
    chunk: int | None = None,
    watch: Callable[[Progress], None] | None = None,
    seconds: float | None = None,
    batches_at_once: int = BATCHES_AT_ONCE,
    keep: Callable[[Trial, Tensor], None] | None = None,
    open_batch: Callable[..., TrialBatch] = _open_batch,
) -> None:
    """Train trials, as many at once as are fast; each gives what :func:`unspool.train.train_trial` gives for it alone.

    Trials that can be stacked are; a slot whose trial has ended takes the next one. What raises fails by itself, the others
    go on. When it is interrupted, unfinished trials are released, and what has ended is in the tracker.

    Args:
        trials: in the order in which they are to begin.
        provide: makes a trial ready. Tasks on the same data must hold the same objects ``x``, ``graph`` and ``target``.
        tracker: who is asked before a trial begins, and told when it ends.
        most: the largest number of trials at once.
        chunk: epochs between two looks at the results; no result depends on it.
        watch: told how it is getting on.
        seconds: when to stop and release what is not finished.
        batches_at_once: the largest number of small batches at once on a GPU; no result depends on it.
        keep: is given what the network of each trial said of all nodes at the epoch that was chosen, just before the tracker hears of it.
        open_batch: makes batches out of members of one signature.

    Example:
        >>> import unspool as us
        >>> from unspool import datasets, train
        >>> data = datasets.contextual_sbm(nodes=60, classes=2, seed=0)
        >>> task, config = train.Task.of(data), train.TrainConfig(epochs=20)
        >>> provide = lambda trial: PreparedTrial(trial, trial.build(data.features.shape[1], 2), task)
        >>> grid = [Trial(us.models.GCN, {"hidden": 8, "dropout": d}, config, seed=s) for d in (0.2, 0.5) for s in (0, 1, 2)]
        >>> from unspool.study.engine.tracker import MemoryTracker
        >>> tracker = MemoryTracker()
        >>> train_trials(grid, provide, tracker)
        >>> len(tracker.results), tracker.results[grid[0]].ending.name
        (6, 'ALL_EPOCHS')
    """
    if most < 1:
        raise ValueError(f"most={most}: at least one trial trains at a time")
    if chunk is not None and chunk < 1:
        raise ValueError(f"chunk={chunk}: expected at least one epoch")
    if batches_at_once < 1:
        raise ValueError(f"batches_at_once={batches_at_once}: at least one batch trains at a time")
    chunk = RING if keep is not None and chunk is not None and chunk > RING else chunk
    _Engine(trials, provide, tracker, most, chunk, watch, seconds, batches_at_once, keep, open_batch).run()


class _TimeIsUp(Exception):
    """The seconds that were given are over."""


class _BatchBroke(Exception):
    """Something inside a batch raised; the cause says what."""


class _Engine:
    """The state of one call of :func:`train_trials`."""

    def __init__(
        self,
        trials: Sequence[Trial],
        provide: Callable[[Trial], PreparedTrial],
        tracker: TrialTracker,
        most: int,
        chunk: int | None,
        watch: Callable[[Progress], None] | None,
        seconds: float | None,
        batches_at_once: int,
        keep: Callable[[Trial, Tensor], None] | None,
        open_batch: Callable[..., TrialBatch],
    ) -> None:
        self.trials, self.provide, self.tracker, self.keep = list(trials), provide, tracker, keep
        self.most, self.chunk, self.batches_at_once = most, chunk, batches_at_once
        kept = {} if keep is None else {"keep": True}
        self.open_batch, self.open_single = partial(open_batch, **kept), partial(SingleTrial, **kept)
        self.clock = Clock(len(self.trials), watch)
        self.until = None if seconds is None else self.clock.began + seconds
        self.claimed: dict[Trial, None] = {}  # an ordered set
        self.device = torch.device("cpu")  # of the last batch that was opened
        self.batches: list[list[TrialProgress | None]] = []  # the trials of all batches that train now
        self.slots: dict[Hashable, int] = {}  # how many at once, by signature
        self.single: set[Hashable] = set()  # signatures that turned out not to stack
        self.broken: dict[Trial, Alone] = {}  # trials whose stack broke: they come back once, by themselves
        self.told: set[str] = set()  # what was said of that
        self.interrupted: Callable[[], bool] = lambda: False

    def run(self) -> None:
        """All groups, and nothing is kept that was not finished."""
        try:
            with deferred_interrupt() as interrupt:
                self.interrupted = lambda: interrupt.asked
                self._run_groups(sort_trials(self.trials, self.provide))
        except _TimeIsUp:
            pass
        finally:
            if self.claimed:
                self.tracker.release(list(self.claimed))
        self.clock.tell(running=0, at_once=True)

    def _run_groups(self, groups: Sequence[list[Trial]]) -> None:
        """One group after another, in order; small ones beside each other while a GPU has room."""
        waiting, active = deque(groups), list[tuple[list[Trial], Generator[None]]]()
        try:
            while waiting or active:
                while waiting and self._may_begin(waiting[0], [group for group, _ in active]):
                    group = waiting.popleft()
                    active.append((group, self._run_group(group)))
                    if next(active[-1][1], self) is self:  # there was nothing to do
                        active.pop()
                active = [one for one in active if next(one[1], self) is not self]
        finally:
            for _, progress in active:
                progress.close()

    def _may_begin(self, group: list[Trial], others: list[list[Trial]]) -> bool:
        if not others:
            return True
        small = all(len(one) < FULL for one in (group, *others))
        free = self.most - self._running()
        return small and len(others) < self.batches_at_once and len(group) <= free and fits_another_batch(self.device)

    def _running(self) -> int:
        """How many trials train now, in all batches."""
        return sum(progress is not None for batch in self.batches for progress in batch)

    def _run_group(self, group: list[Trial]) -> Generator[None]:
        queue = Queue(group, self.claim, self.build)
        while (ready := queue.first()) is not None:
            yield from self._run_like(*ready, queue, group)

    def claim(self, wanted: Sequence[Trial], count: int) -> list[Trial]:
        """Ask the tracker for trials; what it gives is ours until it ends or is released."""
        got = self.tracker.claim(wanted, count)
        self.claimed.update(dict.fromkeys(got))
        if len(got) < count:
            self.clock.total -= len(wanted) - len(got)
        return got

    def build(self, trial: Trial) -> Ready | None:
        """The trial, ready, and its signature; None if it cannot be built, which the tracker is told."""
        try:
            member = self.provide(trial)
            return member, self.broken[trial] if trial in self.broken else signature(member)
        except Exception as problem:
            self._fail(trial, problem)
            return None

    def _fail(self, trial: Trial, problem: BaseException) -> None:
        self.tracker.fail(trial, f"{type(problem).__name__}: {problem}")
        del self.claimed[trial]
        self.clock.done += 1

    def _finish(self, ended: list[tuple[Trial, Result]]) -> None:
        # Trap: what the tracker could not write down (a full disk) is still ours, and must be released.
        self.tracker.finish(ended)
        for trial, _ in ended:
            del self.claimed[trial]
        self.clock.ended(ended)

    def _check(self) -> None:
        """Stop here, between two chunks, if somebody wants that."""
        if self.interrupted():
            raise KeyboardInterrupt
        if self.until is not None and time.monotonic() >= self.until:
            raise _TimeIsUp

    # -- one signature ---------------------------------------------------------------------------------------------

    def _run_like(self, first: PreparedTrial, alike: Hashable, queue: Queue, order: list[Trial]) -> Generator[None]:
        """Train trials that fit together with the first, until there are none or their batch breaks."""
        running: list[TrialProgress | None] = []
        self.batches.append(running)
        self.device = first.task.target.device
        try:
            with few_threads(first.task):
                slots = self._slots_for(first, alike, 1 + queue.length)
                members = [first, *queue.some(slots - 1, alike)]
                running.extend(TrialProgress(member.trial) for member in members)
                opener = self.open_single if self._is_alone(alike) else self.open_batch
                yield from self._run_batch(_guarded(opener, members), self.device.type, running, queue, alike)
        except _BatchBroke as broke:
            problem = broke.__cause__
            assert problem is not None
            problem.__traceback__ = None  # its frames hold the broken batch, and this one holds the problem: a circle
            if not settle(self.device):
                # Every other trial would fail, and none for its own sake.
                raise DeviceLost(str(self.device), str(problem)) from None
            if isinstance(problem, ChangedData):
                raise problem from None  # all other trials would train on what is left of the data
            unfinished = [c.trial for c in running if c is not None] if running else [first.trial]
            full = isinstance(problem, torch.OutOfMemoryError | MemoryError)
            self.batches = [one for one in self.batches if one is not running]
            crowded = full and bool(self.batches)  # others have the memory: it may fit when they have ended
            if not full and not self._is_alone(alike):
                self._break_up(alike, unfinished, problem)
            elif len(unfinished) > 1 and not crowded:
                self.slots[alike] = max(len(running) // 2, 1)
            elif not crowded:
                self._fail(unfinished.pop(), problem)
            # A batch has room for its deepest: they come first again, as they were sorted.
            place = {trial: k for k, trial in enumerate(order)}
            queue.again(sorted(unfinished, key=lambda t: place.get(t, 0)))
            while crowded and self.batches:
                yield
        finally:
            self.batches = [one for one in self.batches if one is not running]

    def _break_up(self, alike: Hashable, unfinished: Sequence[Trial], problem: BaseException) -> None:
        """These go on one by one, and so do those that are like them; which is said once."""
        why = why_broken(problem)
        said = f"{unfinished[0].name} goes on one by one: {why}"
        if said not in self.told:
            self.told.add(said)
            _LOG.warning("%s", said)
        self.single.add(alike)
        # Trap: a model may look different whenever it is built, and its stack would break again and again.
        self.broken |= dict.fromkeys(unfinished, Alone(why))

    def _is_alone(self, alike: Hashable) -> bool:
        return isinstance(alike, Alone) or alike in self.single

    def _slots_for(self, first: PreparedTrial, alike: Hashable, wanted: int) -> int:
        wanted = 1 if self._is_alone(alike) else min(self.most, wanted)
        if wanted > 1 and alike not in self.slots:
            self.slots[alike] = _guarded(slots_for, first, self.open_batch, wanted)
        return min(wanted, max(self.most - self._running(), 1), self.slots.get(alike, 1))

    def _run_batch(
        self, batch: TrialBatch, kind: str, running: list[TrialProgress | None], queue: Queue, alike: Hashable
    ) -> Generator[None]:
        """Chunk after chunk, until all slots are empty and the queue has nothing more; others have their turn in between."""
        while any(progress is not None for progress in running):
            self._check()
            busy = [(i, progress) for i, progress in enumerate(running) if progress is not None]
            chunk = self._chunk(kind, busy)
            began = time.monotonic()
            others = 1
            if kind == "cuda" and chunk <= RING and isinstance(batch, AsyncBatch):
                _guarded(batch.start_epochs, chunk)
                yield from _in_the_meantime(batch)
                numbers, others = _guarded(batch.finish_epochs), len(self.batches)
            else:
                yield
                began = time.monotonic()
                numbers = _guarded(batch.run_epochs, chunk)
            share = (time.monotonic() - began) / len(busy) / others
            ended: list[tuple[Trial, Result]] = []
            for slot, progress in busy:
                self.clock.epochs += progress.take(
                    numbers[:, slot], share, None if batch.said is None else batch.said[:, slot]
                )
                if progress.ending is not None:
                    ended.append((progress.trial, progress.result()))
                    running[slot] = None
                    if self.keep is not None and progress.said is not None:
                        self.keep(progress.trial, progress.said)
            if ended:
                self._finish(ended)
                batch = self._refill(batch, kind, running, queue, alike)
            self.clock.tell(self._running(), at_once=bool(ended))

    def _chunk(self, kind: str, busy: list[tuple[int, TrialProgress]]) -> int:
        chunk = CHUNKS.get(kind, CHUNKS["cpu"]) if self.chunk is None else self.chunk
        return min(chunk, max(progress.left for _, progress in busy))

    def _refill(
        self, batch: TrialBatch, kind: str, running: list[TrialProgress | None], queue: Queue, alike: Hashable
    ) -> TrialBatch:
        """New trials into empty slots; a smaller batch where too many of them stay empty."""
        empty = [i for i, progress in enumerate(running) if progress is None]
        fresh = queue.some(len(empty), alike)
        for slot, member in zip(empty, fresh, strict=False):
            running[slot] = TrialProgress(member.trial)
        if fresh:
            _guarded(batch.load, empty[: len(fresh)], fresh)
        busy = [i for i, progress in enumerate(running) if progress is not None]
        # On a GPU a smaller batch is captured anew and an idle slot costs little; on the CPU it is the other way round.
        few = batch.slots // 2 if kind == "cuda" else batch.slots - 1
        if not busy or len(busy) > few:
            return batch
        try:
            batch = batch.compact(busy)
        except (torch.OutOfMemoryError, MemoryError):
            return batch  # no room for both: idle slots cost less than beginning anew
        except Exception as problem:
            raise _BatchBroke from problem
        running[:] = [running[i] for i in busy]
        return batch


def _in_the_meantime(batch: AsyncBatch) -> Generator[None]:
    """Let others have their turn; who ends it all waits for the device, whose work must not outlive its memory."""
    try:
        yield
    except GeneratorExit:
        with contextlib.suppress(Exception):
            batch.finish_epochs()
        raise


def _guarded(call: Callable[..., Any], *args: Any) -> Any:
    """Mark what a batch raises, so that it is not mistaken for what the tracker raises."""
    try:
        return call(*args)
    except Exception as problem:
        raise _BatchBroke from problem
