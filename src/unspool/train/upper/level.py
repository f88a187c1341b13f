"""The upper level of one training run: views of the network, the epoch that schedules and masks count by, and the loss."""

from __future__ import annotations

import contextlib
from typing import Any

import torch
from torch import Tensor, nn

from unspool.errors import IncompatibleError
from unspool.train.upper.perturbation import perturbation_key
from unspool.train.upper.seen import Seen
from unspool.train.upper.sum import Upper
from unspool.train.upper.views import Views


class UpperLevel:
    """What a training step makes small.

    Args:
        upper: the sum.
        model: the network.
        task: what it learns.
        seed: of the masks of perturbations.
        done: epochs that were run before, where a run is continued.
        autocast: whether activations are of half precision.

    Example:
        >>> import torch, unspool as us
        >>> from unspool import datasets, train
        >>> data = datasets.contextual_sbm(nodes=60, classes=2, seed=0)
        >>> model, upper = us.models.GCN(data.features.shape[1], 2, hidden=8), train.upper.Upper.parse("ce + consistency(views=2)")
        >>> level = UpperLevel(upper, model, train.Task.of(data), seed=0)
        >>> level.loss().backward()
        >>> level.advance()
        >>> int(level.epoch), bool(model.p_pre.layers[0].weight.grad.abs().sum() > 0)
        (2, True)
    """

    def __init__(
        self, upper: Upper, model: nn.Module, task: Any, seed: int, done: int = 0, autocast: bool = False
    ) -> None:
        self.task, self.autocast = task, autocast
        self.upper = upper.prepare(task)
        device = task.target.device
        self.epoch = torch.tensor(done + 1, device=device)
        keys = [perturbation_key(seed, place, device) for place in range(len(upper.perturbations))]
        wide = torch.float32 if device.type == "mps" else torch.float64
        self.numbers = {name: torch.tensor(value, dtype=wide, device=device) for name, value in upper.numbers.items()}
        self.views = Views(model, self.upper, task, keys, self.numbers)

    def loss(self) -> Tensor:
        """U in this epoch."""
        seen = self._seen()
        found = self.upper.value(seen, self.numbers)
        if seen.outputs.requires_grad and not found.requires_grad:
            raise IncompatibleError(
                f"nothing in {self.upper.text()} depends on what the network says, so there is nothing to learn; compute it from the "
                "outputs without detach() or item(), or add ce"
            )
        return found.to(seen.outputs.dtype)

    @torch.no_grad()
    def culprit(self) -> str | None:
        """The term whose value is not finite although what the network says is, where there is one."""
        seen = self._seen()
        if not bool(torch.isfinite(seen.outputs).all()):
            return None
        values = self.upper.values(seen, self.numbers)
        wrong = [
            part.term for part, each in zip(self.upper.parts, values, strict=True) if not bool(torch.isfinite(each))
        ]
        return wrong[0].text() if wrong else None

    def _seen(self) -> Seen:
        task = self.task
        how = (
            torch.autocast(task.target.device.type, dtype=torch.bfloat16) if self.autocast else contextlib.nullcontext()
        )
        with how:
            outputs = self.views(self.epoch)
        outputs = outputs.float() if self.autocast else outputs
        return Seen(outputs, task.target, task.train, task.graph, task.loss, self.epoch, task.weight)

    def advance(self) -> None:
        """The next epoch begins; in a captured one, too."""
        self.epoch.add_(1)
