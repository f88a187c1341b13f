"""Trials of one shape as one stack: the same module, run once for all of them."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.func import functional_call, vmap
from torch.nn import functional

from unspool.nn import Dropout
from unspool.study.batch import check_ahead
from unspool.study.batch.adam import StackedAdam
from unspool.study.batch.fixed_hops import with_fixed_hops
from unspool.study.batch.fixed_numbers import with_fixed_numbers
from unspool.train import CrossEntropy, Loss, PreparedTrial
from unspool.train.epochs import WARM_UP, own_stream

#: Epochs whose numbers wait on a GPU before they are copied to the host.
RING = 64


class StackedBatch:
    """A batch for any module that is written with this package's parts and losses.

    Parameters and buffers of all trials lie side by side in tensors of shape (slots, ...). One module serves as the skeleton:
    ``vmap`` runs it over them, so every trial has its own weights, rates and masks and all share the features and the graph.
    What a trial computes is what it computes alone, to rounding. Members must have the same
    :func:`~unspool.study.engine.batching.signature`.

    On CUDA an epoch is captured as one graph after a few that run as written; numbers wait on the device until the end of
    :meth:`run_epochs`.

    Args:
        members: the first trials, one per slot.

    Example:
        >>> import unspool as us
        >>> from unspool import datasets, train
        >>> from unspool.train import Trial
        >>> data = datasets.contextual_sbm(nodes=60, classes=2, seed=0)
        >>> task = train.Task.of(data)
        >>> trials = [Trial(us.models.GCN, {"hidden": 8, "dropout": rate}) for rate in (0.1, 0.5, 0.8)]
        >>> batch = StackedBatch([PreparedTrial(t, t.build(data.features.shape[1], 2), task) for t in trials])
        >>> batch.run_epochs(5).shape
        (5, 3, 4)
    """

    def __init__(self, members: Sequence[PreparedTrial]) -> None:
        self._first = members[0]
        task = members[0].task
        self._task, self._device, self._loss = task, task.target.device, task.loss
        self._skeleton = copy.deepcopy(stackable(members[0])).to(self._device)
        count = len(members)
        asleep = _asleep(self._skeleton)
        trained = decays(members[0])
        self._learnt: dict[str, Tensor] = {}
        self._rest: dict[str, Tensor] = {}
        for name, value in state(self._skeleton).items():
            if name not in asleep:
                held = self._learnt if name in trained else self._rest
                held[name] = value.detach().new_empty(count, *value.shape).requires_grad_(name in trained)
        self._sets = {
            name: getattr(task, name).new_empty(count, getattr(task, name).numel())
            for name in ("train", "valid", "test")
        }
        own = task.target.is_floating_point()
        self._goals = task.target.new_empty(count, *task.target.shape) if own else None
        self._weights = None if task.weight is None else task.weight.new_empty(count, *task.weight.shape)
        self._adam = StackedAdam(self._learnt)
        self._calls = 0
        self._willing = self._device.type == "cuda"
        self._stream = torch.cuda.Stream(self._device) if self._willing else None
        self._replay: Any = None
        self._begun = 0
        self._ring = torch.full((RING, count, 4), torch.nan, dtype=torch.float64, device=self._device)
        self._place = torch.zeros(1, dtype=torch.int64, device=self._device)
        self.load(range(count), members)

    @property
    def slots(self) -> int:
        """How many trials train at once."""
        return self._ring.shape[1]

    @torch.no_grad()
    def load(self, slots: Sequence[int], members: Sequence[PreparedTrial]) -> None:
        """Start trials anew in these slots."""
        if not members:
            return
        where = torch.as_tensor(list(slots), device=self._device)
        states = [state(stackable(m)) for m in members]
        for name, held in (self._learnt | self._rest).items():
            held.index_copy_(0, where, torch.stack([s[name].detach() for s in states]).to(self._device, held.dtype))
        for name, held in self._sets.items():
            held.index_copy_(0, where, torch.stack([getattr(m.task, name) for m in members]))
        if self._goals is not None:
            self._goals.index_copy_(0, where, torch.stack([m.task.target for m in members]))
        if self._weights is not None:
            self._weights.index_copy_(0, where, torch.stack([_weight(m) for m in members]))
        each = [decays(m) for m in members]
        self._adam.begin(
            slots, [m.trial.config.lr for m in members], {name: [d[name] for d in each] for name in self._learnt}
        )

    def run_epochs(self, epochs: int) -> NDArray[np.float64]:
        """Train all slots for some epochs."""
        parts: list[NDArray[np.float64]] = []
        for first in range(0, epochs, RING):
            self.start_epochs(min(RING, epochs - first))
            parts.append(self.finish_epochs())
        return np.concatenate(parts)

    def start_epochs(self, epochs: int) -> None:
        """Give the device some epochs to do; see :class:`~unspool.study.batch.AsyncBatch`."""
        self._begun = check_ahead(epochs, RING)
        with own_stream(self._stream, self._device):
            self._place.zero_()
            for _ in range(epochs):
                self._one()

    def finish_epochs(self) -> NDArray[np.float64]:
        """Wait for what was begun."""
        if self._stream is not None:
            self._stream.synchronize()
        return self._ring[: self._begun].cpu().numpy().copy()

    def compact(self, slots: Sequence[int]) -> StackedBatch:
        """A smaller batch of these slots, with their trials as far as they are."""
        made = StackedBatch([self._first] * len(slots))
        where = torch.as_tensor(list(slots), device=self._device)
        with torch.no_grad():
            for mine, old in ((made._learnt, self._learnt), (made._rest, self._rest), (made._sets, self._sets)):
                for name, held in mine.items():
                    held.copy_(old[name].index_select(0, where))
            if made._goals is not None and self._goals is not None:
                made._goals.copy_(self._goals.index_select(0, where))
            if made._weights is not None and self._weights is not None:
                made._weights.copy_(self._weights.index_select(0, where))
        made._adam.follow(self._adam, slots)
        return made

    # -- one epoch -------------------------------------------------------------------------------------------------

    def _one(self) -> None:
        """One epoch, its numbers in the ring."""
        self._calls += 1
        if self._willing and self._calls == WARM_UP + 1:
            self._capture()
        if self._replay is not None:
            self._replay()
        else:
            self._epoch()

    def _epoch(self) -> None:
        self._skeleton.train()
        self._adam.zero_grad()
        losses = _losses(self._loss, *self._rows(self._outputs(), "train"), self._counted("train"))
        losses.sum().backward()
        self._adam.step()
        self._skeleton.eval()
        with torch.no_grad():
            numbers = torch.stack([losses.detach().double(), *self._looks()], dim=-1)
            numbers = numbers.where(torch.isfinite(numbers[:, :1]), torch.nan)
            self._ring.index_copy_(0, self._place, numbers[None])
            self._place.add_(1)

    def _outputs(self) -> Tensor:
        """What every trial says about every node, shape (slots, nodes, outputs)."""
        return vmap(self._output)(self._learnt | self._rest)

    def _output(self, held: dict[str, Tensor]) -> Tensor:
        return functional_call(self._skeleton, held, (self._task.x, self._task.graph))

    def _rows(self, outputs: Tensor, part: str) -> tuple[Tensor, Tensor]:
        """Outputs and targets of one set of nodes, each trial's own."""
        ids = self._sets[part]
        rows = outputs.gather(1, ids[..., None].expand(-1, -1, outputs.shape[2]))
        return rows, self._task.target[ids] if self._goals is None else _own_rows(self._goals, ids)

    def _counted(self, part: str) -> Tensor | None:
        """How much the nodes of one set count, each trial's own."""
        return None if self._weights is None else _own_rows(self._weights, self._sets[part])

    def _looks(self) -> tuple[Tensor, Tensor, Tensor]:
        """Validation loss, validation score and test score of every trial."""
        outputs = self._outputs()
        valid = self._rows(outputs, "valid")
        loss, score = _losses(self._loss, *valid, self._counted("valid")).double(), _scores(self._loss, *valid).double()
        if self._sets["test"].numel() == 0:
            return loss, score, torch.full_like(loss, torch.nan)
        return loss, score, _scores(self._loss, *self._rows(outputs, "test")).double()

    def _capture(self) -> None:
        graph = torch.cuda.CUDAGraph()
        self._adam.zero_grad()
        try:
            with torch.cuda.graph(graph, stream=self._stream):
                self._epoch()
        except torch.OutOfMemoryError:
            raise
        except RuntimeError:  # a part that looks at values: it runs as it is written
            self._willing = False
            self._adam.zero_grad()
            return
        self._replay = graph.replay


