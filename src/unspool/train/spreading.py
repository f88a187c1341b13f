"""Training on a graph that several processes hold together: what differs from training on one."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from unspool.errors import IncompatibleError, mention
from unspool.graph.spreading import Layout, SpreadGraph, spread
from unspool.models.spreading import why_not_spread
from unspool.ops import Operator, SparseFeatures, features_of
from unspool.ops.own_rows import rows_are
from unspool.ops.stored_hops import StoredHops
from unspool.train.config import Precision, TrainConfig
from unspool.train.task import Task

T = TypeVar("T")


class SpreadTraining:
    """One of the processes that train a model together.

    Each computes the network's output at its own nodes; outputs of all are put together everywhere, so that losses and scores are those of the
    whole, and gradients of weights are summed. Masks of dropout are those of the nodes' numbers. Process 0 alone reads and writes snapshots, and its
    numbers decide.

    Args:
        model, task, config: as of :func:`~unspool.train.fit`, the same everywhere.
        layout: how the graph is cut.
    """

    def __init__(self, model: nn.Module, task: Task, config: TrainConfig, layout: Layout) -> None:
        check_spread(model, task, config)
        self.graph: SpreadGraph = spread(task.graph, layout)
        self.ranks = self.graph.ranks
        self.x = own_features(features_of(task.x), self.graph)

    def check_same(self, about: Mapping[str, Mapping[str, Any]], config: TrainConfig, seed: int) -> None:
        """Refuse where processes were told different things."""
        for part, words in (("trial", "a model"), ("settings", "settings"), ("config", "a training configuration"), ("task", "data"), ("code", "code")):  # fmt: skip
            told = {**about[part], "epochs": config.epochs, "seed": seed} if part == "config" else about[part]
            self.ranks.check_same(words, [json.dumps(told, sort_keys=True, default=str).encode()])

    def output(self, model: nn.Module) -> Tensor:
        """What the network says of every node, everywhere."""
        with rows_are(self.graph.rows):
            return self.graph.gather(model(self.x, self.graph))

    def sum_gradients(self, model: nn.Module) -> None:
        """Parts of gradients become gradients, in one sum."""
        held = [p.grad for p in model.parameters() if p.grad is not None]
        if not held:
            return
        total = self.ranks.add(torch.cat([grad.reshape(-1) for grad in held]))
        for grad, part in zip(held, total.split([grad.numel() for grad in held]), strict=True):
            grad.copy_(part.view_as(grad))

    def numbers(self, found: Sequence[float]) -> list[float]:
        """Those of process 0, which machines of another kind may have rounded otherwise."""
        mine = torch.tensor(found, dtype=torch.float64, device=self.ranks.device)
        return self.ranks.add(mine if self.ranks.rank == 0 else torch.zeros_like(mine)).tolist()

    def begun(self, make: Callable[[], T], model: nn.Module, optimiser: Any) -> T:
        """A run as process 0 begins or continues it, with its weights and its optimiser."""

        held: list[T] = []

        def state() -> bytes:
            held.append(make())
            buffer = io.BytesIO()
            torch.save((held[0], model.state_dict(), optimiser.state_dict(), torch.get_rng_state()), buffer)
            return buffer.getvalue()

        sent = self.ranks.from_first(state)
        if held:
            return held[0]
        # Trap: tensors would come to the GPU of process 0.
        made, weights, steps, chance = torch.load(io.BytesIO(sent), map_location="cpu", weights_only=False)
        model.load_state_dict(weights)
        optimiser.load_state_dict(steps)
        torch.set_rng_state(chance)
        return made


def check_spread(model: nn.Module, task: Task, config: TrainConfig) -> None:
    """Refuse what has no meaning, or another one, where a process sees its own nodes.

    Example:
        >>> import unspool as us
        >>> from unspool import datasets, train
        >>> task = train.Task.of(datasets.load("citeseer"))
        >>> check_spread(us.models.GCN(3703, 6), task, train.TrainConfig(batch_size=10))
        Traceback (most recent call last):
            ...
        unspool.errors.IncompatibleError: batch_size=... takes some nodes at a time, and a spread graph all of them; leave it out
    """
    if isinstance(task.x, StoredHops):
        raise IncompatibleError(
            f"hops on the disk need no graph, so nothing is there to be spread; leave {mention('spread')} out"
        )
    if config.batch_size is not None:
        raise IncompatibleError(
            f"{mention('batch_size')} takes some nodes at a time, and a spread graph all of them; leave it out"
        )
    if config.upper is not None:
        raise IncompatibleError(
            f"{mention('upper')} may change the graph or look at all nodes; leave it out, or leave {mention('spread')} out"
        )
    if config.precision is not Precision.FULL:
        raise IncompatibleError(f"signals travel in full precision; leave {mention('precision')} out")
    if (why := why_not_spread(model)) is not None:
        raise IncompatibleError(why)


def own_features(x: Tensor | SparseFeatures, graph: SpreadGraph) -> Tensor | SparseFeatures:
    """The rows of this process's nodes; sparse ones know which rows of the whole they are."""
    if isinstance(x, Tensor):
        return graph.take(x)
    csr, place = x.operator.forward, torch.full((x.shape[0],), -1, dtype=torch.int64, device=x.device)
    place[graph.rows] = torch.arange(graph.rows.numel(), device=x.device)
    rows = x.rows.long()
    kept = place[rows] >= 0
    row, col = place[rows[kept]], csr.col[kept].long()
    sort = torch.argsort(row * x.shape[1] + col)
    row, col, value = row[sort], col[sort], csr.val[kept][sort]
    cut = SparseFeatures.from_operator(Operator.from_entries(row, col, value, (graph.rows.numel(), x.shape[1])))
    return SparseFeatures(cut.operator, graph.rows[row].to(cut.rows.dtype), cut.order)
