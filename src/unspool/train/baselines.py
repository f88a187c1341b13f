"""What is reached without the model: the same answer for all, the features alone, the graph alone."""

from __future__ import annotations

import hashlib
import json
import math
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from unspool.algorithm import Exact
from unspool.errors import IncompatibleError, InputError
from unspool.evaluate.plain import from_plain, to_plain
from unspool.files import write_whole
from unspool.models import MLP
from unspool.models.known_labels import label_propagation
from unspool.objective import Fidelity, NodeFidelity, Smoothness
from unspool.ops import SparseFeatures, features_of
from unspool.ops.convergence import ConvergenceWarning
from unspool.ops.stored_hops import StoredHops
from unspool.train.config import LowerLevel
from unspool.train.fitting import Diverged
from unspool.train.loader import TrialLoader
from unspool.train.record import Ending
from unspool.train.task import Task
from unspool.train.task_kind import TaskKind
from unspool.train.training import train_trial
from unspool.train.trial import Trial
from unspool.unrolling import unroll

FILE = "baselines.json"
#: Raised when baselines are measured in another way.
FORMAT = 1
#: What a perceptron gets at most, as it must not take longer than the model: epochs, and seeds.
EPOCHS, SEEDS = 200, 3
#: Multiplications of the first layer over all epochs: above the first, one seed has to do; above the second, none is trained.
ONE_SEED, NO_SEED = 2e10, 2e11
#: Multiplications of label propagation, from which on it is left out.
NO_GRAPH = 2e10
#: How smooth propagated labels may be; validation nodes choose.
SMOOTHNESS = (0.3, 1.0, 3.0, 10.0)
#: How much nodes that no label reaches are drawn to nothing.
PRIOR = 0.01


class Baseline(Enum):
    """``CONSTANT``: the same answer for all nodes, the most common class or the mean. ``FEATURES``: a perceptron, which sees no graph.
    ``GRAPH``: label propagation, which sees no features.
    """

    CONSTANT = "constant"
    FEATURES = "features"
    GRAPH = "graph"


class Skipped(Enum):
    """Why a baseline has no score."""

    ITSELF = "the model is a perceptron itself"
    LARGE = "the data are large, and it would take longer than a few seconds"
    NO_LAPLACIAN = "labels spread over undirected graphs only"
    NOT_FOR_THIS = "there is none for this kind of target"
    DIVERGED = "its training diverged under this configuration"
    NOT_SOLVED = "its equations were not solved to the end"
    NO_EDGES = "the data are hops on the disk, which hold no graph"


@dataclass(frozen=True)
class BaselineScore:
    """A baseline, its test score under each seed, or why it has none."""

    baseline: Baseline
    scores: tuple[float, ...] = ()
    skipped: Skipped | None = None


@dataclass(frozen=True)
class Baselines:
    """What baselines reach on the splits of some seeds of a job.

    Attributes:
        key: of everything that decides them.
        data: the fingerprint of the data.
        score: what the scores are.
        seeds: under which they were measured.
        entries: one for each baseline.
        epochs: that the perceptron had at most.
        seconds: that it took.
    """

    key: str
    data: str
    score: str
    seeds: tuple[int, ...]
    entries: tuple[BaselineScore, ...]
    epochs: int = EPOCHS
    seconds: float = 0.0

    def of(self, baseline: Baseline) -> BaselineScore | None:
        """One of them."""
        return next((one for one in self.entries if one.baseline is baseline), None)

    def mean(self, baseline: Baseline) -> float | None:
        """The mean score of one of them, where it has one."""
        found = self.of(baseline)
        return None if found is None or not found.scores else sum(found.scores) / len(found.scores)


