"""Batches as the loaders of PyTorch Geometric yield them; PyG itself is not needed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import torch
from torch import Tensor

from unspool.errors import DataError, InputError
from unspool.graph import Degrees, Graph
from unspool.graph.enlarge import loop_weight
from unspool.graph.pyg import pyg_edges
from unspool.train.batches import Batch, chance_of, taken
from unspool.train.graph_batches import GraphBatches
from unspool.train.task import Task


class PygBatches(GraphBatches):
    """Batches of a loader such as PyG's ``NeighborLoader``: ``Data`` with ``n_id``, ``edge_index`` and ``batch_size``.

    Node i of a batch is node ``n_id[i]`` of the task, which has its features and target. The first ``batch_size`` nodes carry the loss and must be
    training nodes; without a ``batch_size``, as in clusters, all training nodes among them do. The mean over the batches of an epoch, at the same weights, has the weights
    of the loss of all training nodes, if the loader shows each of them once. What the network says in a step is that of the batch's graph, an approximation
    unless the batch holds all nodes within the network's hops and ``degrees`` are those of the whole. Validation and test look at the whole graph.

    Args:
        task: what is learnt.
        loader: batches, anew in every epoch; it must know how many there are (``len``). What it draws from torch's generator on the
            CPU is decided by seed and epoch.
        degrees: ``Degrees.OWN`` for the batch's edges normalised by themselves, as PyG's layers do; they run both ways where those of the task's graph
            do, also if the sampler lists one direction. ``Degrees.WHOLE`` for all edges between its nodes with the entries of A in the whole graph.
        seed: of what the loader draws.

    Example:
        >>> import torch, unspool as us
        >>> from types import SimpleNamespace
        >>> from unspool import datasets, train
        >>> data = datasets.contextual_sbm(nodes=60, classes=2, seed=0)
        >>> model, task = us.models.GCN(data.features.shape[1], 2), train.Task.of(data)
        >>> ids = torch.cat([task.train, task.valid])  # as a sampler would: seeds first
        >>> one = SimpleNamespace(n_id=ids, edge_index=torch.tensor([[9, 8], [0, 1]]), batch_size=task.train.numel())
        >>> run = train.fit(model, task, train.TrainConfig(epochs=2), batches=train.PygBatches(task, [one]))
        >>> len(run.history)
        2
    """

    def __init__(self, task: Task, loader: Iterable[Any], *, degrees: Degrees = Degrees.OWN, seed: int = 0) -> None:
        super().__init__(task)
        if not hasattr(loader, "__len__") or len(loader) < 1 or hasattr(loader, "__next__"):  # pyright: ignore[reportArgumentType]
            raise InputError("loader", loader, "a loader that knows how many batches an epoch has, at least one")
        self.loader, self.degrees, self.seed = loader, degrees, seed
        self._loops = loop_weight(task.graph)
        self._count = float(task.loss.sizes(*taken(task, task.train)).sum())

    def __repr__(self) -> str:
        return f"PygBatches({len(self.loader)} batches, degrees={self.degrees.name}, seed={self.seed})"  # pyright: ignore[reportArgumentType]

    def training(self, epoch: int) -> Iterator[Batch]:
        """The batches of an epoch."""
        many = len(self.loader)  # pyright: ignore[reportArgumentType]
        for number, data in enumerate(_drawn(self.loader, chance_of(self.seed, epoch).get_state())):
            nodes, rows = self._read(data, number)
            count = float(self.task.loss.sizes(*taken(self.task, nodes[rows].to(self.task.target.device))).sum())
            if count == 0:
                raise DataError(
                    f"batch {number}",
                    "it has no training node that counts",
                    "give the loader input_nodes=task.train, or leave such batches out",
                )
            yield self.batch(self._graph(data, nodes), nodes, rows, count * many / self._count)

    def _read(self, data: Any, number: int) -> tuple[Tensor, Tensor]:
        """The nodes of a batch and which of them carry its loss, checked."""
        ids, size = getattr(data, "n_id", None), getattr(data, "batch_size", None)
        where = f"batch {number}"
        if not isinstance(ids, Tensor) or ids.ndim != 1 or ids.is_floating_point():
            raise DataError(where, "it has no n_id, the number of each of its nodes in the whole", "set data.n_id")
        nodes = ids.detach().cpu().long()
        if nodes.numel() == 0 or int(nodes.min()) < 0 or int(nodes.max()) >= self.task.nodes:
            raise DataError(where, f"n_id must name nodes of the task, from 0 to {self.task.nodes - 1}")
        if nodes.unique().numel() != nodes.numel():
            raise DataError(where, "n_id names a node twice", "let the sampler merge them (disjoint=False)")
        if size is None:
            return nodes, torch.nonzero(self.learns[nodes]).flatten()
        if not 0 < int(size) <= nodes.numel():
            raise DataError(where, f"batch_size is {size}, and it has {nodes.numel()} nodes")
        strange = nodes[: int(size)][~self.learns[nodes[: int(size)]]]
        if strange.numel():
            raise DataError(
                where, f"its first {int(size)} nodes carry the loss, and node {int(strange[0])} is not in the training set",
                "give the loader input_nodes=task.train",
            )  # fmt: skip
        return nodes, torch.arange(int(size))

    def _graph(self, data: Any, nodes: Tensor) -> Graph:
        whole = self.task.graph
        if self.degrees is Degrees.WHOLE:
            return whole.subgraph(nodes, Degrees.WHOLE)
        index, weight = pyg_edges(data)
        how: dict[str, Any] = {"normalise": whole.normalisation, "loops": self._loops, "directed": not whole.undirected}
        return Graph.from_edges(index.cpu(), int(nodes.numel()), weight, **how).to(dtype=whole.dtype)


def _drawn(loader: Iterable[Any], state: Tensor) -> Iterator[Any]:
    """What a loader yields when torch's generator on the CPU stands where it is told; nobody else's draws change."""
    source: Iterator[Any] | None = None
    while True:
        with torch.random.fork_rng(devices=[]):
            torch.set_rng_state(state)
            source = iter(loader) if source is None else source
            item = next(source, None)
            state = torch.get_rng_state()
        if item is None:
            return
        yield item
