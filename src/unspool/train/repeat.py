"""The same training under several seeds, and what the seeds say together."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import nn

from unspool.train.fit import Run, fit
from unspool.train.plan import Plan
from unspool.train.record import Epoch
from unspool.train.seeded import seeded
from unspool.train.task import Task


@dataclass(frozen=True, eq=False)
class Runs:
    """Runs of one model under several seeds.

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
    build: Callable[[], nn.Module],
    task: Task,
    plan: Plan,
    seeds: int | Iterable[int] = 10,
    *,
    watch: Callable[[int, Epoch, Epoch], None] | None = None,
    folder: Path | None = None,
) -> Runs:
    """Train a model anew for each seed.

    A seed decides the starting weights and the dropout, so the same seed gives the same run, alone or among others; torch's
    own generator is left as it was found.

    Args:
        build: makes a fresh model, such as ``lambda: us.models.GCN(3703, 6)``.
        task, plan: as in :func:`unspool.train.fit`.
        seeds: how many (0, 1, ...), or which.
        watch: called after each epoch with the seed, the epoch, and the best so far.
        folder: where unfinished runs are kept (``seed0.pt``, ...), and continued from.

    Example:
        >>> import unspool as us
        >>> from unspool import datasets, train
        >>> data = datasets.contextual_sbm(nodes=60, classes=2, seed=0)
        >>> build = lambda: us.models.GCN(data.features.shape[1], 2, hidden=8)
        >>> runs = train.repeat(build, train.Task.of(data), train.Plan(epochs=20), seeds=3)
        >>> print(runs)
        test accuracy 0... ± 0... over 3 seeds
    """
    wanted = tuple(range(seeds)) if isinstance(seeds, int) else tuple(seeds)
    if not wanted:
        raise ValueError("no seeds: give a number of at least 1, or the seeds themselves")
    runs: list[Run] = []
    models: list[nn.Module] = []
    for seed in wanted:
        seeing = None if watch is None else _told(watch, seed)
        place = None if folder is None else folder / f"seed{seed}.pt"
        model, run = run_seed(build, seed, task, plan, watch=seeing, snapshot=place)
        runs.append(run)
        models.append(model)
    return Runs(wanted, tuple(runs), tuple(models), task.loss.score_name)


def run_seed(
    build: Callable[[], nn.Module], seed: int, task: Task, plan: Plan, **options: Any
) -> tuple[nn.Module, Run]:
    """Build and train a model under one seed, on the task's device; options as in :func:`unspool.train.fit`.

    The same seed gives the same run, also from several threads, which wait for one another.
    """
    device = task.target.device
    with seeded(seed, device):
        model = build().to(device)
        return model, fit(model, task, plan, **options)


def _told(watch: Callable[[int, Epoch, Epoch], None], seed: int) -> Callable[[Epoch, Epoch], None]:
    return lambda now, best: watch(seed, now, best)
