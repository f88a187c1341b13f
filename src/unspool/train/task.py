"""What a model is trained on: features, a graph, targets, three sets of nodes, and an upper loss."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from unspool.graph import Graph
from unspool.train.loss import CrossEntropy, Loss


@dataclass(frozen=True, eq=False)
class Task:
    """The upper level of the bilevel problem (3).

    Args:
        x: features, a tensor or sparse features.
        graph: the graph.
        target: one entry per node (a class, a number, a row of numbers).
        train, valid, test: ids of nodes.
        loss: the upper loss.

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
    loss: Loss = field(default_factory=CrossEntropy)

    def __post_init__(self) -> None:
        nodes = int(self.x.shape[-2])
        if self.target.shape[0] != nodes:
            raise ValueError(f"{self.target.shape[0]} targets for {nodes} nodes: give one per node")
        for name in ("train", "valid"):
            if getattr(self, name).numel() == 0:
                raise ValueError(f"the {name} set is empty: nothing can be {'learnt' if name == 'train' else 'chosen'}")
        if isinstance(self.loss, CrossEntropy):
            for name in ("train", "valid", "test"):
                bad = torch.nonzero(self.target[getattr(self, name)] < 0).flatten()
                if bad.numel():
                    node = int(getattr(self, name)[bad[0]])
                    raise ValueError(f"node {node} is in the {name} set but has no label; take it out of the split")

    @staticmethod
    def of(data: Any, loss: Loss | None = None) -> Task:
        """The task of a dataset (anything with features, graph, labels and a split)."""
        split = data.split
        if split is None:
            raise ValueError(f"{data.name} has no split; give it one with data.with_split(...)")
        return Task(
            data.features, data.graph, data.labels, split.train, split.valid, split.test, loss or CrossEntropy()
        )

    def to(self, device: torch.device | str) -> Task:
        """The same task on another device."""
        ids = (self.train.to(device), self.valid.to(device), self.test.to(device))
        return Task(self.x.to(device), self.graph.to(device), self.target.to(device), *ids, self.loss)
