"""Truly bilevel training: some parameters learn on validation nodes, by exact gradients through what the others learn on training nodes."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

import torch
from torch import Tensor, nn

from unspool.errors import IncompatibleError, InputError
from unspool.settings.kinds import Real, Whole
from unspool.train.config import TrainConfig
from unspool.train.task import Task
from unspool.train.upper.seen import targets_held
from unspool.train.upper.term import accepted

#: What fits the numbers of a :class:`Hyper`.
_NUMBERS = {"lr": Real(0, None, True), "steps": Whole(1), "damping": Real(0)}
#: A scalar of parameters by name.
Scalar = Callable[[Mapping[str, Tensor]], Tensor]


class Order(Enum):
    """How the gradient on validation nodes sees that the weights answer.

    ``ONE_STEP``: through one gradient step of the weights on the training loss. ``IMPLICIT``: through the weights' own minimum, by the implicit
    function theorem; exact where they have reached it.
    """

    ONE_STEP = "one_step"
    IMPLICIT = "implicit"


@dataclass(frozen=True)
class Hyper:
    r"""Learn a group of parameters θ on validation nodes, the other weights w on training nodes.

    .. math:: \min_\theta\; U_{valid}\bigl(w^*(\theta), \theta\bigr) \quad\text{with}\quad w^*(\theta) \approx \arg\min_w U_{train}(w, \theta)

    Half of the validation nodes teach θ, and the other half choose the epoch, so that no node serves twice.

    Args:
        group: of ``model.parameter_groups()``: ``"hops"`` are hop coefficients, weights of terms and step sizes.
        lr: its own learning rate.
        order: see :class:`Order`.
        steps: of the linear solver, for ``IMPLICIT``.
        damping: added to the curvature there, which need not be positive in a network.

    Example:
        >>> import unspool as us
        >>> from unspool import datasets, train
        >>> task = train.Task.of(datasets.contextual_sbm(nodes=60, classes=2, seed=0))
        >>> model = us.models.GPRGNN(16, 2, hidden=8, depth=2)
        >>> train.fit(model, task, train.TrainConfig(epochs=3), hyper=Hyper("hops", lr=0.05)).best.epoch in (1, 2, 3)
        True
    """

    group: str = "hops"
    lr: float = 0.01
    order: Order = Order.ONE_STEP
    steps: int = 10
    damping: float = 1e-3

    def __post_init__(self) -> None:
        if not isinstance(self.order, Order):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InputError("order", self.order, "Order.ONE_STEP or Order.IMPLICIT")
        for name, kind in _NUMBERS.items():
            object.__setattr__(self, name, accepted(self, name, kind))

    def names(self, model: nn.Module) -> list[str]:
        """The parameters that learn on validation nodes, or one sentence."""
        groups: Any = getattr(model, "parameter_groups", dict)()
        mine = {id(one) for one in groups.get(self.group, ())}
        found = [name for name, one in model.named_parameters() if id(one) in mine]
        rest = [name for name, one in model.named_parameters() if one.requires_grad and id(one) not in mine]
        if not found or not rest:
            there = ", ".join(groups) or "none"
            raise InputError("group", self.group, f"one of several groups of {type(model).__name__}, which has {there}")
        return found

    def groups(self, model: nn.Module, config: TrainConfig) -> list[dict[str, Any]]:
        """Groups of parameters for the optimiser: those that learn on validation nodes have a rate of their own."""
        names = self.names(model)
        mine = {id(one) for name, one in model.named_parameters() if name in names}
        found: list[dict[str, Any]] = []
        for group in config.parameter_groups(model):
            for own in (False, True):
                held = [one for one in group["params"] if (id(one) in mine) is own]
                if held:
                    found.append({**group, "params": held, **({"lr": self.lr} if own else {})})
        return found

    def parts(self, task: Task) -> tuple[Tensor, Task]:
        """The validation nodes that teach θ, and the task whose validation nodes are the others; every second one of each class."""
        if task.valid.numel() < 2:
            raise IncompatibleError(
                "hyper needs two validation nodes or more: some teach, and the others choose the epoch"
            )
        labels = task.target.index_select(0, task.valid)
        order = labels.argsort(stable=True) if labels.ndim == 1 else torch.arange(labels.shape[0], device=labels.device)
        ids = task.valid.index_select(0, order)
        return ids[::2], replace(task, valid=ids[1::2])


def hypergradient(train: Scalar, valid: Scalar, weights: Mapping[str, Tensor], outer: Mapping[str, Tensor], how: Hyper, step: float) -> tuple[Tensor, list[Tensor], list[Tensor]]:  # fmt: skip
    """The training loss, its gradient for the weights, and that of the validation loss for the outer parameters.

    Args:
        train, valid: losses as functions of all parameters by name.
        weights, outer: w and θ.
        how: the order.
        step: of the weights, for ``ONE_STEP``.

    Example:
        >>> w, t = torch.tensor([1.0], requires_grad=True), torch.tensor([2.0], requires_grad=True)
        >>> inner = lambda p: (p["w"] - p["t"]).square().sum() / 2  # w* = t
        >>> outer = lambda p: p["w"].square().sum() / 2
        >>> hypergradient(inner, outer, {"w": w}, {"t": t}, Hyper(order=Order.IMPLICIT, damping=0.0), 0.1)[2]
        [tensor([1.])]
    """
    w, theta = list(weights.values()), list(outer.values())
    with targets_held():
        loss = train({**weights, **outer})
        slopes = torch.autograd.grad(loss, w, create_graph=True)
    if how.order is Order.ONE_STEP:
        moved = {name: one - step * slope for (name, one), slope in zip(weights.items(), slopes, strict=True)}
        found = torch.autograd.grad(valid({**moved, **outer}), theta, allow_unused=True, materialize_grads=True)
        return loss, [one.detach() for one in slopes], list(found)
    every = torch.autograd.grad(valid({**weights, **outer}), [*w, *theta], allow_unused=True, materialize_grads=True)
    right, direct = every[: len(w)], every[len(w) :]

    def bent(v: Tensor) -> Tensor:
        product = torch.autograd.grad(
            slopes, w, _like(v, w), retain_graph=True, allow_unused=True, materialize_grads=True
        )
        return _flat(product) + how.damping * v

    answer = _like(_solved(bent, _flat(right), how.steps), w)
    mixed = torch.autograd.grad(slopes, theta, answer, retain_graph=True, allow_unused=True, materialize_grads=True)
    return loss, [one.detach() for one in slopes], [a - b for a, b in zip(direct, mixed, strict=True)]


def _flat(parts: Sequence[Tensor]) -> Tensor:
    return torch.cat([one.flatten() for one in parts])


def _like(flat: Tensor, parts: Sequence[Tensor]) -> list[Tensor]:
    return [own.view_as(one) for own, one in zip(flat.split([one.numel() for one in parts]), parts, strict=True)]


def _solved(apply: Callable[[Tensor], Tensor], right: Tensor, steps: int) -> Tensor:
    """J x = b by Arnoldi's method: in the span of b, J b, J² b, ... all that is left is orthogonal to it.

    For a symmetric J these are the iterates of conjugate gradients, and as these it stops where J does not point uphill: in a direction in
    which the weights would not come to rest.
    """
    size = float(torch.linalg.vector_norm(right))
    found = torch.zeros_like(right)
    if not 0 < size < math.inf:
        return found
    basis, shares = [right / size], torch.zeros(steps, steps, dtype=torch.float64)
    for k in range(1, steps + 1):
        image, held = apply(basis[-1]), torch.stack(basis)
        share = held @ image
        left = image - share @ held
        again = held @ left  # rounding of the first time
        left = left - again @ held
        shares[:k, k - 1] = share + again
        small = shares[:k, :k]
        if not bool(small.isfinite().all()) or float(torch.linalg.eigvals(small).real.min()) <= 0:
            break
        wanted = torch.zeros(k, dtype=torch.float64)
        wanted[0] = size
        found = torch.linalg.solve(small, wanted).to(right) @ held
        rest = float(torch.linalg.vector_norm(left))
        if k == steps or rest <= 10 * torch.finfo(right.dtype).eps * float(torch.linalg.vector_norm(image)):
            break
        shares[k, k - 1] = rest
        basis.append(left / rest)
    return found


class HyperLevel:
    """What a training step of a :class:`Hyper` does: gradients of both levels, each where the optimiser looks for them.

    Args:
        hyper: which parameters, and how.
        model, task, config: as in :func:`unspool.train.fit`.
        loss: the training loss of the model as it is.
    """

    def __init__(
        self, hyper: Hyper, model: nn.Module, task: Task, config: TrainConfig, loss: Callable[[], Tensor]
    ) -> None:
        self.hyper, self.model, self.config, self.loss = hyper, model, config, loss
        self.names = hyper.names(model)
        self.teachers, self.task = hyper.parts(task)
        groups = config.parameter_groups(model)
        self.decay = {id(p): float(group["weight_decay"]) for group in groups for p in group["params"]}

    def step(self) -> Tensor:
        """Fill the gradients; gives the training loss."""
        parameters = {name: one for name, one in self.model.named_parameters() if one.requires_grad}
        outer = {name: parameters[name] for name in self.names}
        weights = {name: one for name, one in parameters.items() if name not in outer}
        decays = {name: self.decay.get(id(one), 0.0) for name, one in weights.items()}

        def train(at: Mapping[str, Tensor]) -> Tensor:
            return self.loss() + sum(0.5 * decays[name] * at[name].square().sum() for name in weights)

        loss, slopes, found = hypergradient(train, self._valid, weights, outer, self.hyper, self.config.lr)
        for (name, one), slope in zip(weights.items(), slopes, strict=True):
            one.grad = slope - decays[name] * one.detach()  # the optimiser adds the decay itself
        for one, slope in zip(outer.values(), found, strict=True):
            one.grad = slope
        return loss.detach() - sum(0.5 * decays[name] * one.detach().square().sum() for name, one in weights.items())

    def _valid(self, at: Mapping[str, Tensor]) -> Tensor:
        """The loss of the nodes that teach, without masks."""
        self.model.eval()
        output = torch.func.functional_call(self.model, dict(at), (self.task.x, self.task.graph))
        self.model.train()
        rows, wanted = self.task.loss.read(output, self.teachers), self.task.target.index_select(0, self.teachers)
        return self.task.loss_of(rows, wanted, self.teachers)
