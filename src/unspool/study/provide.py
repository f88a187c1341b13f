"""Trials made ready on one dataset: its features, graph and targets once, its splits by seed."""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import Any

import torch

from unspool.datasets import Dataset, splits
from unspool.datasets import load as load_dataset
from unspool.datasets.fingerprint import fingerprint
from unspool.study import identity
from unspool.study.pack import Member
from unspool.study.trial import Trial
from unspool.train.loss import Link
from unspool.train.task import Task


class Provider:
    """Makes members out of trials; all of them share the same tensors.

    Where splits are drawn, a trial's seed draws its own; a split that stands alone, such as Planetoid's, is the same for all.

    Args:
        data: a dataset with a split, or the name of one.
        device: where to train.
        loss: the upper loss; cross-entropy for classes and squared error for numbers when omitted.

    Example:
        >>> import unspool as us
        >>> from unspool import datasets
        >>> provide = Provider(datasets.contextual_sbm(nodes=60, classes=2, seed=0))
        >>> member = provide(Trial(us.models.GCN, {"hidden": 8}))
        >>> member.model.in_features == provide.data.features.shape[1]
        True
    """

    def __init__(self, data: Dataset | str, device: torch.device | str = "cpu", loss: Any = None) -> None:
        if not isinstance(data, Dataset | str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"{type(data).__name__} is no dataset: give a name such as 'cora', or a datasets.Dataset")
        found = load_dataset(data) if isinstance(data, str) else data
        self.data, self.device = found, torch.device(device)
        self.name = (data if isinstance(data, str) else found.name).lower()
        first = Task.of(found, loss)
        # Numbers as they came: each trial scales them by its own split.
        base = first if first.scaling is None else replace(first, target=found.targets, scaling=None)
        self._bases: dict[bool, Task] = {False: base}
        if isinstance(self._bases[False].loss, Link):
            raise TypeError("studies compare predictions of nodes; a Link loss belongs to train.fit")
        self._bases[False] = self._bases[False].to(self.device)
        self._tasks: dict[tuple[bool, str], Task] = {}
        self._splits: dict[int, Any] = {}
        self.outputs = len(found.classes) if found.targets is None else int(found.targets.shape[1])

    @functools.cached_property
    def mark(self) -> str:
        """The fingerprint of what is learnt: data, splits, loss."""
        loss = self._bases[False].loss
        # At least two splits: one that stands alone and one that is drawn anew may begin with the same nodes. Of splits that came
        # with the data, all.
        many = max(2, len(self.data.recorded))
        parts = fingerprint([self._split(k).hash for k in range(many)], identity.digest(loss, "loss"))
        return f"{self.data.hash[:16]}-{parts[:8]}-{loss.score_name}"

    @property
    def score(self) -> str:
        """What the scores are."""
        return str(self._bases[False].loss.score_name)

    def __call__(self, trial: Trial) -> Member:
        """The trial with a fresh model and its task."""
        model = trial.build(int(self.data.features.shape[1]), self.outputs)
        return Member(trial, model, self.task(trial))

    def task(self, trial: Trial) -> Task:
        """What a trial learns; tasks with the same split are the same object."""
        split = self._split(trial.seed)
        key = (trial.normalise_rows, split.hash)
        if key not in self._tasks:
            base = self._base(trial.normalise_rows)
            train, valid, test = (part.to(self.device) for part in (split.train, split.valid, split.test))
            self._tasks[key] = Task(base.x, base.graph, base.target, train, valid, test, base.loss).scaled()
        return self._tasks[key]

    def _base(self, normalise: bool) -> Task:
        if normalise not in self._bases:
            plain = self._bases[False]
            x = self.data.row_normalised().features.to(self.device)
            self._bases[normalise] = Task(
                x, plain.graph, plain.target, plain.train, plain.valid, plain.test, plain.loss
            )
        return self._bases[normalise]

    def _split(self, seed: int) -> Any:
        if seed not in self._splits:
            self._splits[seed] = splits.repetition(self.data, seed)
        return self._splits[seed]
