"""Many trials of a named model, trained by kernels that know it."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Sequence
from dataclasses import replace
from types import ModuleType
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from unspool.models import IdentityMapping
from unspool.models.gcnii import logarithmic
from unspool.ops.kernels.noise_cpu import limits
from unspool.study.batch import check_ahead
from unspool.study.batch.kernel.blueprints import Blueprint, Middle, Mixer, blueprint, dropout_at, fixed_hops
from unspool.study.batch.kernel.flows import FLOWS
from unspool.study.batch.kernel.state import RING, Shared, State
from unspool.study.batch.stacked_batch import decays
from unspool.train import PreparedTrial, Task
from unspool.train.epochs import own_stream


class KernelBatch:
    """A batch of trials with equal blueprints.

    An epoch is the way back through the network, Adam's step, and the way forward for two networks at once: with dropout for the
    next step, without for the evaluation of this one. On a GPU it is one CUDA graph. The numbers of a trial do not depend, in
    any bit, on the other slots.

    Args:
        members: the first trials, one per slot.
        depth: room for hops, where trials that come later may be deeper and zeros can stand for missing ones; that of the
            deepest member when omitted.

    Example:
        >>> import unspool as us
        >>> from unspool import datasets, train
        >>> from unspool.train import Trial
        >>> data = datasets.contextual_sbm(nodes=60, classes=2, seed=0)
        >>> trials = [Trial(us.models.UGDGNN, {"hidden": 16, "depth": k}) for k in (1, 2, 4)]
        >>> batch = KernelBatch([PreparedTrial(t, t.build(data.features.shape[1], 2), train.Task.of(data)) for t in trials])
        >>> batch.run_epochs(5).shape
        (5, 3, 4)
    """

    def __init__(self, members: Sequence[PreparedTrial], depth: int | None = None) -> None:
        plans = [blueprint(m.model) for m in members]
        first = plans[0]
        if first is None or any(p is None or p.shape != first.shape for p in plans):
            raise ValueError(
                "a fast batch takes trials of named models whose blueprints agree; use StackedBatch for others"
            )
        deepest = max(p.depth for p in plans if p is not None)
        room = deepest if depth is None or first.shape is first else max(depth, deepest)
        self.config = replace(first, depth=room)
        self._first = members[0]
        self.shared = Shared.of(members[0].task)
        self.splits = _Splits(self.shared.x.device)
        self.splits.places([m.task for m in members])
        self._open(len(members))
        self.load(range(len(members)), members)

    def _open(self, slots: int) -> None:
        self.state, self.flow = State(self.config, self.shared, self.splits.sets, slots), FLOWS[self.config.middle]
        self.flow.signals(self.state)
        self.device = self.shared.x.device
        self.steps = _steps(self.device)
        self._primed = False
        self._graph: Any = None
        self._calls = self._begun = 0
        self._stream = torch.cuda.Stream(self.device) if self.device.type == "cuda" else None

    @property
    def slots(self) -> int:
        """How many trials train at once."""
        return self.state.slots

    # -- trials in and out --------------------------------------------------------------------------------------------

    def load(self, slots: Sequence[int], members: Sequence[PreparedTrial]) -> None:
        """Start trials anew in these slots; whatever was there is gone."""
        if not members:
            return
        s = self.state
        where = torch.tensor(list(slots), device=self.device)
        which = self.splits.places([m.task for m in members])
        if self.splits.sets[0] is not s.train:  # more splits than there was room for: the tensors are new ones
            s.train, s.valid, s.test = self.splits.sets
            self._graph = None
        for name, value in _stacked(members, self.config, s, which).items():
            held, dim = s.per_trial()[name]
            held.index_copy_(dim, where, value.to(self.device, held.dtype))
        for name in ("mean", "square", "small_mean", "small_square", "epoch"):
            getattr(s, name).index_fill_(0, where, 0)
        for held, dim in self.flow.held(s):
            held.index_fill_(dim, where, 0)
        self._primed = False

    def compact(self, slots: Sequence[int]) -> KernelBatch:
        """A smaller batch of these slots, with their trials as far as they are."""
        made = copy.copy(self)
        made._open(len(slots))
        where = torch.tensor(list(slots), device=self.device)
        there = made.state.per_trial()
        for name, (held, dim) in self.state.per_trial().items():
            there[name][0].copy_(held.index_select(dim, where))
        return made

    # -- epochs --------------------------------------------------------------------------------------------------------

    def run_epochs(self, epochs: int) -> NDArray[np.float64]:
        """Train all slots for some epochs; see :class:`~unspool.study.batch.TrialBatch`."""
        found: list[NDArray[np.float64]] = []
        for first in range(0, epochs, RING):
            self.start_epochs(min(RING, epochs - first))
            found.append(self.finish_epochs())
        return np.concatenate(found)

    def start_epochs(self, epochs: int) -> None:
        """Give the device some epochs to do; see :class:`~unspool.study.batch.AsyncBatch`."""
        self._begun = check_ahead(epochs, RING)
        # Trap: Triton launches on the current device, whatever device its tensors are on.
        with contextlib.ExitStack() as here:
            if self._stream is not None:
                here.enter_context(torch.cuda.device(self.device))
            here.enter_context(own_stream(self._stream, self.device))
            self.state.turn.zero_()
            if not self._primed:
                self._forward()
                self._primed = True
            for _ in range(epochs):
                self._epoch()

    def finish_epochs(self) -> NDArray[np.float64]:
        """Wait for what was begun."""
        if self._stream is not None:
            self._stream.synchronize()
        s = self.state
        numbers = s.ring[: self._begun].double().cpu().numpy()
        # Scores are shares of whole numbers of nodes, which single precision has rounded.
        for column, ids in ((2, s.valid), (3, s.test)):
            count = max(ids.shape[1], 1)
            numbers[:, :, column] = np.rint(numbers[:, :, column] * count) / count
        return numbers

    def _epoch(self) -> None:
        if self.device.type != "cuda":
            self._once()
            return
        if self._graph is None and self._calls >= 1:
            torch.cuda.synchronize(self.device)
            self._graph = torch.cuda.CUDAGraph()
            # Trap: torch's own stream for captures stays on the device where it was first made.
            with torch.cuda.graph(self._graph, stream=torch.cuda.Stream(self.device)):
                self._once()
        self._calls += 1
        if self._graph is None:
            self._once()
        else:
            self._graph.replay()

    def _once(self) -> None:
        """One epoch: back, step, forward."""
        s, steps = self.state, self.steps
        steps.begin_step(s)
        self._backward()
        s.epoch.add_(1)
        self._forward()
        s.turn.add_(1)

    def _forward(self) -> None:
        s, steps = self.state, self.steps
        if s.nets == 2:
            steps.hash_masks(s, back=False)
        steps.losses(s, *self.flow.forward(s, steps))

    def _backward(self) -> None:
        s, steps = self.state, self.steps
        if s.nets == 2:
            steps.hash_masks(s, back=True)
        steps.first_backward(s, *self.flow.backward(s, steps))
        steps.small_adam(s)


def _steps(device: torch.device) -> ModuleType:
    if device.type == "cuda":
        from unspool.study.batch.kernel import cuda

        return cuda
    from unspool.study.batch.kernel import plain

    return plain


class _Splits:
    """The sets of nodes of all splits that trials of a batch have, one row per split."""

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self.known: dict[int, tuple[int, Task]] = {}  # the task is kept, so that its id stays its own
        nothing = torch.zeros(0)
        self.sets = (nothing, nothing, nothing)

    def places(self, tasks: Sequence[Task]) -> list[int]:
        """The row of each task; rows of new ones are added."""
        new = {id(task): task for task in tasks if id(task) not in self.known}
        for task in new.values():
            self.known[id(task)] = (len(self.known), task)
        if new:
            everyone = [task for _, task in self.known.values()]
            self.sets = (
                self._rows([t.train for t in everyone]),
                self._rows([t.valid for t in everyone]),
                self._rows([t.test for t in everyone]),
            )
        return [self.known[id(task)][0] for task in tasks]

    def _rows(self, parts: Sequence[Tensor]) -> Tensor:
        return torch.stack(list(parts)).to(self.device, torch.int32)


def _stacked(members: Sequence[PreparedTrial], config: Blueprint, s: State, splits: Sequence[int]) -> dict[str, Tensor]:
    """The fresh state of some trials, side by side."""
    rows: list[dict[str, Tensor]] = [_fresh(m, config, s) for m in members]
    made = {
        name: torch.stack([r[name] for r in rows], dim=1 if rows[0][name].ndim == 1 and name in _SITES else 0)
        for name in rows[0]
    }
    return {**made, "which": torch.tensor(splits, dtype=torch.int32)}


_SITES = ("key", "threshold", "scale")


def _fresh(member: PreparedTrial, config: Blueprint, s: State) -> dict[str, Tensor]:
    model: Any = member.model
    how = member.trial.config
    if (deeper := blueprint(model)) is not None and deeper.depth > config.depth:
        raise ValueError(
            f"{member.trial} has {deeper.depth} hops, and the batch room for {config.depth}; open one with depth={deeper.depth}"
        )
    named = dict(model.named_parameters())
    decay = decays(member)
    small = torch.zeros(s.layout.size, dtype=s.small.dtype)
    for role, at in s.layout.places.items():
        value = named[_name(config, role)].detach().flatten()
        small[at : at + value.numel()] = value
    coefficients = torch.zeros(s.hops, s.channels, s.channels, dtype=s.small.dtype)
    depth = int(model.settings.get("depth", 0))
    if config.middle is Middle.SERIES and config.mixer is Mixer.FIXED:
        hops = fixed_hops(model)
        depth = hops.numel() - 1
        coefficients[: hops.numel(), range(s.classes), range(s.classes)] = hops[:, None].to(coefficients)
    deep, rows = config.middle is Middle.DEEP, config.middle is Middle.ROWS
    noise = [_noise(model, site) for site in config.sites]
    return {
        "weight": named[config.first].detach(), "small": small, "decay": torch.tensor(decay[config.first], dtype=torch.float64),
        "small_decay": torch.tensor([decay[_name(config, r)] for r in s.layout.places] if s.layout.places else [0.0], dtype=torch.float64),
        "rate": torch.tensor(how.lr, dtype=torch.float64), "depth": torch.tensor(depth), "coefficients": coefficients,
        "leans": _leans(model, config) if deep else torch.zeros(0), "teleport": torch.tensor(model.settings["teleport"] if deep else 0.0),
        "radius": torch.tensor(_radius(model) if rows else 0.0, dtype=torch.float64),
        "key": torch.tensor([n[0] for n in noise], dtype=torch.int32), "threshold": torch.tensor([n[1] for n in noise], dtype=torch.int32),
        "scale": torch.tensor([n[2] for n in noise], dtype=torch.float64),
    }  # fmt: skip


def _radius(model: Any) -> float:
    """How far a step of AirGNN pulls a row back: the step times the weight of its fidelity."""
    residual = model.settings["residual"]
    return residual / (2 * (1 - residual))


def _leans(model: Any, config: Blueprint) -> Tensor:
    """θ of every layer of GCNII."""
    how = model.settings
    constant = how["identity"] is IdentityMapping.CONSTANT
    leans = [how["strength"] if constant else logarithmic(how["strength"], k + 1) for k in range(config.depth)]
    return torch.tensor(leans, dtype=torch.float64)


def _name(config: Blueprint, role: str) -> str:
    name = config.part(role)
    assert name is not None
    return name


def _noise(model: Any, site: Any) -> tuple[int, int, float]:
    """Key, threshold and scale of a dropout site; one that keeps everything where there is none."""
    module = dropout_at(model, site)
    if module is None:
        return 0, -(2**15), 1.0
    return int(module.key), *limits(module.rate)
