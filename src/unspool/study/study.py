"""Running a study, and asking it what came of it."""

from __future__ import annotations

import contextlib
import copy
import functools
import os
import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import nn

from unspool.datasets import Dataset
from unspool.device import check_device, device_for
from unspool.errors import UNSHOWN, IncompatibleError, InputError, mention
from unspool.settings.kinds import Mismatch, Whole
from unspool.study.engine import train_trials
from unspool.study.engine.progress import Progress
from unspool.study.machines.cluster import Ray
from unspool.study.machines.crew import train_on_machines
from unspool.study.processes import train_together
from unspool.study.report import write_report
from unspool.study.results.best import Best, Measure
from unspool.study.results.comparison import Comparison, compare
from unspool.study.results.exporting import export
from unspool.study.results.importances import Importance, importance
from unspool.study.results.trial_table import TrialTable
from unspool.study.search.space import Space
from unspool.study.store import Access, Row, Store
from unspool.train import DataRecord, Result, Run, Trial, TrialLoader, train_trial
from unspool.train.threads import use_threads


class Study:
    """Many trials and what came of them.

    Args:
        store: where the trials are.
        folder: a temporary one that goes with the study.
        keys: of the trials that the study is about; all in the store when omitted.
        loader: of the data that they were trained on, where it is at hand.
        trials: by their keys, where they are at hand.

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
        >>> model = found.model(found.rows[0])  # the trained network
    """

    def __init__(
        self,
        store: Store,
        folder: Any = None,
        keys: Iterable[str] | None = None,
        loader: TrialLoader | None = None,
        trials: Mapping[str, Trial] | None = None,
    ) -> None:
        self.store, self.loader, self._folder = store, loader, folder
        self._trials: Mapping[str, Trial] = {} if trials is None else trials
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
    def table(self) -> TrialTable:
        """The finished trials."""
        return TrialTable.of(self.rows)

    def joined(self, other: Study) -> Study:
        """This study with the trials of another one in the same store."""
        both = None if self.keys is None or other.keys is None else self.keys | other.keys
        loader = other.loader if self.loader is None else self.loader
        return Study(self.store, self._folder, both, loader, {**self._trials, **other._trials})

    def best(self, over: str | Sequence[str] = "seed", by: Measure = Measure.VALID_SCORE) -> Best:
        """The best settings by validation, with the spread of their test scores; see :meth:`TrialTable.best`."""
        return self.table.best(over, by)

    def compare(self, a: Any, b: Any, **options: Any) -> Comparison:
        """Two models over the same seeds and splits; see :func:`unspool.study.compare`."""
        return compare(self.table, a, b, **options)

    def importance(self, **options: Any) -> Importance:
        """Which settings matter; see :func:`unspool.study.importance`."""
        return importance(self.table, **options)

    def export(self, path: str | os.PathLike[str]) -> Path:
        """All trials into a CSV, Parquet or JSON file."""
        return export(self.rows, path)

    def report(self, path: str | os.PathLike[str], *, by: Measure = Measure.VALID_SCORE) -> Path:
        """The result, whether it is real and what to try next, as one HTML page; see :func:`unspool.study.write_report`."""
        return write_report(self.table, path, by=by, file=self.store.path)

    def model(
        self, row: Row | int, *, data: Dataset | str | TrialLoader | None = None, model: type[nn.Module] | None = None
    ) -> nn.Module:
        """The trained network of a trial, by training it again, exactly.

        Args:
            row: one of ``rows``, or its number.
            data: what it was trained on, where this study was not run in this process; a loader also says what is predicted.
            model: the class, where it is not of this package and this study was not run in this process.
        """
        found = row if isinstance(row, Row) else self._row(row)
        loader = self.loader if data is None else data if isinstance(data, TrialLoader) else TrialLoader(data)
        if loader is None:
            raise InputError("data", None, "the data that the study was run on: a dataset, or its name")
        return train_again(found, loader, self._trials.get(found.key), model=model)[1]

    def _row(self, number: Any) -> Row:
        with contextlib.suppress(Mismatch):
            wanted = Whole().accept(number)
            for row in self.rows:
                if row.number == wanted:
                    return row
        raise InputError("row", number, "the number of a trial of this study")

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return self.table.html()

    def __str__(self) -> str:
        return str(self.table)


