"""Many trials of a named model, trained by kernels that know it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from unspool.ops.kernels.noise_cpu import limits
from unspool.study.fast.blueprint import Blueprint, Middle, Mixer, dropout_at, fixed_hops
from unspool.study.fast.state import RING, Shared, State
from unspool.study.pack import Member


class FastPack:
    """A pack of trials with equal blueprints.

    An epoch is the way back through the network, Adam's step, and the way forward for two networks at once: with dropout for the
    next step, without for the evaluation of this one. On a GPU it is one CUDA graph.

    Args:
        plan: the blueprint of all members (the deepest, where depths differ).
        shared: features, graph and targets on the device.
        sets: ids of the training, validation and test nodes of each split, three tensors of shape (splits, nodes).
        slots: how many trials.
    """

    def __init__(self, plan: Blueprint, shared: Shared, sets: tuple[Tensor, Tensor, Tensor], slots: int) -> None:
        self.plan, self.shared, self.sets = plan, shared, sets
        self.state = State(plan, shared, sets, slots)
        self.device = shared.x.device
        self.steps = _steps(self.device)
        self._primed = False
        self._graph: Any = None
        self._calls = 0

    @property
    def slots(self) -> int:
        """How many trials train at once."""
        return self.state.slots

    # -- trials in and out --------------------------------------------------------------------------------------------

    def put(self, slots: Sequence[int], members: Sequence[Member], splits: Sequence[int] | None = None) -> None:
        """Start trials anew in these slots; ``splits`` says which of the sets each one has."""
        s = self.state
        where = torch.tensor(list(slots), device=self.device)
        chosen = [0] * len(members) if splits is None else list(splits)
        for name, value in _stacked(members, self.plan, s, chosen).items():
            held, dim = s.per_trial()[name]
            held.index_copy_(dim, where, value.to(self.device, held.dtype))
        for name in ("mean", "square", "small_mean", "small_square", "epoch"):
            getattr(s, name).index_fill_(0, where, 0)
        s.grad.index_fill_(1, where, 0)
        s.sweep.index_fill_(2, where, 0)
        self._primed = False

    def shrunk(self, slots: Sequence[int]) -> FastPack:
        """A smaller pack of these slots."""
        made = FastPack(self.plan, self.shared, self.sets, len(slots))
        where = torch.tensor(list(slots), device=self.device)
        there = made.state.per_trial()
        for name, (held, dim) in self.state.per_trial().items():
            there[name][0].copy_(held.index_select(dim, where))
        return made

    # -- epochs --------------------------------------------------------------------------------------------------------

    def advance(self, epochs: int) -> NDArray[np.float64]:
        """Train all slots for some epochs; see :class:`~unspool.study.pack.Pack`."""
        found: list[NDArray[np.float64]] = []
        while epochs > 0:
            now = min(epochs, RING)
            found.append(self._advance(now))
            epochs -= now
        return np.concatenate(found)

    def _advance(self, epochs: int) -> NDArray[np.float64]:
        s = self.state
        s.turn.zero_()
        if not self._primed:
            self._forward()
            self._primed = True
        for _ in range(epochs):
            self._epoch()
        return s.ring[:epochs].double().cpu().numpy()

    def _epoch(self) -> None:
        if self.device.type != "cuda":
            self._once()
            return
        if self._graph is None and self._calls >= 1:
            torch.cuda.synchronize(self.device)
            self._graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self._graph):
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
        s, steps, middle = self.state, self.steps, self.plan.middle
        if s.nets == 2:
            steps.hash_masks(s, back=False)
        if middle is Middle.LINEAR:
            steps.first_plain(s, s.z)
            y = self._hops(s.z, self.plan.depth)
        elif middle is Middle.CONVOLUTION:
            steps.first_plain(s, s.plain[0])
            steps.hop(self.shared.forward, s.plain[0], s.plain[1])
            steps.middle(s, s.plain[1])
            y = self._hops(s.z, 1)
        elif middle is Middle.GATED:
            steps.first_perceptron(s)
            s.pages[0].copy_(s.z)
            for k in range(self.plan.depth):
                steps.hop(self.shared.forward, s.pages[k], s.pages[k + 1])
            y = s.turns[0]
            steps.gates(s, y)
        else:
            if self.plan.mixer is not Mixer.FIXED:
                steps.mixture(s)
            steps.first_perceptron(s)
            y = s.pages[self.plan.depth]
            for k in reversed(range(self.plan.depth)):  # Horner: y ← A y + z cₖ
                out = s.turns[k % 2]
                steps.hop(self.shared.forward, y, out, s.pages[k])
                y = out
        steps.losses(s, y)

    def _hops(self, y: Tensor, count: int) -> Tensor:
        for k in range(count):
            out = self.state.turns[k % 2]
            self.steps.hop(self.shared.forward, y, out)
            y = out
        return y

    def _backward(self) -> None:
        s, steps, middle = self.state, self.steps, self.plan.middle
        if s.nets == 2:
            steps.hash_masks(s, back=True)
        dz = s.grad
        if middle is Middle.GATED:
            steps.gates_backward(s)
            dz = self._back_hops(s.sweep[self.plan.depth], [s.sweep[k] for k in reversed(range(self.plan.depth))])
        elif middle is Middle.SERIES:
            for k in range(self.plan.depth):
                steps.hop(self.shared.transpose, s.sweep[k], s.sweep[k + 1])
        else:
            dz = self._back_hops(s.grad, [None] * (1 if middle is Middle.CONVOLUTION else self.plan.depth))
        if middle is Middle.LINEAR:
            steps.first_backward(s, dz, s.slots * s.channels, s.channels)
        else:
            steps.channels_backward(s, dz)
            if middle is Middle.SERIES and self.plan.mixer is not Mixer.FIXED:
                steps.mixture_backward(s)
            self._first_backward()
        steps.small_adam(s)

    def _first_backward(self) -> None:
        s = self.state
        if self.plan.middle is Middle.CONVOLUTION:
            self.steps.hop(self.shared.transpose, s.grad_hidden, s.grad_plain)
            self.steps.first_backward(s, s.grad_plain, s.slots * s.width, s.width)
        else:
            self.steps.first_backward(s, s.grad_hidden, s.width, s.nodes * s.width)

    def _back_hops(self, y: Tensor, bases: Sequence[Tensor | None]) -> Tensor:
        for k, base in enumerate(bases):
            out = self.state.back_turns[k % 2]
            self.steps.hop(self.shared.transpose, y, out, base)
            y = out
        return y


def _steps(device: torch.device) -> ModuleType:
    if device.type == "cuda":
        from unspool.study.fast import cuda

        return cuda
    from unspool.study.fast import plain

    return plain


def _stacked(members: Sequence[Member], plan: Blueprint, s: State, splits: Sequence[int]) -> dict[str, Tensor]:
    """The fresh state of some trials, side by side."""
    rows: list[dict[str, Tensor]] = [_fresh(m, plan, s) for m in members]
    made = {name: torch.stack([r[name] for r in rows], dim=1 if rows[0][name].ndim == 1 and name in _SITES else 0) for name in rows[0]}
    return {**made, "which": torch.tensor(splits, dtype=torch.int32)}


_SITES = ("key", "threshold", "scale")


def _fresh(member: Member, plan: Blueprint, s: State) -> dict[str, Tensor]:
    model, how = member.model, member.trial.plan
    named = dict(model.named_parameters())
    decays = _decays(member)
    small = torch.zeros(s.layout.size, dtype=s.small.dtype)
    for role, at in s.layout.places.items():
        value = named[_name(plan, role)].detach().flatten()
        small[at : at + value.numel()] = value
    coefficients = torch.zeros(s.hops, s.channels, s.channels, dtype=s.small.dtype)
    depth = int(getattr(model, "settings", {}).get("depth", 0)) if plan.middle is Middle.SERIES else plan.depth
    if plan.middle is Middle.SERIES and plan.mixer is Mixer.FIXED:
        hops = fixed_hops(model)
        depth = hops.numel() - 1
        coefficients[: hops.numel(), range(s.classes), range(s.classes)] = hops[:, None].to(coefficients)
    noise = [_noise(model, site) for site in plan.sites]
    return {
        "weight": named[plan.first].detach(), "small": small, "decay": torch.tensor(decays[plan.first], dtype=torch.float64),
        "small_decay": torch.tensor([decays[_name(plan, r)] for r in s.layout.places] if s.layout.places else [0.0], dtype=torch.float64),
        "rate": torch.tensor(how.rate, dtype=torch.float64), "depth": torch.tensor(depth), "coefficients": coefficients,
        "key": torch.tensor([n[0] for n in noise], dtype=torch.int32), "threshold": torch.tensor([n[1] for n in noise], dtype=torch.int32),
        "scale": torch.tensor([n[2] for n in noise], dtype=torch.float64),
    }  # fmt: skip


def _name(plan: Blueprint, role: str) -> str:
    name = plan.part(role)
    assert name is not None
    return name


def _noise(model: Any, site: Any) -> tuple[int, int, float]:
    """Key, threshold and scale of a dropout site; one that keeps everything where there is none."""
    module = dropout_at(model, site)
    if module is None:
        return 0, -(2**15), 1.0
    return int(module.key), *limits(module.rate)


def _decays(member: Member) -> Mapping[str, float]:
    """The decay of every parameter by its name."""
    names = {id(p): name for name, p in member.model.named_parameters()}
    found = dict.fromkeys(names.values(), 0.0)
    for group in member.trial.plan.groups(member.model):
        for parameter in group["params"]:
            found[names[id(parameter)]] = float(group["weight_decay"])
    return found