def measure_baselines(trial: Trial, loader: TrialLoader, seeds: Sequence[int]) -> Baselines | None:
    """Measure all baselines beside a trial, on the splits of its seeds; None where someone asked to stop.

    They learn from training nodes alone, and what has to be chosen (the epoch, the smoothness) is chosen on validation nodes. The
    perceptron has the hidden width, the dropout and the configuration of the trial, and at most :data:`EPOCHS` epochs.

    Args:
        trial: the model they stand beside; its seed does not count.
        loader: the data.
        seeds: of the job; the first few are enough.

    Example:
        >>> import unspool as us
        >>> from unspool import datasets, train
        >>> loader = train.TrialLoader(datasets.contextual_sbm(nodes=90, classes=3, seed=0))
        >>> trial = train.Trial(us.models.APPNP, {"hidden": 8}, train.TrainConfig(epochs=20))
        >>> found = measure_baselines(trial, loader, [0])
        >>> [one.baseline.value for one in found.entries], 0 < found.mean(Baseline.GRAPH) <= 1
        (['constant', 'features', 'graph'], True)
    """
    began = time.monotonic()
    chosen = wanted_seeds(trial, loader, seeds)
    tasks = [loader.task(seed, trial.normalise_rows) for seed in chosen]
    perceptron = _features(trial, loader, chosen)
    if perceptron is None:
        return None
    entries = (_constant(loader.kind, tasks), perceptron, _graph(loader, tasks))
    key, epochs = baselines_key(trial, loader, seeds), perceptron_of(trial).config.epochs
    return Baselines(key, loader.fingerprint, loader.score, tuple(chosen), entries, epochs, time.monotonic() - began)


def perceptron_of(trial: Trial) -> Trial:
    """The perceptron that stands beside a trial.

    Example:
        >>> import unspool as us
        >>> print(perceptron_of(Trial(us.models.GCN, {"hidden": 8})))
        MLP(hidden=8, dropout=0.5), lr 0.01, weight decay 0.0005, seed 0
    """
    there = trial.schema.complete(trial.settings)
    same = {name: there[name] for name in ("hidden", "dropout") if name in there and _fits(name, there[name])}
    config = trial.config.replace(epochs=min(trial.config.epochs, EPOCHS), lower_level=LowerLevel.UNROLLED, upper=None)
    return Trial(MLP, same, config, trial.seed, trial.normalise_rows, trial.preset)


def wanted_seeds(trial: Trial, loader: TrialLoader, seeds: Sequence[int]) -> list[int]:
    """The seeds under which baselines are measured: the first few, fewer where they take long."""
    return [*seeds][: 1 if _work(trial, loader) > ONE_SEED else SEEDS]


def baselines_key(trial: Trial, loader: TrialLoader, seeds: Sequence[int]) -> str:
    """The same for the same baselines, in any process."""
    perceptron = perceptron_of(trial).with_seed(0).key(loader.fingerprint)
    parts = [FORMAT, perceptron, trial.model is MLP, [*seeds][:SEEDS]]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:24]


def write_baselines(folder: Path, found: Baselines) -> None:
    """Keep baselines in the folder of a job."""
    text = json.dumps(to_plain(found), indent=1)
    write_whole(folder / FILE, lambda file: file.write(text.encode()))


def read_baselines(folder: Path) -> Baselines | None:
    """The baselines of a job; None where there are none, or where the file is not what :func:`write_baselines` wrote.

    Example:
        >>> import tempfile
        >>> place = Path(tempfile.mkdtemp())
        >>> write_baselines(place, Baselines("k", "d", "accuracy", (0,), (BaselineScore(Baseline.CONSTANT, (0.5,)),)))
        >>> read_baselines(place).mean(Baseline.CONSTANT)
        0.5
    """
    file = folder / FILE
    if not file.is_file():
        return None
    try:
        return from_plain(Baselines, json.loads(file.read_text(encoding="utf-8")))
    except (ValueError, OSError, RecursionError):
        return None


# -- inside ------------------------------------------------------------------------------------------------------------


def _fits(name: str, value: Any) -> bool:
    """Whether a setting of the same name can be a perceptron's: a model of one's own may mean anything by it."""
    try:
        MLP.schema[name].accept(value)
    except InputError:
        return False
    return True


def _work(trial: Trial, loader: TrialLoader) -> float:
    """Multiplications of the perceptron's first layer, over all epochs of a seed."""
    perceptron = perceptron_of(trial)
    x: Any = loader.first.x
    x = x if isinstance(x, StoredHops) else features_of(x)
    entries = x.operator.forward.val.numel() if isinstance(x, SparseFeatures) else x.shape[0] * x.shape[1]
    hidden = MLP.schema.complete(perceptron.settings)["hidden"]
    faster = 1.0 if loader.device.type == "cpu" else 0.05
    return faster * float(entries) * hidden * perceptron.config.epochs


