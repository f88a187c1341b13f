"""Running a study, and asking it what came of it."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import torch

from unspool.datasets import Dataset
from unspool.models.checkpoint import check_device
from unspool.study.crew import train_together
from unspool.study.engine import train_trials
from unspool.study.engine.progress import Progress
from unspool.study.provide import Provider
from unspool.study.results.best import Best, Measure
from unspool.study.results.compare import Comparison, compare
from unspool.study.results.export import export, score_of
from unspool.study.results.importance import Importance, importance
from unspool.study.results.table import Table
from unspool.study.search.space import Space
from unspool.study.store import Access, Row, Store
from unspool.study.trial import Result, Trial
from unspool.train.device import device_for
from unspool.train.threads import use_threads


class Study:
    """Many trials and what came of them.

    Args:
        store: where the trials are.
        folder: a temporary one that goes with the study.
        keys: of the trials that the study is about; all in the store when omitted.

    Example:
        >>> import unspool as us
        >>> from unspool import datasets
        >>> data = datasets.contextual_sbm(nodes=60, classes=2, seed=0)
        >>> found = us.study.run(us.study.grid(us.models.GCN, us.models.MLP, seed=range(3), hidden=8, epochs=20), data)
        >>> len(found.table)
        6
        >>> found.best().n  # seeds
        3
        >>> print(found.compare("GCN", "MLP"))
        GCN ...
    """

    def __init__(self, store: Store, folder: Any = None, keys: Iterable[str] | None = None) -> None:
        self.store, self._folder = store, folder
        self.keys = None if keys is None else frozenset(keys)

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> Study:
        """A study in a file, to look at; others may be training it meanwhile."""
        return cls(Store.open(path, Access.READ))

    @property
    def rows(self) -> list[Row]:
        """Its trials as they stand now."""
        return [row for row in self.store.rows() if self.keys is None or row.key in self.keys]

    @property
    def table(self) -> Table:
        """The finished trials."""
        rows = self.rows
        return Table.of(rows, score_of(rows[0].mark, "accuracy") if rows else "accuracy")

    def beside(self, other: Study) -> Study:
        """This study with the trials of another one in the same store."""
        both = None if self.keys is None or other.keys is None else self.keys | other.keys
        return Study(self.store, self._folder, both)

    def best(self, over: str | Sequence[str] = "seed", by: Measure = Measure.VALID_SCORE) -> Best:
        """The best settings by validation, with the spread of their test scores; see :meth:`Table.best`."""
        return self.table.best(over, by)

    def compare(self, a: Any, b: Any, **options: Any) -> Comparison:
        """Two models over the same seeds and splits; see :func:`unspool.study.results.compare`."""
        return compare(self.table, a, b, **options)

    def importance(self, **options: Any) -> Importance:
        """Which settings matter; see :func:`unspool.study.results.importance`."""
        return importance(self.table, **options)

    def export(self, path: str | os.PathLike[str]) -> Path:
        """All trials into a CSV, Parquet or JSON file."""
        return export(self.rows, path)

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        return str(self.table)


class StoreLedger:
    """A store seen by the engine: trials in the place of keys.

    Example:
        >>> import unspool as us
        >>> store = Store(None)
        >>> ledger = StoreLedger(store, [Trial(us.models.GCN)], data="cora", mark="5e1f")
        >>> len(ledger.claim(ledger.trials, 1))
        1
    """

    def __init__(self, store: Store, trials: Sequence[Trial], data: str, mark: str) -> None:
        self.store, self.trials = store, list(trials)
        if store.path is not None:
            _check_names(self.trials)
        keys = store.add(self.trials, data, mark)
        self.keys = dict(zip(self.trials, keys, strict=True))
        self._back = dict(zip(keys, self.trials, strict=True))

    def claim(self, wanted: Sequence[Trial], count: int) -> list[Trial]:
        """Those that nobody has."""
        return [self._back[key] for key in self.store.claim([self.keys[t] for t in wanted], count)]

    def finish(self, ended: Sequence[tuple[Trial, Result]]) -> None:
        """Keep results."""
        self.store.finish([(self.keys[trial], result) for trial, result in ended])

    def fail(self, trial: Trial, message: str) -> None:
        """Keep a failure."""
        self.store.fail(self.keys[trial], message)

    def release(self, trials: Sequence[Trial]) -> None:
        """Let others have them."""
        self.store.release([self.keys[trial] for trial in trials])


def _check_names(trials: Sequence[Trial]) -> None:
    """Results are told apart by what trials say of themselves, and an object without a name says nothing."""
    for name in {str(trial.plan.describe()["optimiser"]) for trial in trials}:
        if name.startswith("own"):
            raise ValueError(
                "an optimiser that is an object cannot be told from others in a file; give a function, or functools.partial of an optimiser"
            )


def run(
    space: Space | Sequence[Trial],
    dataset: Dataset | str,
    *,
    store: Store | str | os.PathLike[str] | None = None,
    device: torch.device | str | None = None,
    jobs: int = 1,
    watch: Callable[[Progress], None] | None = None,
    most: int = 1024,
    seconds: float | None = None,
    loss: Any = None,
    retry_failed: bool = False,
    threads: int | None = None,
) -> Study:
    """Train all trials of a space on a dataset, as many at once as fit; those that are in the store already are not trained again.

    The study that comes back is about these trials alone, whatever else is in the store; ``Study.open(file)`` is about all.

    Every trial gives what it gives alone. Each one that ends is on disk at once: a run that was killed goes on with the
    rest when it is called again, and several processes may run the same study.

    Args:
        space: from :func:`~unspool.study.grid`, :func:`~unspool.study.random` or :func:`~unspool.study.paper_grid`, or trials.
        dataset: a name such as ``"cora"``, or a dataset with a split.
        store: a file (made where there is none), a :class:`~unspool.study.Store`, or None for memory.
        device: a GPU where there is one when omitted.
        jobs: processes that train side by side, on a CPU; call from under ``if __name__ == "__main__":`` with more than one.
        watch: told now and then how it is getting on.
        most: the largest number of trials at once.
        seconds: end after so long; the rest waits for the next call.
        loss: the upper loss, as for :class:`~unspool.train.Task`.
        retry_failed: train trials of the store again that failed before.
        threads: of each process on a CPU; one on graphs of up to 4,096 nodes and all cores above when omitted.

    Example:
        >>> import unspool as us
        >>> from unspool import datasets
        >>> data = datasets.contextual_sbm(nodes=60, classes=2, seed=0)
        >>> grid = us.study.grid(us.models.GPRGNN, seed=range(2), hidden=8, teleport=[0.1, 0.5], dropout=[0.1, 0.5], epochs=10)
        >>> found = run(grid, data)
        >>> print(found.best())
        GPRGNN ...
    """
    if jobs < 1:
        raise ValueError(f"jobs={jobs}: at least one process trains")
    if seconds is not None and not seconds > 0:
        raise ValueError(f"seconds={seconds}: expected a positive number")
    if device is not None:
        check_device(str(device))
    where = torch.device(device_for(device))
    provide = Provider(dataset, where, loss)
    trials = space.trials(provide.name) if isinstance(space, Space) else list(space)
    if not trials:
        raise ValueError("there is nothing to train: the space has no trials")
    kept, folder = _opened(store, jobs)
    kept.check_room()
    if retry_failed:
        kept.retry_failed()
    ledger = StoreLedger(kept, trials, provide.name, provide.mark)
    with use_threads(threads):
        if jobs > 1 and where.type == "cpu" and len(trials) > 1:
            jobs = min(jobs, len(trials))
            share = -(-len(trials) // jobs)  # or the first process takes all that fit into one pack
            train_together(ledger, provide, jobs, watch, most=min(most, share), seconds=seconds)
        else:
            train_trials(trials, provide, ledger, most=most, watch=watch, seconds=seconds)
    return Study(kept, folder, ledger.keys.values())


def _opened(store: Store | str | os.PathLike[str] | None, jobs: int) -> tuple[Store, Any]:
    """The store, and the temporary folder that it lies in, if it does."""
    if isinstance(store, Store):
        return store, None
    if store is not None or jobs == 1:
        return Store(store), None
    folder = tempfile.TemporaryDirectory(prefix="unspool-study-")
    return Store(Path(folder.name) / "study.db"), folder
