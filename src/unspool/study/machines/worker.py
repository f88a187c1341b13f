"""What a worker on any machine does: the engine of one process, with the store at the other end of a wire."""

from __future__ import annotations

import math
import os
import platform
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import torch

import unspool
from unspool import identity
from unspool.device import check_device
from unspool.errors import IncompatibleError, InputError, mention
from unspool.study.engine import train_trials
from unspool.study.machines.cluster import import_ray
from unspool.study.machines.owner import Worker
from unspool.train import Result, Trial, TrialLoader
from unspool.train.threads import use_threads


@dataclass(frozen=True)
class Order:
    """What a worker is told.

    Attributes:
        number: its own in this run.
        versions: of the process that began the study.
        owner: Ray's handle of the :class:`~unspool.study.machines.owner.Owner`.
        work: a list of one reference to tracker and loader; a list, so that versions are compared before anything is read.
        device: where to train.
        threads: on a CPU.
        options: of :func:`~unspool.study.engine.train_trials`.
    """

    number: int
    versions: Mapping[str, str]
    owner: Any
    work: list[Any]
    device: str
    threads: int
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True)
class Waited:
    """What a worker has waited for the file.

    Attributes:
        seconds: in all.
        trials: that it finished.
    """

    seconds: float = 0.0
    trials: int = 0

    def __add__(self, other: Waited) -> Waited:
        return Waited(self.seconds + other.seconds, self.trials + other.trials)


def versions() -> dict[str, str]:
    """What must be the same on all machines, or they would not understand each other, or train other numbers.

    Example:
        >>> list(versions())
        ['Python', 'unspool', 'numerics', 'torch']
    """
    return {
        "Python": platform.python_version(),
        "unspool": unspool.__version__,
        "numerics": str(identity.NUMERICS),
        "torch": torch.__version__.partition("+")[0],  # builds for a CPU and for a GPU are the same version
    }


def check_versions(wanted: Mapping[str, str], host: str) -> None:
    """Raise one sentence where this machine has others.

    Args:
        wanted: those of the process that began the study.
        host: the name of this machine.

    Example:
        >>> check_versions({**versions(), "unspool": "0.1.0"}, "node7")
        Traceback (most recent call last):
            ...
        unspool.errors.IncompatibleError: node7 has unspool ..., and the machine that began the study has unspool 0.1.0; install ...
    """
    here = versions()
    for name, version in wanted.items():
        if here.get(name) != version:
            raise IncompatibleError(
                f"{host} has {name} {here.get(name)}, and the machine that began the study has {name} {version}; "
                "install the same versions on all machines"
            )


#: Where trials take fewer seconds than this, the next one is asked for before it is wanted.
AHEAD = 1.0
#: Results that may be under way; then the answers to the older ones are looked at.
UNDER_WAY = 32


