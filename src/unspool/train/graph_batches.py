"""What batches of parts of a graph share: features of their nodes, and a look at the whole between epochs."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from unspool.datasets.features import rows_of
from unspool.errors import IncompatibleError
from unspool.graph import Graph
from unspool.ops import features_of
from unspool.ops.stored_hops import StoredHops
from unspool.train.batches import Batch, Batches, Say, taken
from unspool.train.task import Task


class GraphBatches(Batches):
    """Batches each of which is a graph of its own, made of nodes of the whole."""

    def __init__(self, task: Task) -> None:
        if isinstance(task.x, StoredHops):
            raise IncompatibleError(
                "hops on the disk hold no graph that could be cut; their rows train in batches with TrainConfig(batch_size=...)"
            )
        self.task, self._x = task, features_of(task.x)
        self.learns = torch.zeros(task.nodes, dtype=torch.bool)
        self.learns[task.train.cpu()] = True

    @abstractmethod
    def training(self, epoch: int) -> Iterator[Batch]:
        """The batches of an epoch."""

    def look(self, say: Say, parts: Sequence[Tensor]) -> list[Tensor]:
        """One pass over the whole graph: what is chosen and told is never an approximation."""
        output = say(self.task.x, self.task.graph, None)
        return [self.task.loss.read(output, ids) for ids in parts]

    def batch(self, graph: Graph, nodes: Tensor, rows: Tensor, factor: float) -> Batch:
        """The batch of a graph whose node i is ``nodes[i]`` of the whole, and of which some rows carry the loss; all on the CPU."""
        device = self.task.target.device
        x, here = rows_of(self._x, nodes), nodes[rows].to(device)
        return Batch(x, graph.to(device), rows.to(device), *taken(self.task, here), factor)
