"""Training one model: epochs, selection, stopping, snapshots."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import nn

from unspool.errors import IncompatibleError
from unspool.train.epochs import Epochs, few_threads, make_optimiser
from unspool.train.interrupt import deferred_interrupt
from unspool.train.plan import Plan
from unspool.train.record import Epoch
from unspool.train.snapshot import Snapshot, read_snapshot, write_snapshot
from unspool.train.task import Task


class Diverged(IncompatibleError):
    """The loss became NaN or infinite; the message names the epoch and the likely cause."""


@dataclass(frozen=True, eq=False)
class Run:
    """A finished (or interrupted) training run; the model holds the best weights.

    Attributes:
        best: the epoch that was selected.
        history: all epochs.
        reason: why it ended.
        seconds: how long it trained, all pieces of a run that was cut off together.
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
    anew: bool = False,
) -> Run:
    """Train a model; afterwards it holds the weights of the selected epoch, in evaluation mode.

    On a GPU the epoch runs as one CUDA graph. On the CPU, graphs of a few thousand nodes are trained with one thread (see
    :func:`~unspool.train.epochs.few_threads`).

    Args:
        model: called as ``model(x, graph)``.
        task: data and upper loss.
        plan: rates, epochs, selection and stopping.
        watch: called after each epoch with it and the best so far.
        snapshot: a file that the run is saved to now and then, and continued from if it is there; a run that was cut off
            and continued ends with the same numbers as one that was not.
        every: seconds between snapshots.
        anew: begin at the first epoch although there is a snapshot, which stays until the first of this run is written.

    Example:
        >>> import torch, unspool as us
        >>> from unspool import datasets, train
        >>> data = datasets.contextual_sbm(nodes=60, classes=2, seed=0)
        >>> model = us.models.MLP(data.features.shape[1], 2)
        >>> train.fit(model, train.Task.of(data), train.Plan(epochs=3)).best.epoch in (1, 2, 3)
        True
    """
    if not isinstance(task, Task):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError(f"{type(task).__name__} is no task: give train.Task.of(data)")
    if task.target.device != (found := _device(model, task)):
        raise ValueError(f"the model is on {found}, the task on {task.target.device}: call task.to({str(found)!r})")
    optimiser = make_optimiser(plan, model)
    about = {} if snapshot is None else {**plan.describe(), "task": task.digest, **_settings(model)}
    if not 0 <= every < math.inf:
        raise ValueError(f"every={every}: seconds between snapshots are a finite number of at least 0")
    state = Snapshot.fresh() if snapshot is None or anew else read_snapshot(snapshot, model, optimiser, about)
    if len(state.history) > plan.epochs:
        raise ValueError(
            f"{snapshot} holds {len(state.history)} epochs already, more than epochs={plan.epochs}; give at least as many, or remove it"
        )
    epochs = Epochs(model, optimiser, task, plan)
    saved, reason = time.monotonic(), "all epochs"
    began = saved - state.seconds
    whole = True
    try:
        with few_threads(task), deferred_interrupt() as interrupt:
            while len(state.history) < plan.epochs and not state.ended:
                best = _advance(epochs, state)
                state.ended = plan.ended(state.history, best)
                if watch is not None:
                    watch(state.history[-1], best)
                state.seconds = time.monotonic() - began
                if snapshot is not None and time.monotonic() - saved >= every:
                    write_snapshot(snapshot, state, model, optimiser, about)
                    saved = time.monotonic()
                if interrupt.asked:
                    reason = "interrupted"
                    break
    except KeyboardInterrupt:
        if state.best is None:
            raise
        reason, whole = "interrupted", False
    if state.ended:
        reason = plan.stop.value.split(",")[0].replace("`patience`", str(plan.patience))
    # Trap: an exception may have come between the step and its record; the last snapshot is whole, the present moment may not be.
    if snapshot is not None and whole:
        write_snapshot(snapshot, state, model, optimiser, about)
    assert state.best is not None
    model.load_state_dict(state.kept[1])
    model.eval()
    return Run(state.best, tuple(state.history), reason, state.seconds)


def _settings(model: nn.Module) -> dict[str, str]:
    """What a model was built with, in words: weights alone do not tell dropout masks or a teleport."""
    return {f"the model's {name}": str(value) for name, value in dict(getattr(model, "settings", {})).items()}


def _advance(epochs: Epochs, state: Snapshot) -> Epoch:
    """One epoch, its record, and its weights if it is the best so far; gives the best so far."""
    number = len(state.history) + 1
    try:
        now = Epoch(number, *epochs())
    except ValueError as problem:
        if not epochs.stepped:
            raise
        # What is wrong inside the model now was right before a step was taken.
        raise _diverged("signals inside the model are not finite", number, epochs.plan) from problem
    if not math.isfinite(now.train_loss):
        raise _diverged("the training loss is not finite", number, epochs.plan)
    if not math.isfinite(now.valid_loss):
        raise _diverged("the validation loss is not finite", number, epochs.plan)
    state.history.append(now)
    best = state.best
    if best is None or epochs.plan.better(now, best):
        state.keep(epochs.model)
        return now
    return best


def _diverged(what: str, epoch: int, plan: Plan) -> Diverged:
    return Diverged(
        f"{what} in epoch {epoch}: the learning rate {plan.rate:g} is probably too large (or a feature is huge); lower it or "
        "scale the features"
    )


def _device(model: nn.Module, task: Task) -> torch.device:
    """Where the model lives: that of its parameters, the task's own if it has none."""
    return next((p.device for p in model.parameters()), task.target.device)
