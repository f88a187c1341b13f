"""Where the steps of an epoch get their part of a task from: batches of its items, in an order of their own in every epoch."""

from __future__ import annotations

import hashlib
import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from unspool.errors import IncompatibleError, mention
from unspool.models import Model
from unspool.models.graph_first import propagates_first
from unspool.ops.stored_hops import StoredHops
from unspool.train.config import TrainConfig
from unspool.train.task import Task

#: What a network says of some rows: of features, a graph, and the rows (None for all).
Say = Callable[[Any, Any, Tensor | None], Tensor]


class Batch(NamedTuple):
    """What one step of training sees of a task.

    Attributes:
        x, graph: what the network is called with.
        rows: the rows of its output that the loss reads, each once; None for all of them.
        target: one entry for each of these rows.
        weight: how much each counts; None where all count the same.
        factor: what the loss of these rows is multiplied by, so that the mean over the batches of an epoch is the loss of all.
    """

    x: Any
    graph: Any
    rows: Tensor | None
    target: Tensor
    weight: Tensor | None = None
    factor: float = 1.0


class Batches(ABC):
    """A source of batches: what every step of an epoch sees, and how the whole is looked at between epochs."""

    @abstractmethod
    def training(self, epoch: int) -> Iterator[Batch]:
        """The batches of an epoch, which are counted from 1; an epoch has the same ones in any process."""

    @abstractmethod
    def look(self, say: Say, parts: Sequence[Tensor]) -> list[Tensor]:
        """What a network says of the items of some parts, in their order."""


class RowBatches(Batches):
    """Batches of training nodes, each a part of the loss.

    The nodes are drawn anew in every epoch, each once, and dealt to as many batches as are needed, whose sizes differ by one at most.
    From hops on the disk a step reads the rows of its nodes and no others; on a graph it sees all of it, and costs a propagation. The loss of a batch is counted so that the mean over the batches of an epoch, at the
    same weights, is the loss of all training nodes, however the weights of nodes are spread.

    Args:
        task: what is learnt.
        size: the most training nodes that a step sees.
        seed: of the order.

    Example:
        >>> from unspool import datasets
        >>> source = RowBatches(Task.of(datasets.load("citeseer")), size=50, seed=0)
        >>> [batch.rows.numel() for batch in source.training(epoch=1)]
        [40, 40, 40]
    """

    def __init__(self, task: Task, size: int, seed: int) -> None:
        self.task, self.size, self.seed = task, size, seed
        target, weight = _taken(task, task.train)
        self._counts = task.loss.sizes(target, weight).double().cpu()

    def training(self, epoch: int) -> Iterator[Batch]:
        """The batches of an epoch."""
        task, many = self.task, -(-self.task.train.numel() // self.size)
        dealt = self._order(epoch).tensor_split(many)
        counts = [float(self._counts[part].sum()) for part in dealt]
        # Nothing is learnt where nothing counts: nodes of weight 0 alone.
        full = [(part, count) for part, count in zip(dealt, counts, strict=True) if count > 0]
        for part, count in full:
            ids = task.train[part.to(task.train.device)]
            yield Batch(task.x, task.graph, ids, *_taken(task, ids), count * len(full) / sum(counts))

    def look(self, say: Say, parts: Sequence[Tensor]) -> list[Tensor]:
        """One pass over all nodes of a graph, of which rows are taken: a pass for each part would cost as much each. Of stored hops, their rows."""
        if isinstance(self.task.x, StoredHops):
            return [say(self.task.x, None, ids) for ids in parts]
        output = say(self.task.x, self.task.graph, None)
        return [self.task.loss.read(output, ids) for ids in parts]

    def _order(self, epoch: int) -> Tensor:
        """A permutation of the training nodes, by seed and epoch alone."""
        drawn = hashlib.sha256(f"batches {self.seed} {epoch}".encode()).digest()[:8]
        chance = torch.Generator().manual_seed(int.from_bytes(drawn))
        return torch.randperm(self.task.train.numel(), generator=chance)


def batches_of(model: nn.Module, task: Task, config: TrainConfig, seed: int) -> Batches | None:
    """The source of batches that a configuration asks for; None where every step sees everything. Refused where batches cannot be.

    Hops on the disk are read row by row: without a batch size a step sees all training rows, and still no others.

    Example:
        >>> import unspool as us
        >>> from unspool import datasets
        >>> model, task = us.models.SGC(3703, 6), Task.of(datasets.load("citeseer"))
        >>> batches_of(model, task, TrainConfig(), 0) is None, type(batches_of(model, task, TrainConfig(batch_size=8), 0)).__name__
        (True, 'RowBatches')
    """
    stored = isinstance(task.x, StoredHops)
    if config.batch_size is None and not stored:
        return None
    if config.upper is not None:
        other = "hops on the disk are read" if stored else f"{mention('batch_size')} looks"
        raise IncompatibleError(
            f"{mention('upper')} looks at all nodes in every step, and {other} at some alone; leave {mention('upper')} out"
        )
    if stored:
        check_rows(model)
    if config.batch_size is None:
        task.loss.check_rows()
        return RowBatches(task, task.train.numel(), seed)
    task.loss.check_batches()
    return RowBatches(task, config.batch_size, seed)


def check_rows(model: nn.Module) -> None:
    """Raise one sentence where a network has nothing to say of hops on the disk.

    Example:
        >>> import unspool as us
        >>> check_rows(us.models.SIGN(5, 3))
    """
    if isinstance(model, Model):
        why = propagates_first(model)
        if why is not None:
            raise IncompatibleError(why)
    elif "rows" not in inspect.signature(model.forward).parameters:
        raise IncompatibleError(
            f"{type(model).__name__} cannot use stored hops: its forward takes no rows=, the numbers of those that are wanted; write it as "
            "forward(self, x, graph=None, rows=None), which reads x.take(rows)"
        )


def said(model: nn.Module, x: Any, graph: Any, rows: Tensor | None) -> Tensor:
    """The output of a network, or some rows of it; a module that knows of no ``rows`` says everything first.

    Example:
        >>> import unspool as us
        >>> said(us.models.SGC(5, 3), torch.eye(5), us.graph.ring(5), torch.tensor([4, 0])).shape
        torch.Size([2, 3])
    """
    if rows is None:
        return model(x, graph)
    if "rows" in inspect.signature(model.forward).parameters:
        return model(x, graph, rows=rows)
    return model(x, graph).index_select(0, rows)


def _taken(task: Task, ids: Tensor) -> tuple[Tensor, Tensor | None]:
    """Targets and weights of some items."""
    return task.target.index_select(0, ids), None if task.weight is None else task.weight.index_select(0, ids)
