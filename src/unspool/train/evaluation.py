"""What a trained model does beside its score: class by class, how sure it is, and where it errs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from unspool.evaluate import (
    Calibration,
    ClassScores,
    NumberScores,
    ProbabilityScores,
    Uncalibrated,
    calibrated,
    fit_temperature,
    score_classes,
    score_numbers,
    score_probabilities,
)
from unspool.evaluate.calibration import as_classes
from unspool.spectral.linear_form import evaluating
from unspool.train.loader import TrialLoader
from unspool.train.seeding import seeded
from unspool.train.task import Task
from unspool.train.task_kind import TaskKind
from unspool.train.trial import Trial

Array = np.ndarray[Any, Any]

#: How many errors are kept, and how many points of true against predicted numbers.
ERRORS, POINTS = 10, 400


@dataclass(frozen=True)
class Mistake:
    """A test node whose class is wrong: its number and name, the classes by name, and how probable the wrong one was."""

    node: int
    name: str
    truth: str
    predicted: str
    probability: float


@dataclass(frozen=True)
class Miss:
    """A test node whose number is far off, in the units of the target."""

    node: int
    name: str
    truth: float
    predicted: float


@dataclass(frozen=True)
class Evaluation:
    """Everything that is known of the test nodes beside the score; entries that a kind of task does not have are None or empty.

    Attributes:
        items: how many test nodes (or pairs of nodes) there are.
        classes: scores of the classes.
        train_support: how many training nodes each class has.
        raw: scores of the probabilities as the network gives them.
        calibrated: the same with the temperature; None where there is none.
        calibration: the temperature, or why there is none.
        numbers: scores of each column of numbers.
        points: true and predicted numbers of the first column, of at most :data:`POINTS` test nodes.
        mistakes: the most confident ones, the worst first.
        misses: the largest errors of the first column of numbers.
    """

    items: int = 0
    classes: ClassScores | None = None
    train_support: tuple[int, ...] = ()
    raw: ProbabilityScores | None = None
    calibrated: ProbabilityScores | None = None
    calibration: Calibration | None = None
    numbers: tuple[NumberScores, ...] = ()
    points: tuple[tuple[float, float], ...] = ()
    mistakes: tuple[Mistake, ...] = ()
    misses: tuple[Miss, ...] = ()


def evaluate_trained(model: nn.Module, loader: TrialLoader, trial: Trial) -> Evaluation:
    """Evaluate a trained model on the split of its trial.

    Args:
        model: as training left it.
        loader, trial: what it was trained on, and how.

    Example:
        >>> import unspool as us
        >>> from unspool import datasets, train
        >>> loader = train.TrialLoader(datasets.contextual_sbm(nodes=90, classes=3, seed=0))
        >>> trial = train.Trial(us.models.APPNP, {"hidden": 8}, train.TrainConfig(epochs=40))
        >>> model, run = train.train_trial(trial, loader)
        >>> found = evaluate_trained(model, loader, trial)
        >>> abs(found.classes.accuracy - run.best.test_score) < 1e-6, sum(found.classes.support) == loader.data.split.test.numel()
        (True, True)
    """
    task = loader.task(trial.seed, trial.normalise_rows)
    items = int(task.test.numel())
    if not items or loader.kind not in (TaskKind.CLASSES, TaskKind.BINARY, TaskKind.NUMBERS):
        return Evaluation(items)
    with seeded(trial.seed, loader.device), evaluating(model), torch.no_grad():
        output: Tensor = model(task.x, task.graph).double().cpu()
    if not bool(torch.isfinite(output).all()):
        return Evaluation(items)
    named = loader.data.names
    names = [str(i) for i in range(loader.data.nodes)] if named is None else [str(name) for name in named]
    if loader.kind is TaskKind.NUMBERS:
        return _numbers(output, task, names)
    return _classes(output.numpy(), task, names, loader.data.classes)


def calibrate(output: Array, task: Task) -> Calibration:
    """Fit a temperature to the validation nodes of a task, and see what it changes there and on test nodes.

    Args:
        output: what the model says about every node.
        task: its classes, and its three sets of nodes.

    Example:
        >>> import numpy as np
        >>> from unspool import datasets
        >>> task = Task.of(datasets.load("citeseer"))
        >>> sure = 9 * np.eye(6)[np.where(np.arange(3327) % 4, task.target, (task.target + 1) % 6)]
        >>> found = calibrate(sure, task)
        >>> found.temperature > 1, found.nodes, found.valid_after < found.valid_before
        (True, 500, True)
    """
    values, target = as_classes(output), task.target.cpu().numpy().astype(np.int64)
    valid, test = task.valid.cpu().numpy(), task.test.cpu().numpy()
    found = fit_temperature(values[valid], target[valid])
    if isinstance(found, Uncalibrated):
        return Calibration(None, int(valid.size), found)
    errors = [
        score_probabilities(calibrated(values[part], t), target[part]).ece if part.size else None
        for part in (valid, test)
        for t in (None, found)
    ]
    return Calibration(found, int(valid.size), None, *errors)


def temperature_of(card: Mapping[str, Any]) -> float | None:
    """The temperature of a trained model, by its card; None where there is none.

    Example:
        >>> temperature_of({"evaluation": {"calibration": {"temperature": 1.5, "nodes": 40}}}), temperature_of({})
        (1.5, None)
    """
    held: Any = card.get("evaluation")
    found: Any = held.get("calibration") if isinstance(held, Mapping) else None
    value: Any = found.get("temperature") if isinstance(found, Mapping) else None
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) and value > 0 else None


def _classes(output: Array, task: Task, names: list[str], called: tuple[str, ...]) -> Evaluation:
    values, target = as_classes(output), task.target.cpu().numpy().astype(np.int64)
    test, learnt = task.test.cpu().numpy(), target[task.train.cpu().numpy()]
    temperature = calibrate(output, task)
    raw, truth = calibrated(values[test], None), target[test]
    mild = None if temperature.temperature is None else calibrated(values[test], temperature.temperature)
    told = (
        [str(name) for name in called] if len(called) == values.shape[1] else [str(c) for c in range(values.shape[1])]
    )
    return Evaluation(
        items=int(test.size),
        classes=score_classes(raw, truth),
        train_support=tuple(int(n) for n in np.bincount(learnt, minlength=values.shape[1])),
        raw=score_probabilities(raw, truth),
        calibrated=None if mild is None else score_probabilities(mild, truth),
        calibration=temperature,
        mistakes=_mistakes(raw if mild is None else mild, truth, test, names, told),
    )


def _mistakes(chances: Array, truth: Array, test: Array, names: list[str], called: list[str]) -> tuple[Mistake, ...]:
    said, sure = chances.argmax(1), chances.max(1)
    wrong = np.flatnonzero(said != truth)
    worst = wrong[np.argsort(-sure[wrong], kind="stable")][:ERRORS].tolist()
    return tuple(
        Mistake(int(test[k]), names[int(test[k])], called[int(truth[k])], called[int(said[k])], float(sure[k]))
        for k in worst
    )


def _numbers(output: Tensor, task: Task, names: list[str]) -> Evaluation:
    target = task.target.cpu().double().reshape(output.shape)
    said, truth = (v if task.scaling is None else task.scaling.undo(v) for v in (output, target))
    test, train = task.test.cpu(), task.train.cpu()
    mine, right, known = said[test].numpy(), truth[test].numpy(), truth[train].numpy()
    scores = tuple(score_numbers(mine[:, k], right[:, k], float(known[:, k].mean())) for k in range(mine.shape[1]))
    spread = np.unique(np.linspace(0, len(test) - 1, min(POINTS, len(test))).round().astype(int)).tolist()
    far = np.argsort(-np.abs(mine[:, 0] - right[:, 0]), kind="stable")[:ERRORS].tolist()
    return Evaluation(
        items=int(test.numel()),
        numbers=scores,
        points=tuple((float(right[k, 0]), float(mine[k, 0])) for k in spread),
        misses=tuple(Miss(int(test[k]), names[int(test[k])], float(right[k, 0]), float(mine[k, 0])) for k in far),
    )