def stackable(member: PreparedTrial) -> nn.Module:
    """The model of a trial, with fixed numbers in tensors where that is known to be the same."""
    return with_fixed_numbers(with_fixed_hops(member.model, member.task.graph))


def state(model: nn.Module) -> dict[str, Tensor]:
    """Parameters and buffers by name, each once.

    Example:
        >>> import unspool as us
        >>> list(state(us.nn.Linear(2, 1)))
        ['weight', 'bias']
    """
    return {**dict(model.named_parameters()), **dict(model.named_buffers())}


def decays(member: PreparedTrial) -> dict[str, float]:
    """The weight decay of every parameter that the trial's config trains, by name.

    Example:
        >>> import unspool as us
        >>> from unspool import datasets, train
        >>> from unspool.train import Trial
        >>> data = datasets.contextual_sbm(nodes=60, classes=2, seed=0)
        >>> trial = Trial(us.models.SGC, config=train.TrainConfig(weight_decay=0.1))
        >>> decays(PreparedTrial(trial, trial.build(data.features.shape[1], 2), train.Task.of(data)))
        {'p_pre.weight': 0.1, 'p_pos.bias': 0.1}
    """
    groups = member.trial.config.parameter_groups(member.model)
    by_object = {id(p): group["weight_decay"] for group in groups for p in group["params"]}
    return {name: by_object[id(p)] for name, p in member.model.named_parameters() if id(p) in by_object}


