"""Where the steps of an epoch get their part of a task from: batches of its items, in an order of their own in every epoch."""

from __future__ import annotations

import hashlib
import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from unspool.errors import IncompatibleError, InputError, mention
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
        target, weight = taken(task, task.train)
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
            yield Batch(task.x, task.graph, ids, *taken(task, ids), count * len(full) / sum(counts))

    def look(self, say: Say, parts: Sequence[Tensor]) -> list[Tensor]:
        """One pass over all nodes of a graph, of which rows are taken: a pass for each part would cost as much each. Of stored hops, their rows."""
        if isinstance(self.task.x, StoredHops):
            return [say(self.task.x, None, ids) for ids in parts]
        output = say(self.task.x, self.task.graph, None)
        return [self.task.loss.read(output, ids) for ids in parts]

    def _order(self, epoch: int) -> Tensor:
        """A permutation of the training nodes, by seed and epoch alone."""
        return torch.randperm(self.task.train.numel(), generator=chance_of(self.seed, epoch))


def chance_of(seed: int, epoch: int) -> torch.Generator:
    """Where the order of an epoch's batches is drawn from, the same in any process.

    Example:
        >>> torch.equal(torch.randperm(9, generator=chance_of(0, 1)), torch.randperm(9, generator=chance_of(0, 1)))
        True
    """
    drawn = hashlib.sha256(f"batches {seed} {epoch}".encode()).digest()[:8]
    return torch.Generator().manual_seed(int.from_bytes(drawn))


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


def check_source(batches: Any, model: nn.Module, task: Task, config: TrainConfig, spread: Any) -> None:
    """Raise one sentence where a source of batches of one's own cannot be trained from.

    Example:
        >>> import unspool as us
        >>> from unspool import datasets
        >>> task, config = Task.of(datasets.load("citeseer")), TrainConfig(batch_size=9)
        >>> check_source(RowBatches(task, 9, 0), us.models.SGC(3703, 6), task, config, None)
        Traceback (most recent call last):
            ...
        unspool.errors.IncompatibleError: batches=... and batch_size=... both say what a step sees; give one of them
    """
    if batches is None:
        return
    if not isinstance(batches, Batches):
        raise InputError("batches", batches, "a source of batches, such as train.ClusterBatches(task, parts)")
    if getattr(batches, "task", task) is not task:
        raise IncompatibleError(
            f"{mention('batches')} are of another task than the one that is learnt; make them of that one, as train.ClusterBatches(task, ...)"
        )
    for name, value in (("batch_size", config.batch_size), ("upper", config.upper), ("spread", spread)):
        if value is not None:
            why = (
                "both say what a step sees"
                if name == "batch_size"
                else "do not go together, as it looks at all nodes in every step"
            )
            raise IncompatibleError(f"{mention('batches')} and {mention(name)} {why}; give one of them")
    task.loss.check_batches()
    if isinstance(task.x, StoredHops):
        check_rows(model)


def dealt(task: Task, parts: Sequence[Tensor]) -> list[tuple[Tensor, float]]:
    """Parts of the training nodes with the factor of each (:class:`Batch`), without those in which nothing counts."""
    counts = [float(task.loss.sizes(*taken(task, part)).sum()) for part in parts]
    full = [(part, count) for part, count in zip(parts, counts, strict=True) if count > 0]
    return [(part, count * len(full) / sum(counts)) for part, count in full]


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


def taken(task: Task, ids: Tensor) -> tuple[Tensor, Tensor | None]:
    """Targets and weights of some items.

    Example:
        >>> from unspool import datasets
        >>> taken(Task.of(datasets.load("citeseer")), torch.tensor([0]))
        (tensor([3]), None)
    """
    return task.target.index_select(0, ids), None if task.weight is None else task.weight.index_select(0, ids)
