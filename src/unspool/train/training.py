"""Training one trial, the same under several seeds, and what the seeds say together."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from torch import nn

from unspool.datasets import Dataset
from unspool.errors import InputError
from unspool.train.fitting import Run, fit
from unspool.train.loader import TrialLoader
from unspool.train.record import Epoch
from unspool.train.seeding import seeded
from unspool.train.trial import Trial


def train_trial(trial: Trial, data: Dataset | str | TrialLoader, **options: Any) -> tuple[nn.Module, Run]:
    """Train one trial; gives its model with the weights of the selected epoch, and the run.

    The same trial gives the same run, alone or among others, also from several threads, which wait for one another.

    Args:
        trial: model, settings, configuration and seed.
        data: a dataset or its name, or a loader, which also says where to train and what is predicted.
        options: ``watch``, ``callbacks``, ``snapshot``, ``snapshot_every``, ``restart``, ``hyper`` and ``spread`` of :func:`~unspool.train.fit`.

    Example:
        >>> import unspool as us
        >>> from unspool import datasets, train
        >>> data = datasets.contextual_sbm(nodes=60, classes=2, seed=0)
        >>> trial = train.Trial(us.models.GCN, {"hidden": 8}, train.TrainConfig(epochs=20), seed=1)
        >>> model, run = train.train_trial(trial, data)
        >>> print(run)
        epoch ... of 20 (all epochs): validation loss ..., score ..., test ...
    """
    _check_trial(trial)
    loader = data if isinstance(data, TrialLoader) else TrialLoader(data)
    with seeded(trial.seed, loader.device):
        # Trap: the weights are drawn first, and whatever training draws comes after them.
        model = loader.make(trial).to(loader.device)
        task = loader.task(trial.seed, trial.normalise_rows)
        return model, fit(model, task, trial.config, trial=trial, **options)


def _check_trial(given: Any) -> None:
    if not isinstance(given, Trial):
        raise InputError("trial", given, "a Trial, such as train.Trial(us.models.GCN, {'hidden': 8})")


@dataclass(frozen=True, eq=False)
class Runs:
    """Runs of one trial under several seeds.

    Attributes:
        seeds, runs, models: in the same order; each model holds its best weights.
        score_name: what the scores are.
    """

    seeds: tuple[int, ...]
    runs: tuple[Run, ...]
    models: tuple[nn.Module, ...]
    score_name: str

    @property
    def test(self) -> tuple[float, ...]:
        """The test score of each seed, at the epoch that validation chose."""
        return tuple(run.best.test_score for run in self.runs)

    @property
    def mean(self) -> float:
        """Of the test scores."""
        return statistics.fmean(self.test)

    @property
    def std(self) -> float:
        """Sample standard deviation of the test scores; NaN for a single seed."""
        return statistics.stdev(self.test) if len(self.runs) > 1 else float("nan")

    def __str__(self) -> str:
        spread = f" ± {self.std:.4f}" if len(self.runs) > 1 else ""
        return f"test {self.score_name} {self.mean:.4f}{spread} over {len(self.runs)} seed{'s'[: len(self.runs) > 1]}"


def repeat(
    trial: Trial,
    data: Dataset | str | TrialLoader,
    seeds: int | Iterable[int] = 10,
    *,
    watch: Callable[[int, Epoch, Epoch], None] | None = None,
    folder: Path | None = None,
) -> Runs:
    """Train a trial anew for each seed.

    A seed decides the starting weights, the dropout and the split where splits are drawn; torch's own generator is left as it was.

    Args:
        trial, data: as in :func:`train_trial`; the seed of the trial does not count.
        seeds: how many (0, 1, ...), or which.
        watch: called after each epoch with the seed, the epoch, and the best so far.
        folder: where unfinished runs are kept (``seed0.pt``, ...), and continued from.

    Example:
        >>> import unspool as us
        >>> from unspool import datasets, train
        >>> data = datasets.contextual_sbm(nodes=60, classes=2, seed=0)
        >>> trial = train.Trial(us.models.GCN, {"hidden": 8}, train.TrainConfig(epochs=20))
        >>> print(train.repeat(trial, data, seeds=3))
        test accuracy 0... ± 0... over 3 seeds
    """
    _check_trial(trial)
    wanted = tuple(range(seeds)) if isinstance(seeds, int) else tuple(seeds)
    if not wanted:
        raise ValueError("no seeds: give a number of at least 1, or the seeds themselves")
    loader = data if isinstance(data, TrialLoader) else TrialLoader(data)
    runs: list[Run] = []
    models: list[nn.Module] = []
    for seed in wanted:
        options: dict[str, Any] = {"watch": None if watch is None else partial(watch, seed)}
        options["snapshot"] = None if folder is None else folder / f"seed{seed}.pt"
        model, run = train_trial(trial.with_seed(seed), loader, **options)
        runs.append(run)
        models.append(model)
    return Runs(wanted, tuple(runs), tuple(models), loader.score)
