"""The memory of a fast pack: parameters, moments and signals of all trials."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from unspool.ops.features import SparseFeatures
from unspool.ops.sliced import Sliced
from unspool.study.fast.blueprint import Blueprint, Middle
from unspool.train.task import Task

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
    def of(plan: Blueprint) -> Layout:
        """The layout of a blueprint."""
        h, c, k = plan.width, plan.classes, plan.depth + 1
        matrices = h * h * (plan.depth if plan.middle is Middle.DEEP else k)
        known = {
            "b1": h, "w2": h * c, "b2": c, "head": h * c, "last": c, "gamma": k, "zeta": k, "weight": k * c * c, "gate": c,
            "gate_bias": 1, "hops": matrices,
        }  # fmt: skip
        roles = [role for role in known if plan.part(role) is not None]
        places, at = {}, 0
        for role in roles:
            places[role] = at
            at += known[role]
        return Layout(places, {role: known[role] for role in roles}, max(at, 1))

    def at(self, role: str) -> int:
        """The place of a role; 0 where there is none."""
        return self.places.get(role, 0)

    def has(self, role: str) -> bool:
        """Whether the model has a parameter of this role."""
        return role in self.places


@dataclass(frozen=True, eq=False)
class Shared:
    """What all trials of a pack look at: features in both orders, the graph, targets."""

    by_node: Sliced
    by_feature: Sliced
    forward: Any
    transpose: Any
    labels: Tensor
    x: Any

    @staticmethod
    def of(task: Task) -> Shared:
        """Made once per task and device."""
        graph = task.graph.relaxed().operator
        x = task.x if isinstance(task.x, SparseFeatures) else SparseFeatures.from_tensor(task.x)
        return Shared(
            Sliced.by_node(x), Sliced.by_feature(x), graph.forward, graph.transpose, task.target.to(torch.int32), x
        )


class State:
    """All tensors of a pack with a number of slots.

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

    def __init__(self, plan: Blueprint, shared: Shared, sets: tuple[Tensor, Tensor, Tensor], slots: int) -> None:
        self.plan, self.shared, self.slots = plan, shared, slots
        self.layout = Layout.of(plan)
        self.train, self.valid, self.test = sets
        x = shared.x
        self.nodes, self.features = int(x.shape[0]), int(x.shape[1])
        self.width, self.classes, self.hops = plan.width, plan.classes, plan.depth + 1
        self.channels = max(4, 1 << math.ceil(math.log2(plan.classes))) if plan.classes > 1 else 4
        self.nets = 1 if plan.middle is Middle.LINEAR else 2
        self._parameters()
        self._masks()

    def _parameters(self) -> None:
        t, like = self.slots, {"dtype": self.shared.x.dtype, "device": self.shared.x.device}
        where = {"device": like["device"]}
        self.weight, self.mean, self.square = (torch.zeros(t, self.features, self.width, **like) for _ in range(3))
        self.small, self.small_mean, self.small_square = (torch.zeros(t, self.layout.size, **like) for _ in range(3))
        self.partial = torch.zeros(PIECES + 1, t, self.layout.size, **like)
        roles = list(self.layout.places)
        index = [torch.full((self.layout.sizes[r],), i, dtype=torch.int32) for i, r in enumerate(roles)]
        self.group = torch.cat([*index, torch.zeros(1 if not roles else 0, dtype=torch.int32)]).to(**where)
        self.pieces = torch.zeros(t, self.shared.by_feature.pieces, self.width, **like)
        self.decay = torch.zeros(t, **like)
        self.small_decay = torch.zeros(t, max(len(roles), 1), **like)
        self.rate = torch.zeros(t, dtype=torch.float64, **where)
        self.step_size, self.root = torch.zeros(t, **like), torch.zeros(t, **like)
        self.epoch = torch.zeros(t, dtype=torch.int32, **where)
        self.depth = torch.zeros(t, dtype=torch.int32, **where)
        self.which = torch.zeros(t, dtype=torch.int32, **where)
        self.key = torch.zeros(3, t, dtype=torch.int32, **where)
        self.threshold = torch.full((3, t), -(2**15), dtype=torch.int32, **where)
        self.scale = torch.ones(3, t, **like)
        self.coefficients = torch.zeros(t, self.hops, self.channels, self.channels, **like)
        self.partial_coefficients = torch.zeros(PIECES, t, self.hops, self.channels, self.channels, **like)
        deep = self.plan.depth if self.plan.middle is Middle.DEEP else 0
        self.leans, self.teleport = torch.zeros(t, deep, **like), torch.zeros(t, **like)
        self.now = torch.zeros(t, **like)
        self.ring = torch.zeros(RING, t, 4, **like)
        self.turn = torch.zeros((), dtype=torch.int32, **where)

    def _masks(self) -> None:
        drops = self.slots if self.nets == 2 else 0
        words = {"dtype": torch.int32, "device": self.shared.x.device}
        self.bits = torch.zeros(drops, self.shared.by_node.steps, **words)
        self.bits_back = torch.zeros(drops, self.shared.by_feature.steps, **words)

    def per_trial(self) -> dict[str, tuple[Tensor, int]]:
        """What belongs to a trial and must move with it: each tensor and its dimension of trials."""
        names = (
            "weight", "mean", "square", "small", "small_mean", "small_square", "decay", "small_decay", "rate", "epoch", "depth",
            "which", "coefficients", "leans", "teleport",
        )  # fmt: skip
        held = {name: (getattr(self, name), 0) for name in names}
        return {**held, **{name: (getattr(self, name), 1) for name in ("key", "threshold", "scale")}}

    @property
    def bytes(self) -> int:
        """Of all tensors."""
        found = [v for v in vars(self).values() if isinstance(v, Tensor)]
        found += [v for held in vars(self).values() if isinstance(held, list) for v in held]  # type: ignore[misc]
        return sum(v.numel() * v.element_size() for v in found)