def train_again(
    row: Row, loader: TrialLoader, trial: Trial | None = None, *, model: type[nn.Module] | None = None, **options: Any
) -> tuple[Trial, nn.Module, Run]:
    """Train the trial of a row once more, alone, and see that it comes out as before.

    Args:
        row: of a store.
        loader: of the data that it was trained on.
        trial: that of the row, where it is at hand; otherwise it is built from what the row says.
        model: the class, where it is not of this package.
        options: of :func:`unspool.train.train_trial`.
    """
    if loader.fingerprint != row.data.fingerprint:
        raise IncompatibleError(
            f"trial {row.number} was trained on {row.data.name} with the fingerprint {row.data.fingerprint}, and these data have "
            f"{loader.fingerprint}; give the data, the split and the loss that it was trained with"
        )
    if trial is None:
        trial = Trial.from_plain(row.trial, model)
    else:
        trial.check_code(row.trial["code"])
    made, run = train_trial(trial, loader, **options)
    if row.result is not None and not same_but_for_rounding(run.result, row.result):
        raise IncompatibleError(
            f"trial {row.number} chose epoch {row.result.epoch} with a validation loss of {row.result.valid_loss:.6g}, and training it again "
            f"here chose epoch {run.best.epoch} with {run.best.valid_loss:.6g}: {_why_another(trial)}; train it where the study ran"
        )
    return trial, made, run


def _why_another(trial: Trial) -> str:
    """Why a trial may come out in another way than before, although its key is the same."""
    own = "." in trial.code
    more = f", or {trial.name} computes with something that its key does not hold (random numbers of its own, files, the clock)"
    return "this machine rounds differently" + (more if own else "")


def same_but_for_rounding(one: Result, other: Result) -> bool:
    """Whether two runs of a trial are the same but for rounding: the same epoch was chosen, with the same loss to three digits.

    Example:
        >>> from unspool.train import Ending
        >>> a, b = (Result(12, 50, 0.1, loss, 0.7, 0.71, Ending.ALL_EPOCHS, 0.4) for loss in (0.90001, 0.90002))
        >>> same_but_for_rounding(a, b)
        True
    """
    close = abs(one.valid_loss - other.valid_loss) <= 2e-3 * max(abs(one.valid_loss), abs(other.valid_loss), 1e-12)
    return one.epoch == other.epoch and close


class StoreTracker:
    """A store seen by the engine: trials in the place of keys.

    Example:
        >>> import unspool as us
        >>> store = Store(None)
        >>> tracker = StoreTracker(store, [Trial(us.models.GCN)], DataRecord("cora", "5e1f"))
        >>> len(tracker.claim(tracker.trials, 1))
        1
    """

    def __init__(self, store: Store, trials: Sequence[Trial], data: DataRecord) -> None:
        self.store, self.trials = store, list(trials)
        if store.path is not None:
            _check_names(self.trials)
        keys = store.add(self.trials, data)
        self.keys = dict(zip(self.trials, keys, strict=True))
        self._back = dict(zip(keys, self.trials, strict=True))

    def through(self, store: Any) -> StoreTracker:
        """The same trials in something else that claims, finishes, fails and releases as a store does."""
        other = copy.copy(self)
        other.store = store
        return other

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
    for optimiser in {id(trial.config.optimiser): trial.config.optimiser for trial in trials}.values():
        maker: Any = optimiser
        while isinstance(maker, functools.partial):
            maker = maker.func
        if not hasattr(maker, "__name__"):
            raise ValueError(
                "an optimiser that is an object cannot be distinguished from others in a file; give a function, or functools.partial of an optimiser"
            )


