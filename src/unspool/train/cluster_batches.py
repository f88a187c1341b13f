"""Batches of clusters, for networks that cannot propagate before they learn."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor

from unspool.errors import InputError
from unspool.graph import Degrees, Graph, contiguous
from unspool.train.batches import Batch, chance_of, dealt
from unspool.train.graph_batches import GraphBatches
from unspool.train.task import Task


class ClusterBatches(GraphBatches):
    """Batches of clusters of the graph: a step sees the nodes of some clusters and the edges between them, and no others.

    An approximation: edges that leave a batch are missing in its step, so losses and gradients are not those of the whole graph, unless no edge leaves.
    Clusters are dealt anew in every epoch, so edges between them come in now and then (Chiang et al., Cluster-GCN, 2019). Scores and losses
    of validation are those of the whole graph, which is looked at once an epoch. Batches without training nodes are left out.

    Args:
        task: what is learnt.
        parts: the cluster of every node, or what makes them of (graph, number of clusters): :func:`unspool.graph.contiguous`,
            :func:`unspool.graph.metis`.
        many: how many clusters, where they are made.
        at_once: how many of them a step sees.
        degrees: those of the batch's own edges, as in the paper, or those of the whole graph (:meth:`unspool.Graph.subgraph`).
        seed: of the order.

    Example:
        >>> import unspool as us
        >>> from unspool import datasets, train
        >>> data = datasets.contextual_sbm(nodes=60, classes=2, seed=0)
        >>> model, task = us.models.GCN(data.features.shape[1], 2), train.Task.of(data)
        >>> source = train.ClusterBatches(task, many=6, at_once=2)
        >>> run = train.fit(model, task, train.TrainConfig(epochs=2), batches=source)
        >>> len(list(source.training(epoch=1)))
        3
    """

    def __init__(
        self,
        task: Task,
        parts: Tensor | Callable[[Graph, int], Tensor] = contiguous,
        *,
        many: int = 20,
        at_once: int = 2,
        degrees: Degrees = Degrees.OWN,
        seed: int = 0,
    ) -> None:
        super().__init__(task)
        for name, value in (("many", many), ("at_once", at_once)):
            if type(value) is not int or value < 1:
                raise InputError(name, value, "a whole number of at least 1")
        made: Any = parts(task.graph, min(many, task.nodes)) if callable(parts) else parts
        made = torch.as_tensor(made) if isinstance(made, np.ndarray | list | tuple) else made
        if not isinstance(made, Tensor):
            raise InputError("parts", made, "the cluster of every node, or a function such as us.graph.metis")
        if made.shape != (task.nodes,) or made.is_floating_point():
            raise InputError(
                "parts", tuple(made.shape), f"the cluster of each of the {task.nodes} nodes, as whole numbers"
            )
        names, self._part = made.cpu().unique(return_inverse=True)
        self.many, self.at_once, self.degrees, self.seed = int(names.numel()), at_once, degrees, seed

    def __repr__(self) -> str:
        return (
            f"ClusterBatches(many={self.many}, at_once={self.at_once}, degrees={self.degrees.name}, seed={self.seed})"
        )

    def training(self, epoch: int) -> Iterator[Batch]:
        """The batches of an epoch."""
        order = torch.randperm(self.many, generator=chance_of(self.seed, epoch))
        turn = torch.empty_like(order)
        turn[order] = torch.arange(self.many) // self.at_once
        step = turn[self._part]
        groups = [torch.nonzero(step == i).flatten() for i in range(int(turn.max()) + 1)]
        device = self.task.target.device
        learnt = [group[self.learns[group]].to(device) for group in groups]
        for ids, factor in dealt(self.task, learnt):
            nodes = torch.nonzero(step == step[ids[0].cpu()]).flatten()
            rows = torch.nonzero(self.learns[nodes]).flatten()
            yield self.batch(self.task.graph.subgraph(nodes, self.degrees), nodes, rows, factor)