class RemoteStore:
    """The verbs of a store that a tracker needs, asked of the owner, so that training seldom waits.

    Results are sent and not waited for; what was wrong with them is raised when something is asked later. Where trials are claimed one by
    one and end within a second, the next is claimed while one trains: a worker holds one trial more than it trains, for a second at most.

    Args:
        ray: the module.
        owner: the handle.
        worker: in whose name.

    Attributes:
        seconds: spent waiting for answers.
        finished: trials whose results were sent.
    """

    def __init__(self, ray: Any, owner: Any, worker: Worker) -> None:
        self._ray, self._owner, self._worker = ray, owner, worker
        self._sent: list[Any] = []
        self._next: Any = None  # the answer to a claim that was made ahead
        self._claimed_at = -math.inf
        self.seconds, self.finished = 0.0, 0

    def claim(self, keys: Sequence[str], count: int) -> list[str]:
        """As :meth:`~unspool.study.Store.claim`."""
        quick = time.monotonic() - self._claimed_at < AHEAD
        self._claimed_at = time.monotonic()
        got = self._made_ahead(keys)
        if len(got) < count:
            got += self._answer(self._claim(keys, count - len(got)))
        if quick and len(got) == count == 1:
            self._next = self._claim([key for key in keys if key != got[0]], 1)
        return got

    def _claim(self, keys: Sequence[str], count: int) -> Any:
        return self._owner.claim.remote(self._worker, list(keys), count)

    def _made_ahead(self, keys: Sequence[str]) -> list[str]:
        """The trial that was claimed ahead, if it is among those that are wanted now; otherwise others may have it."""
        if self._next is None:
            return []
        got, self._next = self._wait([self._next])[0], None
        if got and got[0] not in keys:
            self.release(got)
            return []
        return got

    def release(self, keys: Sequence[str]) -> None:
        """As :meth:`~unspool.study.Store.release`."""
        self._answer(self._owner.release.remote(self._worker, list(keys)))

    def finish(self, pairs: Sequence[tuple[str, Result]]) -> None:
        """As :meth:`~unspool.study.Store.finish`, but not waited for."""
        self._send(self._owner.finish.remote(self._worker, list(pairs)))
        self.finished += len(pairs)

    def fail(self, key: str, message: str) -> None:
        """As :meth:`~unspool.study.Store.fail`, but not waited for."""
        self._send(self._owner.fail.remote(self._worker, key, message))

    def leave(self) -> None:
        """Everything has been sent and written, and nothing is held any more."""
        self._answer(self._owner.leave.remote(self._worker.number))

    def _send(self, message: Any) -> None:
        self._sent.append(message)
        if len(self._sent) >= UNDER_WAY:  # the older half has been answered long since; it may be that the disk is full
            half = UNDER_WAY // 2
            self._wait(self._sent[:half])
            self._sent = self._sent[half:]

    def _answer(self, question: Any) -> Any:
        """An answer, after those to all that was sent before."""
        sent, self._sent = self._sent, []
        return self._wait([*sent, question])[-1]

    def _wait(self, questions: list[Any]) -> list[Any]:
        began = time.perf_counter()
        try:
            return answers(self._ray, questions)
        finally:
            self.seconds += time.perf_counter() - began


def answers(ray: Any, questions: Any) -> Any:
    """What somebody elsewhere answers; what they raise is raised as it was, not as Ray wraps it."""
    try:
        return ray.get(questions)
    except ray.exceptions.RayTaskError as problem:
        raise (problem if problem.cause is None else problem.cause) from problem


def work(order: Order) -> Waited:
    """Train what is free until nothing is; being cancelled is for a worker what Ctrl-C is for one process."""
    ray = import_ray()
    host = platform.node()
    check_versions(order.versions, host)
    _check_gpu(order.device, host)
    tracker, loader = _received(ray, order, host)
    store = RemoteStore(ray, order.owner, Worker(order.number, host, os.getpid()))
    mine = tracker.through(store)
    with use_threads(order.threads):
        try:
            with suppress(KeyboardInterrupt):
                train_trials(mine.trials, loader.on(order.device).prepare, mine, **order.options)
        finally:
            store.leave()
    return Waited(store.seconds, store.finished)


def _check_gpu(device: str, host: str) -> None:
    try:
        check_device(device)
    except InputError:
        raise IncompatibleError(
            f"{host} has declared a GPU to Ray, and torch {torch.__version__} cannot use one there; install a torch that can, or train "
            f"with {mention('device', 'cpu')}"
        ) from None


def _received(ray: Any, order: Order, host: str) -> tuple[Any, TrialLoader]:
    """The tracker and the loader, whose trials have the code here that they had there."""
    try:
        tracker, loader = ray.get(order.work[0])
    except (ImportError, AttributeError, ray.exceptions.RayError) as problem:
        raise IncompatibleError(
            f"{host} cannot read the trials ({_last_line(problem)}); install the same packages on all machines, and keep files of "
            "your own where all see them under the same path"
        ) from None
    check_code(tracker.trials, host)
    return tracker, loader


def _last_line(problem: Exception) -> str:
    return next((line.strip() for line in reversed(str(problem).splitlines()) if line.strip()), type(problem).__name__)


def check_code(trials: Sequence[Trial], host: str) -> None:
    """Raise where a class of the user's is not on this machine what it was where the trials were made.

    Args:
        trials: as they came.
        host: the name of this machine.
    """
    for trial in {(t.model, t.code): t for t in trials if "." in t.code}.values():
        if (
            trial.model.__module__ != "__main__" and replace(trial).code != trial.code
        ):  # a script's classes come with the trials
            raise IncompatibleError(
                f"the code of {trial.name} on {host} is not that of the machine that began the study; bring it to all machines"
            )
