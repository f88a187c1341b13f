"""Networks that are trained one by one, because somebody wants their weights afterwards; a study keeps none."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from unspool import study, train
from unspool.datasets import Dataset
from unspool.report.text import counted
from unspool.reproduce.bench import Bench, record
from unspool.reproduce.results import Record
from unspool.study import Row, Status, Trial
from unspool.study.trial import Result
from unspool.train.device import device_for
from unspool.train.task import Task

#: Seconds between two lines about how training is getting on.
EVERY = 15.0

#: Is given the model before it is trained, and changes it.
Prepare = Callable[[nn.Module], None]


@dataclass(frozen=True, eq=False)
class Trained:
    """A network with the weights of its selected epoch, and how it got them."""

    trial: Trial
    model: Any
    task: Task
    result: Result


def where_to_train(bench: Bench) -> str:
    """The device that was asked for, or the one that every door takes."""
    return device_for(bench.place.device)


def train_each(
    bench: Bench, base: Dataset, trials: Sequence[Trial], prepare: Callable[[Trial, nn.Module], None] | None = None
) -> list[Trained]:
    """Train every trial, telling how far it is; one that fails by itself is told about and left out.

    Args:
        bench: where they are trained; counts them.
        base: the data, rows scaled already where trials want that.
        trials: what is trained.
        prepare: changes a model before it is trained.
    """
    nets: list[Trained] = []
    began = said_at = time.monotonic()
    for count, trial in enumerate(trials):
        if count and time.monotonic() - said_at > EVERY:
            said_at = time.monotonic()
            left = (said_at - began) / count * (len(trials) - count)
            bench.say(f"  {count} of {counted(len(trials), 'network')}, about {left:.0f} s left")
        try:
            nets.append(_train(trial, base, where_to_train(bench), prepare))
        except Exception as problem:  # as in a study, what fails by itself leaves the others alone
            said = f"{trial.name} on {base.name}: {type(problem).__name__}: {problem}"
            bench.failed = list(dict.fromkeys([*bench.failed, said]))
        else:
            bench.trained += 1
    return nets


def _train(trial: Trial, base: Dataset, where: str, prepare: Callable[[Trial, nn.Module], None] | None) -> Trained:
    member = study.Provider(base, where)(replace(trial, normalise_rows=False))
    model = member.model.to(member.task.target.device)
    if prepare is not None:
        prepare(trial, model)
    run = train.fit(model, member.task, trial.plan)
    if run.reason == "interrupted":  # a part of a training is not a result
        raise KeyboardInterrupt
    best = run.best
    result = Result(
        best.epoch, len(run.history), best.train_loss, best.valid_loss, best.valid_score, best.test_score, run.reason, run.seconds
    )  # fmt: skip
    return Trained(trial, model.eval(), member.task, result)


@torch.no_grad()
def accuracy(output: Tensor, task: Task, nodes: Tensor) -> float:
    """The share of some nodes whose largest output is their class; NaN where there are no nodes.

    Example:
        >>> from unspool import datasets
        >>> task = Task.of(datasets.contextual_sbm(nodes=60, classes=2, seed=0))
        >>> accuracy(torch.nn.functional.one_hot(task.target.long(), 2), task, task.test)
        1.0
    """
    return float((output[nodes].argmax(-1) == task.target[nodes]).double().mean())


def as_record(experiment: str, trial: Trial, data: Dataset, variant: str, result: Result | None) -> Record:
    """A network as a row of results; without a result, what its settings are."""
    nothing = Result(0, 0, 0.0, 0.0, 0.0, 0.0, "", 0.0)
    row = Row("", 0, data.name, trial.describe(), Status.DONE, nothing if result is None else result, None, None, "")
    return record(experiment, data.name, "paper", variant, row)


def settings_of(trial: Trial, data: Dataset) -> dict[str, Any]:
    """Everything that decides a network but its seed, as plain values.

    Example:
        >>> import unspool as us
        >>> from unspool import datasets
        >>> settings_of(Trial(us.models.GCN, {"depth": 3}), datasets.contextual_sbm(nodes=60, seed=0))["depth"]
        3
    """
    told = as_record("depth", trial, data, "", None)
    plain = {"depth": told.depth, "rate": told.rate, "decay": told.decay, "dropout": told.dropout}
    return {**{name: value for name, value in plain.items() if value is not None}, **told.settings}