def _weight(member: PreparedTrial) -> Tensor:
    assert member.task.weight is not None  # the signature sees to that
    return member.task.weight


def _own_rows(held: Tensor, ids: Tensor) -> Tensor:
    """Rows ``ids[t]`` of ``held[t]``, for every trial t."""
    return held[torch.arange(ids.shape[0], device=ids.device)[:, None], ids]


def _losses(loss: Loss, rows: Tensor, target: Tensor, weight: Tensor | None) -> Tensor:
    """One loss per trial, of rows of shape (trials, nodes, outputs)."""
    if not isinstance(loss, CrossEntropy):
        return vmap(loss.loss)(rows, target) if weight is None else vmap(loss.weighted)(rows, target, weight)
    # Trap: cross_entropy under vmap runs in Python, and loads a package for symbolic maths first (two seconds).
    each = functional.cross_entropy(rows.flatten(0, 1), target.flatten(), reduction="none").view(target.shape)
    return each.mean(-1) if weight is None else (weight * each).sum(-1) / weight.sum(-1)


def _scores(loss: Loss, rows: Tensor, target: Tensor) -> Tensor:
    """One score per trial."""
    if not isinstance(loss, CrossEntropy):
        return vmap(loss.score)(rows, target)
    return (rows.argmax(-1) == target).to(rows.dtype).mean(-1)


def _asleep(model: nn.Module) -> set[str]:
    """State of dropout whose rate is zero in all trials (the signature sees to that): it would compute masks for nothing."""
    return {
        f"{name}.{part}" if name else part
        for name, module in model.named_modules()
        if isinstance(module, Dropout) and float(module.rate) == 0
        for part in ("rate", "key", "count")
    }
