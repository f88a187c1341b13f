"""The workers of a study on many machines: begun where there is room, begun again where one died, told to end together."""

from __future__ import annotations

import importlib
import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from unspool.errors import IncompatibleError
from unspool.study.engine.progress import EVERY, Progress
from unspool.study.machines.cluster import Cluster, Machine
from unspool.study.machines.owner import Counts, Owner
from unspool.study.machines.worker import Order, Waited, answers, versions, work
from unspool.train import TrialLoader

#: Seconds between two looks at which machines are there.
ROLL_CALL = 2.0
#: Workers that may die on a machine that lives on; then it gets no more.
DEATHS = 3
#: Seconds that workers have to end when they are told to; then they are killed, and give back what they held.
PATIENCE = 60.0
#: Where the owner waits for the disk, so that workers need not.
_ASIDE = "aside"
#: What Python says of a package that is not there.
_MISSING = "No module named"


def train_on_machines(
    tracker: Any,
    loader: TrialLoader,
    cluster: Cluster,
    watch: Callable[[Progress], None] | None,
    *,
    most: int,
    seconds: float | None = None,
) -> Waited:
    """Let workers on all machines train the trials of a tracker, and watch them.

    Args:
        tracker: a :class:`~unspool.study.study.StoreTracker` on a file.
        loader: makes trials ready.
        cluster: the machines.
        watch: told how it is getting on.
        most: the largest number of trials at once, of each worker.
        seconds: when workers are to stop.

    Returns:
        What the workers have waited for the file.
    """
    share = -(-len(tracker.trials) // cluster.workers(len(tracker.trials)))  # or the first would take all that fit
    return _Crew(tracker, loader, cluster, watch, min(most, share), seconds).run()


class _Crew:
    """The state of one call of :func:`train_on_machines`."""

    def __init__(
        self,
        tracker: Any,
        loader: TrialLoader,
        cluster: Cluster,
        watch: Callable[[Progress], None] | None,
        most: int,
        seconds: float | None,
    ) -> None:
        self.ray, self.cluster, self.tracker, self.watch, self.most = cluster.ray, cluster, tracker, watch, most
        self.began = time.monotonic()
        self.until = None if seconds is None else self.began + seconds
        self.path = tracker.store.path
        self.names = {key: trial for trial, key in tracker.keys.items()}
        self.told = self.ray.put((tracker.through(None), loader.on("cpu")))
        actor = self.ray.remote(num_cpus=0, concurrency_groups={_ASIDE: 1})(Owner)
        make = actor.options(scheduling_strategy=_on(cluster.home))
        self.owner = make.remote(self.path, list(self.names))
        self.machines: list[Machine] = []
        self.called_at = 0.0
        self.working: dict[Any, tuple[int, str]] = {}  # the number and the machine of each worker
        self.deaths = Counter[str]()
        self.begun, self.waited = 0, Waited()
        self.told_to_end = False
        self.changed = True  # whether there may be room for a worker that was not there before

    def run(self) -> Waited:
        """Until every trial has ended, or time is up."""
        try:
            while True:
                self._call_the_roll()
                self._begin_where_there_is_room()
                if not self.working:
                    break
                self._wait()
                if self._is_late():
                    self._tell_to_end()
            self._tell()
            self._ask(self.owner.close.remote())
        except BaseException:
            self._tell_to_end()
            self._see_to_the_end()
            raise
        finally:
            self.ray.kill(self.owner)
        return self.waited

    def _ask(self, question: Any) -> Any:
        """What the owner answers."""
        try:
            return answers(self.ray, question)
        except self.ray.exceptions.RayError as problem:
            raise self._owner_died() from problem

    def _owner_died(self) -> IncompatibleError:
        return IncompatibleError(
            f"the process that keeps {self.path} has died; run again: everything finished before is kept"
        )

    def _call_the_roll(self) -> None:
        now = time.monotonic()
        if now - self.called_at >= ROLL_CALL:
            found = self.cluster.machines()
            self.changed |= found != self.machines
            self.machines, self.called_at = found, now

    def _begin_where_there_is_room(self) -> None:
        if not self.changed or self._is_late():
            return
        self.changed = False
        busy = Counter(machine for _, machine in self.working.values())
        fit = [machine for machine in self.machines if self.deaths[machine.id] < DEATHS]
        # One on each machine before a second on any.
        free = sorted((turn, place) for place, one in enumerate(fit) for turn in range(busy[one.id], one.room))
        if not free and self.working:
            return
        waiting = self._ask(self.owner.waiting.remote())
        if waiting and not free:
            raise IncompatibleError(
                f"the workers have died and left {waiting} trials; run again to train them, with fewer trials at once if memory is short"
            )
        asked = self.cluster.asked.workers
        limit = len(free) if asked is None else asked - len(self.working)
        for _, place in free[: max(min(limit, waiting), 0)]:
            self._begin(fit[place])

    def _begin(self, machine: Machine) -> None:
        taken = {"num_cpus": self.cluster.asked.cpus, "num_gpus": self.cluster.gpus}
        remote = self.ray.remote(work).options(**taken, max_retries=0, scheduling_strategy=_on(machine.id))
        self.begun += 1
        left = None if self.until is None else max(self.until - time.monotonic(), 0.0)
        options: Mapping[str, Any] = {"most": self.most, "seconds": left}
        order = Order(
            self.begun, versions(), self.owner, [self.told], self.cluster.device, self.cluster.asked.cpus, options
        )
        self.working[remote.remote(order)] = (self.begun, machine.id)

    def _wait(self) -> None:
        """A moment, or until a worker has ended."""
        ended, _ = self.ray.wait(list(self.working), num_returns=1, timeout=EVERY)
        for one in ended:
            self._end(one, *self.working.pop(one))
        self._tell()

    def _end(self, one: Any, number: int, machine: str) -> None:
        self.changed = True
        errors = self.ray.exceptions
        try:
            self.waited += answers(self.ray, one)
        except errors.RayActorError as problem:  # what the worker saw of the owner
            raise self._owner_died() from problem
        except (errors.RayTaskError, errors.RaySystemError) as problem:  # it could not even read what it was told
            raise _untrainable(problem) from None
        except errors.RayError:  # it was killed, or its machine is gone; or it was told to end
            self.deaths[machine] += 1
            self._ask(self.owner.leave.remote(number))

    def _tell(self) -> None:
        counts: Counts = self._ask(self.owner.counts.options(concurrency_group=_ASIDE).remote())
        if self.watch is None:
            return
        spent, total = max(time.monotonic() - self.began, 1e-9), len(self.names)
        best = None if counts.best is None else (counts.best[0], self.names[counts.best[1]])
        left = spent * (total - counts.ended) / counts.ended if counts.ended else None
        speeds = counts.epochs / spent, counts.ended / spent
        self.watch(Progress(counts.ended, total, counts.running, *speeds, best, left))

    def _is_late(self) -> bool:
        return self.until is not None and time.monotonic() >= self.until

    def _tell_to_end(self) -> None:
        """Workers end between two epochs, as one process does at Ctrl-C, and give back what they hold."""
        if not self.told_to_end:
            self.told_to_end = True
            for one in self.working:
                self.ray.cancel(one, recursive=False)

    def _see_to_the_end(self) -> None:
        """Workers that cannot end are killed; what the others sent is written down."""
        workers = list(self.working)
        _, late = self.ray.wait(workers, num_returns=len(workers), timeout=PATIENCE) if workers else ([], [])
        for one in late:
            self.ray.cancel(one, force=True, recursive=False)
        with suppress(Exception):  # whatever ended the study is what is said of it
            self._ask(self.owner.close.remote())


def _on(machine: str) -> Any:
    """That Ray runs something on this machine and nowhere else."""
    return importlib.import_module("ray.util.scheduling_strategies").NodeAffinitySchedulingStrategy(machine, soft=False)


def _untrainable(problem: Any) -> IncompatibleError:
    """A worker that could not begin, in one sentence."""
    lines = [line.strip() for line in str(problem).splitlines() if line.strip()]
    missing = next((line[line.index(_MISSING) :] for line in lines if _MISSING in line), None)
    if missing is not None:
        return IncompatibleError(f"a machine cannot train ({missing}); install the same packages on all machines")
    return IncompatibleError(f"a worker failed: {lines[-1] if lines else problem}")