def _constant(kind: TaskKind, tasks: list[Task]) -> BaselineScore:
    """The best that one answer for all nodes can do: the share of the most common class, or the score of the training mean."""
    scores: list[float] = []
    for task in tasks:
        target = task.target.index_select(0, task.test)
        if not target.numel():
            continue
        if kind is TaskKind.CLASSES:
            scores.append(float(torch.bincount(target).max() / target.numel()))
        elif kind in (TaskKind.BINARY, TaskKind.NUMBERS, TaskKind.RANKING, TaskKind.LINKS):
            same = torch.zeros(target.shape[0], 1 if target.ndim == 1 else target.shape[1], device=target.device)
            scores.append(float(task.loss.score(same, target)))  # numbers are learnt at mean 0
        else:
            return BaselineScore(Baseline.CONSTANT, skipped=Skipped.NOT_FOR_THIS)
    return BaselineScore(Baseline.CONSTANT, tuple(scores))


def _features(trial: Trial, loader: TrialLoader, seeds: list[int]) -> BaselineScore | None:
    if trial.model is MLP:
        return BaselineScore(Baseline.FEATURES, skipped=Skipped.ITSELF)
    if _work(trial, loader) > NO_SEED:
        return BaselineScore(Baseline.FEATURES, skipped=Skipped.LARGE)
    scores: list[float] = []
    for seed in seeds:
        try:
            _, run = train_trial(perceptron_of(trial).with_seed(seed), loader)
        except Diverged:
            return BaselineScore(Baseline.FEATURES, skipped=Skipped.DIVERGED)
        if run.ending is Ending.INTERRUPTED:
            return None
        scores.append(run.best.test_score)
    return BaselineScore(Baseline.FEATURES, tuple(scores))


def _graph(loader: TrialLoader, tasks: list[Task]) -> BaselineScore:
    if loader.kind not in (TaskKind.CLASSES, TaskKind.BINARY, TaskKind.NUMBERS, TaskKind.RANKING):
        return BaselineScore(Baseline.GRAPH, skipped=Skipped.NOT_FOR_THIS)
    if isinstance(loader.first.x, StoredHops):
        return BaselineScore(Baseline.GRAPH, skipped=Skipped.NO_EDGES)
    width = loader.outputs if loader.kind is TaskKind.CLASSES else 1
    if 60.0 * len(SMOOTHNESS) * width * loader.first.graph.operator.forward.col.numel() > NO_GRAPH:
        return BaselineScore(Baseline.GRAPH, skipped=Skipped.LARGE)
    scores: list[float] = []
    for task in tasks:
        if not task.test.numel():
            continue
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error", ConvergenceWarning)
                scores.append(_propagated(task.to("cpu"), loader.kind))
        except IncompatibleError:
            return BaselineScore(Baseline.GRAPH, skipped=Skipped.NO_LAPLACIAN)
        except ConvergenceWarning:
            return BaselineScore(Baseline.GRAPH, skipped=Skipped.NOT_SOLVED)
    return BaselineScore(Baseline.GRAPH, tuple(scores))


def _propagated(task: Task, kind: TaskKind) -> float:
    """The test score of the smoothness that validation nodes like best."""
    task.graph.require_laplacian()
    found: list[tuple[float, float]] = []
    for smoothness in SMOOTHNESS:
        output = _spread(task, kind, smoothness)
        valid, test = (
            float(task.loss.score(output.index_select(0, ids), task.target.index_select(0, ids)))
            for ids in (task.valid, task.test)
        )
        found.append((valid, test))
    # The first of equals; a score that does not exist is never the best.
    return max(found, key=lambda pair: -math.inf if math.isnan(pair[0]) else pair[0])[1]


def _spread(task: Task, kind: TaskKind, smoothness: float) -> Tensor:
    """What the labels of training nodes say about every node, as the loss reads outputs."""
    if kind in (TaskKind.CLASSES, TaskKind.BINARY):
        classes = int(task.target.max()) + 1
        told = label_propagation(
            task.target, task.train, classes, task.graph, smoothness=smoothness, prior_weight=PRIOR
        )
        return told if kind is TaskKind.CLASSES else told[:, 1:] - told[:, :1]
    target = task.target.reshape(task.target.shape[0], -1).to(task.graph.dtype)
    known = target[task.train]
    seen = torch.zeros(target.shape[0], dtype=target.dtype)
    seen[task.train] = 1.0
    # Only the training nodes' numbers go in: those of the others are not looked at.
    given = torch.where(seen[:, None] > 0, target - known.mean(0), 0.0)
    objective = NodeFidelity(seen, 1.0, given) + Fidelity(PRIOR) + Smoothness(smoothness)
    with torch.no_grad():
        return unroll(objective, Exact())(torch.zeros_like(given), task.graph) + known.mean(0)
