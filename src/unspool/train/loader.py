"""Trials made ready on one dataset: its features, graph and targets once, its splits by seed."""

from __future__ import annotations

import copy
import functools
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from unspool import identity
from unspool.datasets import Dataset, Split, splits
from unspool.datasets import load as load_dataset
from unspool.datasets.fingerprint import fingerprint
from unspool.errors import UNSHOWN, InputError
from unspool.settings.kinds import EnumMember
from unspool.train.class_weight import Balance
from unspool.train.links import link_task
from unspool.train.seeding import seeded
from unspool.train.task import Task
from unspool.train.task_kind import TaskKind
from unspool.train.trial import Trial


@dataclass(frozen=True, eq=False)
class PreparedTrial:
    """A trial that is ready to train: its fresh model (on the CPU) and its task (on the device of the training).

    Tasks of one batch share features, graph, classes and loss; their three sets of nodes may differ, and with them the scale of numbers.
    """

    trial: Trial
    model: nn.Module
    task: Task
    #: Torch's generator after the weights were drawn, where modules and losses that draw in training go on; None: as the seed begins.
    generator: Tensor | None = None


@dataclass(frozen=True)
class DataRecord:
    """What is known of the data that a trial was trained on, for files and tables.

    Attributes:
        name: for people.
        fingerprint: of data, splits and loss; part of the keys of trials.
        score: what the scores are.
        kind: what is predicted; the name of a :class:`~unspool.train.TaskKind` in small letters.
        source: where the data came from, in plain values; None where nobody said.
    """

    name: str
    fingerprint: str
    score: str = "accuracy"
    kind: str = "classes"
    source: Mapping[str, Any] | None = None