def run(
    space: Space | Sequence[Trial],
    dataset: Dataset | str | TrialLoader,
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
    machines: Ray | None = None,
) -> Study:
    """Train all trials of a space on a dataset, as many at once as fit; those that are in the store already are not trained again.

    The study that comes back is about these trials alone, whatever else is in the store; ``Study.open(file)`` is about all.

    Every trial gives what it gives alone. Each one that ends is on disk at once: a run that was killed goes on with the
    rest when it is called again, and several processes may run the same study.

    Args:
        space: from :func:`~unspool.study.grid` or :func:`~unspool.study.random`, or trials.
        dataset: a name such as ``"cora"``, a dataset with a split, or a :class:`~unspool.train.TrialLoader`, which also says what is
            predicted.
        store: a file (made where there is none), a :class:`~unspool.study.Store`, or None for memory.
        device: a GPU where there is one when omitted.
        jobs: processes that train side by side, on a CPU; call from under ``if __name__ == "__main__":`` with more than one.
        watch: told now and then how it is getting on.
        most: the largest number of trials at once.
        seconds: end after so long; the rest waits for the next call.
        loss: the upper loss, as for :class:`~unspool.train.Task`.
        retry_failed: train trials of the store again that failed before.
        threads: of each process on a CPU; one on graphs of up to 4,096 nodes and all cores above when omitted.
        machines: a Ray cluster whose machines train, with threads, GPUs and workers as it says, in the place of ``jobs`` and ``threads``;
            ``device`` is then where they train. The file stays on this machine.

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
        raise InputError("jobs", jobs, "a whole number of at least 1")
    if seconds is not None and not seconds > 0:
        raise InputError("seconds", seconds, "a positive number")
    for name, given in (("loss", loss), ("device", None if machines is not None else device)):
        if isinstance(dataset, TrialLoader) and given is not None:
            raise InputError(name, UNSHOWN, "nothing with a TrialLoader, which has its own", "give it to the loader")
    if machines is not None:
        _check_machines(jobs, threads, device)
    here = device if machines is None else "cpu"
    loader = dataset if isinstance(dataset, TrialLoader) else _loader(dataset, here, loss)
    trials = space.trials(loader.name) if isinstance(space, Space) else list(space)
    if not trials:
        raise ValueError("there is nothing to train: the space has no trials")
    kept, folder = _opened(store, alone=jobs == 1 and machines is None)
    kept.check_disk_space()
    if retry_failed:
        kept.retry_failed()
    if machines is not None and kept.path is None:
        raise InputError("store", UNSHOWN, "a file with machines", "a study in memory stays in its process")
    tracker = StoreTracker(kept, trials, loader.record)
    with use_threads(threads):
        if machines is not None:
            with machines.connected(None if device is None else str(device)) as cluster:
                train_on_machines(tracker, loader, cluster, watch, most=most, seconds=seconds)
        elif jobs > 1 and loader.device.type == "cpu" and len(trials) > 1:
            jobs = min(jobs, len(trials))
            share = -(-len(trials) // jobs)  # or the first process takes all that fit into one batch
            train_together(tracker, loader, jobs, watch, most=min(most, share), seconds=seconds)
        else:
            train_trials(trials, loader.prepare, tracker, most=most, watch=watch, seconds=seconds)
    return Study(kept, folder, tracker.keys.values(), loader, {key: trial for trial, key in tracker.keys.items()})


def _loader(dataset: Dataset | str, device: torch.device | str | None, loss: Any) -> TrialLoader:
    if device is not None:
        check_device(str(device))
    return TrialLoader(dataset, device_for(device), loss=loss)


def _check_machines(jobs: int, threads: int | None, device: torch.device | str | None) -> None:
    """What :class:`Ray` says itself is not said twice."""
    if jobs != 1:
        raise InputError("jobs", jobs, "nothing with machines", f"say {mention('machines', 'Ray(workers=...)')}")
    if threads is not None:
        raise InputError("threads", threads, "nothing with machines", f"say {mention('machines', 'Ray(cpus=...)')}")
    if device is not None and str(device) not in ("cpu", "cuda"):
        raise InputError(
            "device", str(device), "'cpu' or 'cuda' with machines", "each worker has one GPU, the one that Ray gives it"
        )


def _opened(store: Store | str | os.PathLike[str] | None, alone: bool) -> tuple[Store, Any]:
    """The store, and the temporary folder that it lies in, if it does."""
    if isinstance(store, Store):
        return store, None
    if store is not None or alone:
        return Store(store), None
    folder = _OwnFolder()
    return Store(folder.path / "study.db"), folder


class _OwnFolder:
    """A temporary folder that goes when nobody has it any more, without the warning that ``tempfile`` gives then."""

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="unspool-study-"))
        weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)
