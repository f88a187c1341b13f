"""Training one model: epochs, selection, stopping, snapshots."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from unspool.train.plan import Plan
from unspool.train.record import Epoch
from unspool.train.snapshot import Snapshot, read_snapshot, write_snapshot
from unspool.train.task import Task


class Diverged(RuntimeError):
    """The loss became NaN or infinite; the message names the epoch and the likely cause."""


@dataclass(frozen=True, eq=False)
class Run:
    """A finished (or interrupted) training run; the model holds the best weights.

    Attributes:
        best: the epoch that was selected.
        history: all epochs.
        reason: why it ended.
        seconds: how long this process trained.
    """

    best: Epoch
    history: tuple[Epoch, ...]
    reason: str
    seconds: float

    def __str__(self) -> str:
        return (
            f"epoch {self.best.epoch} of {len(self.history)} ({self.reason}): validation loss {self.best.valid_loss:.4f}, "
            f"score {self.best.valid_score:.4f}, test {self.best.test_score:.4f}"
        )


def fit(
    model: nn.Module,
    task: Task,
    plan: Plan,
    *,
    watch: Callable[[Epoch, Epoch], None] | None = None,
    snapshot: Path | None = None,
    every: float = 10.0,
) -> Run:
    """Train a model; afterwards it holds the weights of the selected epoch, in evaluation mode.

    Args:
        model: called as ``model(x, graph)``.
        task: data and upper loss.
        plan: rates, epochs, selection and stopping.
        watch: called after each epoch with it and the best so far.
        snapshot: a file that the run is saved to now and then, and continued from if it is there; a run that was cut off
            and continued ends with the same numbers as one that was not.
        every: seconds between snapshots.

    Example:
        >>> import torch, unspool as us
        >>> from unspool import datasets, train
        >>> data = datasets.contextual_sbm(nodes=60, classes=2, seed=0)
        >>> model = us.models.MLP(data.features.shape[1], 2)
        >>> train.fit(model, train.Task.of(data), train.Plan(epochs=3)).best.epoch in (1, 2, 3)
        True
    """
    optimiser = plan.optimiser(plan.groups(model), lr=plan.rate)
    state = Snapshot.fresh() if snapshot is None else read_snapshot(snapshot, model, optimiser)
    began, saved, reason = time.monotonic(), time.monotonic(), "all epochs"
    try:
        while len(state.history) < plan.epochs and not state.ended:
            _advance(model, optimiser, task, plan, state)
            if watch is not None:
                watch(state.history[-1], state.history[state.best - 1])
            if plan.ended(state.history, state.history[state.best - 1]):
                state.ended = True
            if snapshot is not None and time.monotonic() - saved >= every:
                write_snapshot(snapshot, state, model, optimiser)
                saved = time.monotonic()
    except KeyboardInterrupt:
        if not state.history:
            raise
        reason = "interrupted"
    if state.ended:
        reason = plan.stop.value.split(",")[0].replace("`patience`", str(plan.patience))
    # Trap: an interrupt may have come between the step and its record; the last snapshot is whole, the present moment may not be.
    if snapshot is not None and reason != "interrupted":
        write_snapshot(snapshot, state, model, optimiser)
    model.load_state_dict(state.weights)
    model.eval()
    return Run(state.history[state.best - 1], tuple(state.history), reason, time.monotonic() - began)


def _advance(model: nn.Module, optimiser: Any, task: Task, plan: Plan, state: Snapshot) -> None:
    """One epoch: a step on the training nodes, then a look at all of them."""
    model.train()
    optimiser.zero_grad(set_to_none=True)
    epoch = len(state.history) + 1
    output = model(task.x, task.graph) if epoch == 1 else _run(model, task, epoch, plan)
    loss = task.loss.loss(_at(output, task.train), _at(task.target, task.train))
    if not bool(torch.isfinite(loss)):
        raise _diverged("the training loss is not finite", epoch, plan)
    loss.backward()
    optimiser.step()
    model.eval()
    with torch.no_grad():
        output = _run(model, task, epoch, plan)
        valid, truth = _at(output, task.valid), _at(task.target, task.valid)
        test = task.loss.score(_at(output, task.test), _at(task.target, task.test)) if task.test.numel() else None
        now = Epoch(
            epoch,
            float(loss.detach()),
            float(task.loss.loss(valid, truth)),
            float(task.loss.score(valid, truth)),
            float("nan") if test is None else float(test),
        )
    state.history.append(now)
    best = state.history[state.best - 1] if state.best else None
    if plan.better(now, best):
        state.best = epoch
        state.weights = copy.deepcopy(model.state_dict())


def _run(model: nn.Module, task: Task, epoch: int, plan: Plan) -> Tensor:
    """The output after a step was taken: what is wrong inside the model now was right before."""
    try:
        return model(task.x, task.graph)
    except ValueError as problem:
        raise _diverged("signals inside the model are not finite", epoch, plan) from problem


def _diverged(what: str, epoch: int, plan: Plan) -> Diverged:
    return Diverged(
        f"{what} in epoch {epoch}: the learning rate {plan.rate:g} is probably too large (or a feature is huge); lower it or "
        "scale the features"
    )


def _at(values: Tensor, ids: Tensor) -> Tensor:
    return values.index_select(0, ids)
