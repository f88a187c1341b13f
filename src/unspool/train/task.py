"""What a model is trained on: features, a graph, targets, three sets of nodes, and an upper loss."""

from __future__ import annotations

import functools
import hashlib
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor

from unspool.graph import Graph
from unspool.ops import SparseFeatures, features_of
from unspool.train.loss import CrossEntropy, Link, Regression, as_loss
from unspool.train.scaling import Scaling


@dataclass(frozen=True, eq=False)
class Task:
    """The upper level of the bilevel problem (3).

    Args:
        x: features, a tensor or sparse features.
        graph: the graph.
        target: one entry per node (a class, a number, a row of numbers); for :class:`~unspool.train.Link`, per pair.
        train, valid, test: ids of nodes (of pairs).
        loss: the upper loss, or any function of (output rows, target rows).
        scaling: how the targets were brought to size one, where :meth:`scaled` did so.

    Example:
        >>> from unspool import datasets
        >>> task = Task.of(datasets.load("citeseer"))
        >>> task.train.numel()
        120
    """

    x: Any
    graph: Graph
    target: Tensor
    train: Tensor
    valid: Tensor
    test: Tensor
    loss: Any = field(default_factory=CrossEntropy)
    scaling: Scaling | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "loss", as_loss(self.loss))
        self._check_lengths()
        for name in ("train", "valid", "test"):
            ids = getattr(self, name)
            if ids.numel() == 0 and name != "test":
                raise ValueError(f"the {name} set is empty: nothing can be {'learnt' if name == 'train' else 'chosen'}")
            if ids.numel() and not 0 <= int(ids.min()) <= int(ids.max()) < self.target.shape[0]:
                raise ValueError(
                    f"the {name} set names item {int(ids.max())}, but there are {self.target.shape[0]} targets"
                )
            self.loss.check(self.target, ids, name)

    def _check_lengths(self) -> None:
        nodes = int(self.x.shape[-2])
        if nodes != self.graph.nodes:
            raise ValueError(f"x has {nodes} rows, but the graph has {self.graph.nodes} nodes")
        if isinstance(self.loss, Link):
            if self.target.shape[0] != self.loss.pairs.shape[0]:
                raise ValueError(
                    f"{self.target.shape[0]} targets for {self.loss.pairs.shape[0]} pairs: give one per pair"
                )
            if int(self.loss.pairs.max()) >= nodes or int(self.loss.pairs.min()) < 0:
                raise ValueError(
                    f"a pair names node {int(self.loss.pairs.max())}, but node ids run from 0 to {nodes - 1}"
                )
        elif self.target.shape[0] != nodes:
            raise ValueError(f"{self.target.shape[0]} targets for {nodes} nodes: give one per node")

    @staticmethod
    def of(data: Any, loss: Any = None) -> Task:
        """The task of a dataset (anything with features, graph, labels or targets, and a split).

        Without a loss: cross-entropy for labels, squared error where the data has ``targets`` (numbers) instead. Under squared
        error numbers are learnt at mean 0 and size 1 (:meth:`scaled`); ``task.scaling.undo(output)`` takes predictions back.
        """
        split = data.split
        if split is None:
            raise ValueError(f"{data.name} has no split; give it one with data.with_split(...)")
        numbers = getattr(data, "targets", None)
        if loss is None:
            loss = CrossEntropy() if numbers is None else Regression()
        target = data.labels if numbers is None else numbers
        return Task(data.features, data.graph, target, split.train, split.valid, split.test, loss).scaled()

    def scaled(self) -> Task:
        """The same task with numbers at mean 0 and size 1, by its training nodes alone, where the loss is squared error.

        Everything that trains comes through here, so the same split gives the same numbers: ``unspool train``, studies, estimators. R² stays
        what it is. Other losses see their targets as they came.

        Example:
            >>> from unspool import datasets
            >>> data = datasets.from_tensors([[0, 1], [1, 0]], targets=[5.0 * i for i in range(20)])
            >>> task = Task.of(data)
            >>> float(task.scaling.centre) > 0, bool(abs(task.target[task.train].mean()) < 1e-6)
            (True, True)
        """
        if type(self.loss) is not Regression or self.scaling is not None:
            return self
        scaling = Scaling.of(self.target, self.train)
        return replace(self, target=scaling.apply(self.target), scaling=scaling)

    @functools.cached_property
    def digest(self) -> str:
        """A name for what is learnt, and from what (features, edges, targets, parts), so that a snapshot is not continued on
        another task."""
        held = hashlib.sha256(f"{type(self.loss).__name__} {self.graph.scale};".encode())
        x = features_of(self.x)
        features = x.operator.forward if isinstance(x, SparseFeatures) else x
        pairs = [self.loss.pairs] if isinstance(self.loss, Link) else []
        graph = [matrix.forward for matrix in (self.graph.operator, self.graph.smoother) if matrix is not None]
        for part in (features, *graph, self.target, self.train, self.valid, self.test, *pairs):
            for values in (part,) if isinstance(part, Tensor) else (part.crow, part.col, part.val):
                held.update(f"{values.dtype} {tuple(values.shape)};".encode())
                held.update(values.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data)
        return held.hexdigest()

    def to(self, device: torch.device | str) -> Task:
        """The same task on another device."""
        ids = (self.train.to(device), self.valid.to(device), self.test.to(device))
        parts = (self.x.to(device), self.graph.to(device), self.target.to(device), *ids, self.loss.to(device))
        return Task(*parts, scaling=self.scaling)
