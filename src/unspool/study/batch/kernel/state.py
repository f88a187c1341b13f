"""The memory of a fast batch: parameters, moments and signals of all trials."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from unspool.ops import SparseFeatures
from unspool.ops.sliced import Sliced
from unspool.study.batch.kernel.blueprints import Blueprint, Middle
from unspool.train import Task

#: Stretches of nodes whose sums are taken apart.
PIECES = 8
#: Epochs whose numbers are kept on the device before they are fetched.
RING = 64


@dataclass(frozen=True)
class Layout:
    """Where each small parameter stands in the row of its trial."""

    places: dict[str, int]
    sizes: dict[str, int]
    size: int

    @staticmethod
    def of(config: Blueprint) -> Layout:
        """The layout of a blueprint."""
        h, c, k = config.width, config.classes, config.depth + 1
        matrices = h * h * (config.depth if config.middle is Middle.DEEP else k)
        known = {
            "b1": h, "w2": h * c, "b2": c, "head": h * c, "last": c, "gamma": k, "zeta": k, "weight": k * c * c, "gate": c,
            "gate_bias": 1, "hops": matrices,
        }  # fmt: skip
        roles = [role for role in known if config.part(role) is not None]
        places, at = {}, 0
        for role in roles:
            places[role] = at
            at += -(-known[role] // 16) * 16  # aligned, so that rows of matrices are read four numbers at once
        return Layout(places, {role: known[role] for role in roles}, max(at, 16))

    def at(self, role: str) -> int:
        """The place of a role; 0 where there is none."""
        return self.places.get(role, 0)

    def has(self, role: str) -> bool:
        """Whether the model has a parameter of this role."""
        return role in self.places


@dataclass(frozen=True, eq=False)
class Shared:
    """What all trials of a batch look at: features in both orders, the graph, targets."""

    by_node: Sliced
    by_feature: Sliced
    forward: Any
    transpose: Any
    labels: Tensor
    x: Any

    @staticmethod
    def of(task: Task) -> Shared:
        """That of a task; the last one is remembered, because batches of one study follow one another."""
        wanted = (task.x, task.graph, task.target)
        known: list[Any] = _last[:]  # another thread may change it meanwhile
        if not known or any(a is not b for a, b in zip(known[0], wanted, strict=True)):
            known = [wanted, Shared._made(task)]
            _last[:] = known
        return known[1]

    @staticmethod
    def _made(task: Task) -> Shared:
        graph = task.graph.with_general_laplacian().operator
        x = task.x if isinstance(task.x, SparseFeatures) else SparseFeatures.from_tensor(task.x)
        return Shared(
            Sliced.by_node(x), Sliced.by_feature(x), graph.forward, graph.transpose, task.target.to(torch.int32), x
        )


_last: list[Any] = []


class State:
    """All tensors of a batch with a number of slots.

    Signals on class channels have shape (nodes, trials, ...), so that all trials stand side by side in one sparse product; what
    only one trial's programs touch has shape (trials, ...). The signals are made by the flow of the model.
    """

    # Signals; each flow makes those it needs.
    z: Tensor
    hidden: Tensor
    grad: Tensor
    grad_hidden: Tensor
    grad_plain: Tensor
    pages: Tensor
    sweep: Tensor
    turns: list[Tensor]
    back_turns: list[Tensor]
    plain: list[Tensor]
    matrices: Tensor
    signals: Tensor
    begin: Tensor
    total: Tensor
    inside: Tensor
    moved: Tensor
    kept: Tensor
    back_rows: Tensor
    learnt: Tensor

    def __init__(self, config: Blueprint, shared: Shared, sets: tuple[Tensor, Tensor, Tensor], slots: int) -> None:
        self.config, self.shared, self.slots = config, shared, slots
        self.layout = Layout.of(config)
        self.train, self.valid, self.test = sets
        x = shared.x
        self.nodes, self.features = int(x.shape[0]), int(x.shape[1])
        self.width, self.classes, self.hops = config.width, config.classes, config.depth + 1
        self.channels = max(4, 1 << (config.classes - 1).bit_length())
        self.nets = 1 if config.middle is Middle.LINEAR else 2
        self._parameters()
        self._progress()

    def floats(self, *shape: int) -> Tensor:
        """Zeros like the features."""
        return torch.zeros(shape, dtype=self.shared.x.dtype, device=self.shared.x.device)

    def whole(self, *shape: int) -> Tensor:
        """Whole numbers, zero."""
        return torch.zeros(shape, dtype=torch.int32, device=self.shared.x.device)

    def _parameters(self) -> None:
        t, size = self.slots, self.layout.size
        self.weight, self.mean, self.square = (self.floats(t, self.features, self.width) for _ in range(3))
        self.small, self.small_mean, self.small_square = (self.floats(t, size) for _ in range(3))
        self.partial = self.floats(PIECES + 1, t, size)
        self.pieces = self.floats(t, self.shared.by_feature.pieces, self.width)
        roles = list(self.layout.places)
        self.group = self.whole(size)
        for i, role in enumerate(roles):
            at = self.layout.at(role)
            self.group[at : at + self.layout.sizes[role]] = i
        self.decay, self.small_decay = self.floats(t), self.floats(t, max(len(roles), 1))
        self.coefficients = self.floats(t, self.hops, self.channels, self.channels)
        self.partial_coefficients = self.floats(PIECES, t, self.hops, self.channels, self.channels)
        deep = self.config.depth if self.config.middle is Middle.DEEP else 0
        self.leans, self.teleport, self.radius = self.floats(t, deep), self.floats(t), self.floats(t)

    def _progress(self) -> None:
        """Where each trial is, what its dropout hashes, and its numbers."""
        t = self.slots
        self.rate = self.floats(t).double()
        self.step_size, self.root = self.floats(t), self.floats(t)
        self.epoch, self.depth, self.which = self.whole(t), self.whole(t), self.whole(t)
        self.key, self.threshold, self.scale = self.whole(3, t), self.whole(3, t) - 2**15, self.floats(3, t) + 1
        drops = t if self.nets == 2 else 0
        self.bits = self.whole(drops, self.shared.by_node.steps)
        self.bits_back = self.whole(drops, self.shared.by_feature.steps)
        self.now, self.ring, self.turn = self.floats(t), self.floats(RING, t, 4), self.whole()

    def per_trial(self) -> dict[str, tuple[Tensor, int]]:
        """What belongs to a trial and must move with it: each tensor and its dimension of trials."""
        names = (
            "weight", "mean", "square", "small", "small_mean", "small_square", "decay", "small_decay", "rate", "epoch", "depth",
            "which", "coefficients", "leans", "teleport", "radius",
        )  # fmt: skip
        held = {name: (getattr(self, name), 0) for name in names}
        return {**held, **{name: (getattr(self, name), 1) for name in ("key", "threshold", "scale")}}
