"""Settings from elsewhere, trained together: what other people's search methods need of a study."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from unspool.datasets import Dataset
from unspool.study.engine.progress import EVERY, Progress
from unspool.study.results.best import Measure, Sample, measure
from unspool.study.search.space import Space
from unspool.study.store import Row, Status, Store
from unspool.study.study import Study, run
from unspool.train import Ending, Result, Trial, TrialLoader


@dataclass(frozen=True)
class Outcome:
    """What came of one setting under all its seeds.

    Attributes:
        seeds: those that ended.
        results: one for each of them.
        failures: what went wrong, for each seed that did not end, or once if the setting does not fit its model.

    Example:
        >>> ended = Outcome((0, 1), tuple(Result(5, 9, 0.1, 0.6, s, s - 0.1, Ending.ALL_EPOCHS, 0.4) for s in (0.8, 0.9)))
        >>> round(ended.value(), 3), round(ended.test.mean, 3), ended.diverged
        (0.85, 0.75, False)
        >>> Outcome((), (), ("MemoryError: no room",)).value()
        nan
    """

    seeds: tuple[int, ...]
    results: tuple[Result, ...]
    failures: tuple[str, ...] = ()

    @property
    def valid(self) -> Sample:
        """Validation scores, seed by seed."""
        return Sample(tuple(r.valid_score for r in self.results))

    @property
    def loss(self) -> Sample:
        """Validation losses, seed by seed."""
        return Sample(tuple(r.valid_loss for r in self.results))

    @property
    def test(self) -> Sample:
        """Test scores, seed by seed; to be reported, and never to be searched by."""
        return Sample(tuple(r.test_score for r in self.results))

    @property
    def diverged(self) -> bool:
        """Whether training blew up under any of the seeds."""
        return any(r.ending is Ending.DIVERGED or not math.isfinite(r.valid_loss) for r in self.results)

    def value(self, by: Measure = Measure.VALID_SCORE) -> float:
        """The mean over the seeds; NaN if one of them failed or diverged, as the rest would flatter the setting."""
        if self.failures or self.diverged or not self.results:
            return math.nan
        return self.valid.mean if measure(by) is Measure.VALID_SCORE else self.loss.mean


def evaluate(
    spaces: Iterable[Space | Sequence[Trial]],
    dataset: Dataset | str | TrialLoader,
    *,
    seeds: Iterable[int] | None = None,
    store: Store | str | os.PathLike[str] | None = None,
    device: torch.device | str | None = None,
    jobs: int = 1,
    watch: Callable[[Progress], None] | None = None,
    most: int = 1024,
    loss: Any = None,
) -> list[Outcome]:
    """Train many settings at once, each under several seeds, and give back what came of each.

    For whoever has a search method of their own, Optuna's ask-and-tell among them::

        asked = [study.ask() for _ in range(32)]
        for trial, outcome in zip(asked, evaluate([suggest(trial) for trial in asked], data)):
            study.tell(trial, outcome.value())

    :func:`~unspool.study.optuna_search` is this in a loop, with failures, attributes and interrupts seen to. A setting that cannot
    be built or trained has an outcome too, which says why; the others go on.

    Args:
        spaces: one for each setting, such as ``grid(models.GCN, seed=range(3), dropout=0.3)``; or trials that differ in their
            seeds alone.
        dataset, store, device, jobs, watch, most, loss: as for :func:`~unspool.study.run`.
        seeds: take the place of the seeds of the spaces.

    Example:
        >>> import unspool as us
        >>> from unspool import datasets
        >>> data = datasets.contextual_sbm(nodes=60, classes=2, seed=0)
        >>> settings = [us.study.grid(us.models.GCN, hidden=8, dropout=d, epochs=10) for d in (0.1, 0.5, 0.8)]
        >>> [len(outcome.results) for outcome in evaluate(settings, data, seeds=range(2))]  # 6 trials at once
        [2, 2, 2]
    """
    options = {"device": device, "jobs": jobs, "watch": watch, "most": most, "loss": loss}
    study = None if store is None else Study(store if isinstance(store, Store) else Store(store), keys=())
    return evaluated(list(spaces), dataset, several(seeds), study, options)[0]


def evaluated(
    spaces: Sequence[Space | Sequence[Trial]],
    dataset: Dataset | str | TrialLoader,
    seeds: tuple[int, ...] | None,
    study: Study | None,
    options: dict[str, Any],
) -> tuple[list[Outcome], Study | None]:
    """The outcomes, and the study that holds the trials: the one that was given, or a new one; None if nothing was trained."""
    loader = dataset if isinstance(dataset, TrialLoader) else TrialLoader(dataset, loss=options["loss"])
    written = [_written(space, loader.name, seeds) for space in spaces]
    trials = {trial.key(loader.fingerprint): trial for some in written if not isinstance(some, str) for trial in some}
    rows: dict[str, Row] = {}
    if trials:
        study, rows = _trained(trials, dataset, study, options)
    outcomes = [
        Outcome((), (), (some,)) if isinstance(some, str) else _outcome([rows[t.key(loader.fingerprint)] for t in some])
        for some in written
    ]
    return outcomes, study


def several(seeds: Any) -> tuple[int, ...] | None:
    """Seeds as a tuple; None stays None.

    Example:
        >>> several(range(3))
        (0, 1, 2)
    """
    if seeds is None:
        return None
    if isinstance(seeds, int):
        raise TypeError(f"seeds={seeds}: expected several, such as range({max(seeds, 1)}), or [{seeds}]")
    found = tuple(dict.fromkeys(seeds))
    if not found:
        raise ValueError("seeds: the list is empty; give at least one seed")
    return found


def _written(space: Any, name: str, seeds: tuple[int, ...] | None) -> list[Trial] | str:
    """The trials of one setting, or why there are none."""
    if not isinstance(space, Space | list | tuple) or not all(isinstance(t, Trial) for t in _listed(space)):
        raise TypeError(
            f"{type(space).__name__}: expected a space, such as grid(models.GCN, dropout=0.3), or a list of trials"
        )
    try:
        trials = space.trials(name) if isinstance(space, Space) else list(space)
        settings = {trial.with_seed(0).key("") for trial in trials}
    except (ValueError, TypeError) as problem:
        return f"{type(problem).__name__}: {problem}"
    if len(settings) != 1:
        raise ValueError(f"{len(settings)} settings where one is wanted; give single values, and one model")
    return trials if seeds is None else [trials[0].with_seed(seed) for seed in seeds]


def _listed(space: Any) -> Sequence[Any]:
    return () if isinstance(space, Space) else space


def _trained(
    trials: dict[str, Trial], dataset: Dataset | str | TrialLoader, study: Study | None, options: dict[str, Any]
) -> tuple[Study, dict[str, Row]]:
    """Train what is not in the study yet, and wait for what others have in work."""
    left: set[str] = set()
    while True:
        found = run(list(trials.values()), dataset, store=None if study is None else study.store, **options)
        study = found if study is None else study.joined(found)
        rows = {row.key: row for row in found.rows}
        busy = any(row.status is Status.RUNNING for row in rows.values())
        waiting = {key for key, row in rows.items() if row.status is Status.WAITING}
        # Another process may have the same trial in work, and give it back. One that nobody ends in two rounds ends processes.
        if not busy and (not waiting or waiting == left):
            return study, rows
        left = set() if busy else waiting
        if busy:
            time.sleep(EVERY)


def _outcome(rows: Sequence[Row]) -> Outcome:
    ended = [(int(row.trial["seed"]), row.result) for row in rows if row.result is not None]
    failures = [_failure(row) for row in rows if row.result is None]
    return Outcome(tuple(seed for seed, _ in ended), tuple(result for _, result in ended), tuple(failures))


def _failure(row: Row) -> str:
    return "its process ended early" if row.message is None else row.message
