"""Training one model: epochs, selection, stopping, snapshots."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from unspool import identity
from unspool.errors import IncompatibleError, InputError, mention
from unspool.graph.spreading import Layout
from unspool.interrupt import deferred_interrupt
from unspool.models import registry
from unspool.settings import Schema
from unspool.settings.kinds import Anything
from unspool.train.batches import Batches, check_source
from unspool.train.callbacks import Callback, Moment, asks_to_stop
from unspool.train.conduct import found_by_us
from unspool.train.config import TrainConfig
from unspool.train.epochs import Epochs, few_threads, make_optimiser
from unspool.train.hyper import Hyper
from unspool.train.record import Ending, Epoch, Result
from unspool.train.snapshot import Snapshot, read_snapshot, write_snapshot
from unspool.train.spreading import SpreadTraining
from unspool.train.task import Task
from unspool.train.trial import Trial, looks
from unspool.train.upper.sum import Upper
from unspool.train.upper.teacher import Distil


class Diverged(IncompatibleError):
    """The loss became NaN or infinite; the message names the epoch and the likely cause."""


@dataclass(frozen=True, eq=False)
class Run:
    """A finished (or interrupted) training run; the model holds the best weights.

    Attributes:
        best: the epoch that was selected.
        history: all epochs.
        ending: why it ended.
        seconds: how long it trained, all pieces of a run that was cut off together.
    """

    best: Epoch
    history: tuple[Epoch, ...]
    ending: Ending
    seconds: float

    @property
    def result(self) -> Result:
        """The numbers of the selected epoch, as studies keep them."""
        best = self.best
        return Result(
            best.epoch, len(self.history), best.train_loss, best.valid_loss, best.valid_score, best.test_score, self.ending, self.seconds
        )  # fmt: skip

    def __str__(self) -> str:
        return (
            f"epoch {self.best.epoch} of {len(self.history)} ({self.ending.value}): validation loss {self.best.valid_loss:.4f}, "
            f"score {self.best.valid_score:.4f}, test {self.best.test_score:.4f}"
        )


def fit(
    model: nn.Module,
    task: Task,
    config: TrainConfig,
    *,
    watch: Callable[[Epoch, Epoch], None] | None = None,
    callbacks: Sequence[Callback] = (),
    snapshot: Path | None = None,
    snapshot_every: float = 10.0,
    restart: bool = False,
    trial: Trial | None = None,
    hyper: Hyper | None = None,
    spread: Layout | None = None,
    batches: Batches | None = None,
) -> Run:
    """Train a model; afterwards it holds the weights of the selected epoch, in evaluation mode.

    On a GPU the epoch runs as one CUDA graph. On the CPU, graphs of a few thousand nodes are trained with one thread (see
    :func:`~unspool.train.epochs.few_threads`).

    Args:
        model: called as ``model(x, graph)``.
        task: data and upper loss.
        config: rates, epochs, selection and stopping.
        watch: called after each epoch with it and the best so far.
        callbacks: called after each epoch with a :class:`~unspool.train.Moment`; one that answers ``Verdict.STOP`` ends training.
        snapshot: a file that the run is saved to now and then, and continued from if it is there; a run that was cut off
            and continued ends with the same numbers as one that was not.
        snapshot_every: seconds between snapshots.
        restart: begin at the first epoch although there is a snapshot, which stays until the first of this run is written.
        trial: what the model is a run of, where it is one: a snapshot of another class, seed or code is refused.
        hyper: parameters that learn on half of the validation nodes, by gradients through what the others learn; the other half choose
            the epoch.
        spread: how the graph is cut over the processes of ``torch.distributed``, all of which call this; the run is then that of one
            process to rounding, and the one that numbers them 0 writes snapshots.
        batches: a source of batches of one's own, such as :class:`~unspool.train.ClusterBatches` or :class:`~unspool.train.PygBatches`; those
            that ``config.batch_size`` asks for when omitted.

    Example:
        >>> import torch, unspool as us
        >>> from unspool import datasets, train
        >>> data = datasets.contextual_sbm(nodes=60, classes=2, seed=0)
        >>> model = us.models.MLP(data.features.shape[1], 2)
        >>> train.fit(model, train.Task.of(data), train.TrainConfig(epochs=3)).best.epoch in (1, 2, 3)
        True
    """
    _check(model, task, config, snapshot_every)
    check_source(batches, model, task, config, spread)
    optimiser = make_optimiser(config, model, hyper)
    about = (
        {} if snapshot is None and spread is None else _about(model, task, config, trial, hyper=hyper, batches=batches)
    )
    seed = torch.initial_seed() % 2**63 if trial is None else trial.seed
    group = None if spread is None else _spread(model, task, config, spread, hyper, about, seed)
    state = _begun(group, model, optimiser, about, seed, None if restart else snapshot)
    snapshot = snapshot if group is None or group.ranks.rank == 0 else None
    if len(state.history) > config.epochs:
        raise IncompatibleError(
            f"{snapshot} holds {len(state.history)} epochs already, more than {mention('epochs', config.epochs)}; give at least as many, "
            "or remove it"
        )
    epochs = Epochs(model, optimiser, task, config, state.seed, len(state.history), hyper, group, batches)
    saved, ending = time.monotonic(), Ending.ALL_EPOCHS
    began = saved - state.seconds
    whole = True
    try:
        with few_threads(task), deferred_interrupt() as interrupt:
            while len(state.history) < config.epochs and not state.ended:
                best = _advance(epochs, state)
                state.ended = config.ended(state.history, best)
                if watch is not None:
                    watch(state.history[-1], best)
                if callbacks:
                    now = state.history[-1]
                    moment = Moment.of(now, best, config.rate(now.epoch), model)
                    state.ended = asks_to_stop(callbacks, moment) or state.ended
                state.seconds = time.monotonic() - began
                if snapshot is not None and time.monotonic() - saved >= snapshot_every:
                    write_snapshot(snapshot, state, model, optimiser, about)
                    saved = time.monotonic()
                if group is not None:
                    state.ended = group.ranks.any(state.ended)
                if interrupt.asked if group is None else group.ranks.any(interrupt.asked):
                    ending = Ending.INTERRUPTED
                    break
    except KeyboardInterrupt:
        if state.best is None:
            raise
        ending, whole = Ending.INTERRUPTED, False
    if state.ended:
        ending = Ending.STOPPED
    # Trap: an exception may have come between the step and its record; the last snapshot is whole, the present moment may not be.
    if snapshot is not None and whole:
        write_snapshot(snapshot, state, model, optimiser, about)
    assert state.best is not None
    model.load_state_dict(state.kept[1])
    model.eval()
    return Run(state.best, tuple(state.history), ending, state.seconds)


def _begun(
    group: SpreadTraining | None, model: nn.Module, optimiser: Any, about: dict[str, Any], seed: int, snapshot: Path | None
) -> Snapshot:  # fmt: skip
    def begin() -> Snapshot:
        return Snapshot.fresh(seed) if snapshot is None else read_snapshot(snapshot, model, optimiser, about, seed)

    return begin() if group is None else group.begun(begin, model, optimiser)


def _spread(
    model: nn.Module, task: Task, config: TrainConfig, layout: Layout, hyper: Any, about: dict[str, Any], seed: int
) -> SpreadTraining:  # fmt: skip
    if hyper is not None:
        raise IncompatibleError(
            f"{mention('hyper')} has a step of its own; leave it out, or leave {mention('spread')} out"
        )
    made = SpreadTraining(model, task, config, layout)
    made.check_same(about, config, seed)
    return made


def _check(model: nn.Module, task: Any, config: Any, snapshot_every: float) -> None:
    if not isinstance(task, Task):
        raise TypeError(f"{type(task).__name__} is not a task: give train.Task.of(data)")
    if not isinstance(config, TrainConfig):
        raise InputError("config", config, "a TrainConfig, such as train.TrainConfig(lr=0.02)")
    if task.target.device != (found := _device(model, task)):
        raise ValueError(f"the model is on {found}, the task on {task.target.device}: call task.to({str(found)!r})")
    if not 0 <= snapshot_every < math.inf:
        raise InputError("snapshot_every", snapshot_every, "a finite number of seconds of at least 0")


def _about(
    model: nn.Module, task: Task, config: TrainConfig, trial: Trial | None, **more: Any
) -> dict[str, dict[str, Any]]:
    """What a snapshot belongs to: the number of epochs may grow without changing the course of a run."""
    # A module of one's own may mean anything by these names.
    settings, schema = getattr(model, "settings", None), getattr(model, "schema", None)
    held = settings.items() if isinstance(settings, Mapping) else ()
    beside = {name: str(value) for name, value in more.items() if value is not None}
    return {
        "trial": {"model": registry.name_of(type(model)), **({} if trial is None else {"seed": trial.seed})},
        "config": {name: value for name, value in config.to_plain().items() if name != "epochs"} | beside,
        "settings": {name: _shown(schema, name, value) for name, value in held},
        "task": {"task": task.digest},
        "code": {} if trial is None else {"code": trial.code},
        "teacher": {} if config.upper is None else _teachers(config.upper),
    }


def _teachers(upper: Upper) -> dict[str, str]:
    """Contents of the teachers by their texts, which name a folder or say nothing of what is in memory."""
    held: dict[str, list[Any]] = {}
    for part in upper.parts:
        if isinstance(part.term, Distil):
            held.setdefault(part.term.text(), []).extend(part.term.objects)
    return {text: identity.digest(tuple(objects), text) for text, objects in held.items()}


def _shown(schema: Any, name: str, value: Any) -> str:
    declared = schema[name] if isinstance(schema, Schema) and name in schema else None
    return looks(value) if declared is None or isinstance(declared.kind, Anything) else declared.shown(value)


def _advance(epochs: Epochs, state: Snapshot) -> Epoch:
    """One epoch, its record, and its weights if it is the best so far; gives the best so far."""
    number = len(state.history) + 1
    try:
        now = Epoch(number, *epochs())
    except ValueError as problem:
        if not epochs.stepped or not found_by_us(problem):
            raise
        # What is wrong inside the model now was right before a step was taken.
        raise _diverged("signals inside the model are not finite", number, epochs.config) from problem
    if not math.isfinite(now.train_loss):
        if (term := epochs.culprit()) is not None:
            raise Diverged(
                f"the term {term} is not finite in epoch {number}, and what the network says is; look for a division by 0, or a "
                "logarithm or a root of 0, in it"
            )
        raise _diverged("the training loss is not finite", number, epochs.config)
    if not math.isfinite(now.valid_loss):
        raise _diverged("the validation loss is not finite", number, epochs.config)
    state.history.append(now)
    best = state.best
    if best is None or epochs.config.better(now, best):
        state.keep(epochs.model)
        return now
    return best


def _diverged(what: str, epoch: int, config: TrainConfig) -> Diverged:
    return Diverged(
        f"{what} in epoch {epoch}: the learning rate {config.lr:g} is probably too large (or a feature is huge); lower it or "
        "scale the features"
    )


def _device(model: nn.Module, task: Task) -> torch.device:
    """Where the model lives: that of its parameters, the task's own if it has none."""
    return next((p.device for p in model.parameters()), task.target.device)