class TrialLoader:
    """Makes trials ready on one dataset; all of them share the same tensors.

    Everything that trains comes through here, so the kind of task, the scale of targets and the split of a seed are decided once. Where splits
    are drawn, a trial's seed draws its own; a split that stands alone, such as Planetoid's, is the same for all.

    Args:
        data: a dataset with a split, or the name of one.
        device: where to train.
        kind: what is predicted; seen from the data when omitted.
        loss: an upper loss of your own in the place of that of the kind.
        class_weight: how much classes count in the training and validation losses: ``"balanced"``, which is counted on the training
            nodes of each split as scikit-learn does, or one weight for each class by its name. Weights of single nodes come with the
            data (``Dataset.sample_weight``).
        source: where the data came from, in plain values, for whoever has to find them again.

    Example:
        >>> import unspool as us
        >>> from unspool import datasets
        >>> loader = TrialLoader(datasets.contextual_sbm(nodes=60, classes=2, seed=0))
        >>> ready = loader.prepare(Trial(us.models.GCN, {"hidden": 8}))
        >>> ready.model.in_features == loader.data.features.shape[1]
        True
    """

    def __init__(
        self,
        data: Dataset | str,
        device: torch.device | str = "cpu",
        *,
        kind: TaskKind | None = None,
        loss: Any = None,
        class_weight: Any = None,
        source: Mapping[str, Any] | None = None,
    ) -> None:
        if not isinstance(data, Dataset | str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(
                f"{type(data).__name__} is not a dataset: give a name such as 'cora', or a datasets.Dataset"
            )
        self.data = load_dataset(data) if isinstance(data, str) else data
        self.name = (data if isinstance(data, str) else self.data.name).lower()
        self.device = torch.device(device)
        self.kind = TaskKind.seen_in(self.data) if kind is None else kind
        if not isinstance(self.kind, TaskKind):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InputError("kind", kind, EnumMember(TaskKind).expected)
        if self.kind is TaskKind.LINKS and loss is not None:
            raise InputError("loss", UNSHOWN, "none with kind=TaskKind.LINKS, whose loss belongs to its pairs")
        self.kind.check(self.data)
        self.class_weight = self.kind.class_weight(class_weight, self.data.classes)
        self.source = {"dataset": self.name} if source is None and isinstance(data, str) else source
        self._loss = self.kind.loss() if loss is None and self.kind is not TaskKind.LINKS else loss
        self._tasks: dict[Any, Task] = {}
        self._splits: dict[int, Split] = {}
        self.outputs = self.kind.outputs(self.data)
        # The first task checks the data, and the others take its tensors. Numbers stay as they came: each split scales its own.
        self._base: dict[bool, Task] = {}
        self.first = self.task()

    def on(self, device: torch.device | str) -> TrialLoader:
        """The same on another device.

        Example:
            >>> from unspool import datasets
            >>> loader = TrialLoader(datasets.contextual_sbm(nodes=60, classes=2, seed=0))
            >>> loader.on("cpu") is loader
            True
        """
        if torch.device(device) == self.device:
            return self
        other = copy.copy(self)
        other.device, other._tasks, other._base = torch.device(device), {}, {}
        other.first = other.task()
        return other

    @property
    def score(self) -> str:
        """What the scores are."""
        return str(self.first.loss.score_name)

    @functools.cached_property
    def fingerprint(self) -> str:
        """The name of what is learnt, and from what: data (with the weights of nodes), splits, loss, weights of classes."""
        if self.kind is TaskKind.LINKS:
            # 2: of two directions of a link the larger weight counts, where it was that of the first.
            return f"{self.data.hash[:16]}-{fingerprint('links 2')[:8]}"
        # At least two splits: one that stands alone and one that is drawn anew may begin with the same nodes. Of splits that came
        # with the data, all.
        many = max(2, len(self.data.recorded))
        rule = self.class_weight
        weights = () if rule is None else ([rule.value] if isinstance(rule, Balance) else [repr(w) for w in rule],)
        parts = fingerprint(
            [self.split(k).hash for k in range(many)], identity.digest(self.first.loss, "loss"), *weights
        )
        return f"{self.data.hash[:16]}-{parts[:8]}"

    @property
    def record(self) -> DataRecord:
        """What files keep of the data."""
        return DataRecord(self.name, self.fingerprint, self.score, self.kind.value, self.source)

    def prepare(self, trial: Trial) -> PreparedTrial:
        """The trial with a fresh model and its task."""
        task = self.task(trial.seed, trial.normalise_rows)
        with seeded(trial.seed):
            return PreparedTrial(trial, self.make(trial), task, torch.get_rng_state())

    def make(self, trial: Trial) -> nn.Module:
        """The fresh model of a trial on these data, drawn from torch's generator as it stands."""
        return trial.make(int(self.data.features.shape[1]), self.outputs)

    def split(self, seed: int) -> Split:
        """The split of a seed."""
        if seed not in self._splits:
            self._splits[seed] = splits.repetition(self.data, seed)
        return self._splits[seed]

    def task(self, seed: int = 0, normalise_rows: bool = False) -> Task:
        """What is learnt under a seed; tasks with the same split are the same object."""
        links = self.kind is TaskKind.LINKS
        key = (normalise_rows, seed if links else self.split(seed).hash)
        if key not in self._tasks:
            self._tasks[key] = (
                self._links(seed, normalise_rows) if links else self._nodes(self.split(seed), normalise_rows)
            )
        return self._tasks[key]

    def _links(self, seed: int, rows: bool) -> Task:
        return link_task(self.data.row_normalised() if rows else self.data, seed=seed).to(self.device)

    def _nodes(self, split: Split, rows: bool) -> Task:
        base = self._features(rows)
        train, valid, test = (part.to(self.device) for part in (split.train, split.valid, split.test))
        made = Task(
            base.x, base.graph, base.target, train, valid, test, base.loss, weight=base.weight, named=base.named
        )
        return made.scaled().with_class_weight(self.class_weight)

    def _features(self, rows: bool) -> Task:
        """All that tasks share, with or without scaled rows."""
        if rows not in self._base and rows and self._base:
            plain = next(iter(self._base.values()))
            self._base[rows] = replace(plain, x=self.data.row_normalised().features.to(self.device))
        elif rows not in self._base:
            data = self.data.row_normalised() if rows else self.data
            found = Task.of(data, self._loss)
            raw = found if found.scaling is None else replace(found, target=data.targets, scaling=None)
            self._base[rows] = raw.to(self.device)
        return self._base[rows]
