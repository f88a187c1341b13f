"""Many trials at once: packs that are filled, refilled and made smaller until every trial has ended."""

from __future__ import annotations

import contextlib
import logging
import time
from collections import deque
from collections.abc import Callable, Generator, Hashable, Sequence
from typing import Any

import torch

from unspool.study.engine.course import Course
from unspool.study.engine.groups import FULL, signature, sort_trials
from unspool.study.engine.groups import open_pack as _open_pack
from unspool.study.engine.ledger import Ledger
from unspool.study.engine.progress import Clock, Progress
from unspool.study.engine.queue import Queue, Ready
from unspool.study.engine.room import room_beside, settle, slots_for
from unspool.study.pack import Ahead, Member, Pack
from unspool.study.pack.alone import Alone
from unspool.study.pack.stacked import RING
from unspool.study.trial import Result, Trial
from unspool.train.epochs import few_threads
from unspool.train.interrupt import deferred_interrupt

_LOG = logging.getLogger(__name__)

#: Epochs between two looks at the results; on a GPU a look means waiting for it.
CHUNKS = {"cpu": 5, "cuda": 25}
#: Packs beside each other on a GPU, where groups are small. One: what several gain there has not been measured yet.
BESIDE = 1


def train_trials(
    trials: Sequence[Trial],
    provide: Callable[[Trial], Member],
    ledger: Ledger,
    *,
    most: int = 1024,
    chunk: int | None = None,
    watch: Callable[[Progress], None] | None = None,
    seconds: float | None = None,
    beside: int = BESIDE,
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
        beside: the largest number of small packs at once on a GPU; no result depends on it.
        open_pack: makes packs out of members of one signature.

    Example:
        >>> import unspool as us
        >>> from unspool import datasets, train
        >>> data = datasets.contextual_sbm(nodes=60, classes=2, seed=0)
        >>> task, plan = train.Task.of(data), train.Plan(epochs=20)
        >>> provide = lambda trial: Member(trial, trial.build(data.features.shape[1], 2), task)
        >>> grid = [Trial(us.models.GCN, {"hidden": 8, "dropout": d}, plan, seed=s) for d in (0.2, 0.5) for s in (0, 1, 2)]
        >>> from unspool.study.engine.ledger import Notebook
        >>> notebook = Notebook()
        >>> train_trials(grid, provide, notebook)
        >>> len(notebook.results), notebook.results[grid[0]].reason
        (6, 'all epochs')
    """
    if most < 1:
        raise ValueError(f"most={most}: at least one trial trains at a time")
    if chunk is not None and chunk < 1:
        raise ValueError(f"chunk={chunk}: expected at least one epoch")
    if beside < 1:
        raise ValueError(f"beside={beside}: at least one pack trains at a time")
    _Engine(trials, provide, ledger, most, chunk, watch, seconds, beside, open_pack).run()


class _TimeIsUp(Exception):
    """The seconds that were given are over."""


class _PackBroke(Exception):
    """Something inside a pack raised; the cause says what."""


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
        beside: int,
        open_pack: Callable[[Sequence[Member]], Pack],
    ) -> None:
        self.trials, self.provide, self.ledger = list(trials), provide, ledger
        self.most, self.chunk, self.beside, self.open_pack = most, chunk, beside, open_pack
        self.clock = Clock(len(self.trials), watch)
        self.until = None if seconds is None else self.clock.began + seconds
        self.claimed: dict[Trial, None] = {}  # an ordered set
        self.device = torch.device("cpu")  # of the last pack that was opened
        self.packs: list[list[Course | None]] = []  # the trials of all packs that train now
        self.slots: dict[Hashable, int] = {None: 1}  # how many at once, by signature
        self.single: set[Hashable] = {None}  # signatures that turned out not to stack
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
                self.ledger.release(list(self.claimed))
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
            for _, course in active:
                course.close()

    def _may_begin(self, group: list[Trial], others: list[list[Trial]]) -> bool:
        if not others:
            return True
        small = all(len(one) < FULL for one in (group, *others))
        free = self.most - self._running()
        return small and len(others) < self.beside and len(group) <= free and room_beside(self.device)

    def _running(self) -> int:
        """How many trials train now, in all packs."""
        return sum(course is not None for pack in self.packs for course in pack)

    def _run_group(self, group: list[Trial]) -> Generator[None]:
        queue = Queue(group, self.claim, self.build)
        while (ready := queue.first()) is not None:
            yield from self._run_like(*ready, queue, group)

    def claim(self, wanted: Sequence[Trial], count: int) -> list[Trial]:
        """Ask the ledger for trials; what it gives is ours until it ends or is released."""
        got = self.ledger.claim(wanted, count)
        self.claimed.update(dict.fromkeys(got))
        if len(got) < count:
            self.clock.total -= len(wanted) - len(got)
        return got

    def build(self, trial: Trial) -> Ready | None:
        """The trial, ready, and its signature; None if it cannot be built, which the ledger is told."""
        try:
            member = self.provide(trial)
            return member, signature(member)
        except Exception as problem:
            self._fail(trial, problem)
            return None

    def _fail(self, trial: Trial, problem: BaseException) -> None:
        self.ledger.fail(trial, f"{type(problem).__name__}: {problem}")
        del self.claimed[trial]
        self.clock.done += 1

    def _finish(self, ended: list[tuple[Trial, Result]]) -> None:
        # Trap: what the ledger could not write down (a full disk) is still ours, and must be released.
        self.ledger.finish(ended)
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

    def _run_like(self, first: Member, alike: Hashable, queue: Queue, order: list[Trial]) -> Generator[None]:
        """Train trials that fit together with the first, until there are none or their pack breaks."""
        running: list[Course | None] = []
        self.packs.append(running)
        self.device = first.task.target.device
        try:
            with few_threads(first.task):
                slots = self._slots_for(first, alike, 1 + queue.length)
                members = [first, *queue.some(slots - 1, alike)]
                running.extend(Course(member.trial) for member in members)
                opener = Alone if alike in self.single else self.open_pack
                yield from self._run_pack(_guarded(opener, members), self.device.type, running, queue, alike)
        except _PackBroke as broke:
            problem = broke.__cause__
            assert problem is not None
            problem.__traceback__ = None  # its frames hold the broken pack, and this one holds the problem: a circle
            settle(self.device)
            unfinished = [c.trial for c in running if c is not None] if running else [first.trial]
            full = isinstance(problem, torch.OutOfMemoryError | MemoryError)
            self.packs = [one for one in self.packs if one is not running]
            crowded = full and bool(self.packs)  # others have the memory: it may fit when they have ended
            if not full and alike not in self.single:
                why = " ".join(str(problem).split())[:200]
                _LOG.warning(
                    "%s goes on one by one: its pack broke (%s: %s)", first.trial.name, type(problem).__name__, why
                )
                self.single.add(alike)
                self.slots[alike] = 1
            elif len(unfinished) > 1 and not crowded:
                self.slots[alike] = max(len(running) // 2, 1)
            elif not crowded:
                self._fail(unfinished.pop(), problem)
            # A pack has room for its deepest: they come first again, as they were sorted.
            place = {trial: k for k, trial in enumerate(order)}
            queue.again(sorted(unfinished, key=lambda t: place.get(t, 0)))
            while crowded and self.packs:
                yield
        finally:
            self.packs = [one for one in self.packs if one is not running]

    def _slots_for(self, first: Member, alike: Hashable, wanted: int) -> int:
        wanted = min(self.most, wanted)
        if wanted > 1 and alike not in self.slots:
            self.slots[alike] = _guarded(slots_for, first, self.open_pack, wanted)
        return min(wanted, max(self.most - self._running(), 1), self.slots.get(alike, 1))

    def _run_pack(
        self, pack: Pack, kind: str, running: list[Course | None], queue: Queue, alike: Hashable
    ) -> Generator[None]:
        """Chunk after chunk, until all slots are empty and the queue has nothing more; others have their turn in between."""
        while any(course is not None for course in running):
            self._check()
            busy = [(i, course) for i, course in enumerate(running) if course is not None]
            chunk = self._chunk(kind, busy)
            began = time.monotonic()
            others = 1
            if kind == "cuda" and chunk <= RING and isinstance(pack, Ahead):
                _guarded(pack.begin, chunk)
                yield from _in_the_meantime(pack)
                numbers, others = _guarded(pack.end), len(self.packs)
            else:
                yield
                began = time.monotonic()
                numbers = _guarded(pack.advance, chunk)
            share = (time.monotonic() - began) / len(busy) / others
            ended: list[tuple[Trial, Result]] = []
            for slot, course in busy:
                self.clock.epochs += course.take(numbers[:, slot], share)
                if course.reason is not None:
                    ended.append((course.trial, course.result()))
                    running[slot] = None
            if ended:
                self._finish(ended)
                pack = self._refill(pack, kind, running, queue, alike)
            self.clock.tell(self._running(), at_once=bool(ended))

    def _chunk(self, kind: str, busy: list[tuple[int, Course]]) -> int:
        chunk = CHUNKS.get(kind, CHUNKS["cpu"]) if self.chunk is None else self.chunk
        return min(chunk, max(course.left for _, course in busy))

    def _refill(self, pack: Pack, kind: str, running: list[Course | None], queue: Queue, alike: Hashable) -> Pack:
        """New trials into empty slots; a smaller pack where too many of them stay empty."""
        empty = [i for i, course in enumerate(running) if course is None]
        fresh = queue.some(len(empty), alike)
        for slot, member in zip(empty, fresh, strict=False):
            running[slot] = Course(member.trial)
        if fresh:
            _guarded(pack.put, empty[: len(fresh)], fresh)
        busy = [i for i, course in enumerate(running) if course is not None]
        # On a GPU a smaller pack is captured anew and an idle slot costs little; on the CPU it is the other way round.
        few = pack.slots // 2 if kind == "cuda" else pack.slots - 1
        if not busy or len(busy) > few:
            return pack
        try:
            pack = pack.shrunk(busy)
        except (torch.OutOfMemoryError, MemoryError):
            return pack  # no room for both: idle slots cost less than beginning anew
        except Exception as problem:
            raise _PackBroke from problem
        running[:] = [running[i] for i in busy]
        return pack


def _in_the_meantime(pack: Ahead) -> Generator[None]:
    """Let others have their turn; who ends it all waits for the device, whose work must not outlive its memory."""
    try:
        yield
    except GeneratorExit:
        with contextlib.suppress(Exception):
            pack.end()
        raise


def _guarded(call: Callable[..., Any], *args: Any) -> Any:
    """Mark what a pack raises, so that it is not mistaken for what the ledger raises."""
    try:
        return call(*args)
    except Exception as problem:
        raise _PackBroke from problem
