"""The upper level of a stack of trials: views of all of them in one pass, each with numbers, masks and an epoch of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import vmap

from unspool.train import PreparedTrial, Task
from unspool.train.upper import DropEdges, OwnTerm, Seen, Upper, perturbation_key
from unspool.train.upper.views import one_view, perturbed, stacked_views


def upper_alone(upper: Upper | None) -> str | None:
    """Why trials under an upper level train one by one; None where those of one :attr:`~unspool.train.upper.Upper.shape` may share a stack.

    Example:
        >>> upper_alone(Upper.parse("ce + 2*consistency(views=4)")) is None, upper_alone(Upper.parse("ce under drop_edges(0.1)"))
        (True, 'every view of drop_edges has a graph of its own')
    """
    if upper is not None and any(isinstance(one, DropEdges) for one in upper.perturbations):
        return "every view of drop_edges has a graph of its own"
    if upper is not None and any(isinstance(part.term, OwnTerm) for part in upper.parts):
        return "a term of one's own in the upper level may do anything"
    return None


class StackedUpper:
    """The upper level of all slots.

    Args:
        upper: of the first trial; those of the others differ in their numbers alone.
        task: what all of them learn.
        trials: the number of slots.

    Attributes:
        moving: the number of the next epoch of each slot, which a pass moves on.
    """

    def __init__(self, upper: Upper, task: Task, trials: int) -> None:
        device = task.target.device
        self.upper = upper.prepare(task)
        self.numbers = {n: torch.zeros(trials, dtype=torch.float64, device=device) for n in upper.numbers}
        self.keys = [torch.zeros(trials, dtype=torch.int32, device=device) for _ in upper.perturbations]
        self.moving = torch.ones(trials, dtype=torch.int64, device=device)

    def load(self, where: Tensor, members: Sequence[PreparedTrial]) -> None:
        """The numbers and keys of some slots, at their first epoch."""
        given = [m.trial.config.upper for m in members]
        for name, held in self.numbers.items():
            values = [upper.numbers[name] for upper in given if upper is not None]
            held.index_copy_(0, where, torch.tensor(values, dtype=held.dtype).to(held.device))
        for place, held in enumerate(self.keys):
            keys = torch.stack([perturbation_key(m.trial.seed, place) for m in members])
            held.index_copy_(0, where, keys.to(held.device))
        self.moving.index_fill_(0, where, 1)

    def follow(self, other: StackedUpper, where: Tensor) -> None:
        """Take over some slots of another, but for their epochs."""
        for name, held in self.numbers.items():
            held.copy_(other.numbers[name].index_select(0, where))
        for mine, theirs in zip(self.keys, other.keys, strict=True):
            mine.copy_(theirs.index_select(0, where))

    def losses(
        self, skeleton: nn.Module, held: dict[str, Tensor], x: Any, task: Task, train: Tensor, goals: Tensor | None, weights: Tensor | None
    ) -> Tensor:  # fmt: skip
        """U of every trial, shape (trials,); the epoch moves on.

        Args:
            skeleton: the module that all trials are.
            held: parameters and buffers of all trials.
            x: the features.
            task: graph, target and loss.
            train: the nodes that each trial learns from.
            goals, weights: targets and weights of nodes where each trial has its own.
        """
        upper, epoch = self.upper, self.moving.clone()

        def one(
            held: dict[str, Tensor], keys: list[Tensor], epoch: Tensor, numbers: dict[str, Tensor], train: Tensor, goal: Tensor, weight: Any
        ) -> Tensor:  # fmt: skip
            if upper.views > 1:
                outputs = stacked_views(skeleton, held, upper, x, task.graph, keys, epoch, numbers)
            else:
                seen = perturbed(skeleton, upper, x, task.graph, keys, 0, epoch, numbers)
                outputs = one_view(skeleton, held, seen)[None]
            found = Seen(outputs, goal, train, task.graph, task.loss, epoch, weight)
            return upper.value(found, numbers).to(outputs.dtype)

        shared = (task.target, None) if goals is None else (goals, 0)
        dims = (0, 0, 0, 0, 0, shared[1], None if weights is None else 0)
        losses = vmap(one, dims)(held, self.keys, epoch, self.numbers, train, shared[0], weights)
        self.moving.add_(1)
        return losses
