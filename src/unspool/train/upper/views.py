"""R views of one network: the same weights, masks of their own; one stacked pass where it can be stacked, a loop elsewhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call, vmap

from unspool.graph import Graph
from unspool.nn import Dropout
from unspool.train.conduct import Unstackable, said_with
from unspool.train.upper.perturbation import view_key, with_columns
from unspool.train.upper.sum import Upper

#: Modules that keep running means over passes.
_NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)


def perturbed(
    model: nn.Module,
    upper: Upper,
    x: Any,
    graph: Graph,
    keys: Sequence[Tensor],
    view: int | Tensor,
    count: Tensor,
    numbers: Mapping[str, Any],
) -> tuple[Any, Graph]:
    """The data of one view, with the columns of X that the network needs whole (:attr:`unspool.models.Model.kept_features`).

    Args:
        model: whose view it is.
        upper: what is lost.
        x, graph: the data.
        keys: one for each perturbation (:func:`~unspool.train.upper.perturbation_key`).
        view: its number, from 0.
        count: of the masks; the epoch.
        numbers: of the upper level.
    """
    seen = x
    for place, one in enumerate(upper.perturbations):
        rate, key = numbers[f"under.{place}.rate"], view_key(keys[place], view)
        seen, graph = one.features(seen, rate, key, count), one.graph(graph, rate, key, count)
    return with_columns(seen, x, getattr(model, "kept_features", ())), graph


def stacked_views(
    model: nn.Module, held: Mapping[str, Tensor], upper: Upper, x: Any, graph: Graph, keys: Sequence[Tensor],
    count: Tensor, numbers: Mapping[str, Any],
) -> Tensor:  # fmt: skip
    """What a network says in all views, shape (views, nodes, outputs), by one pass under ``vmap``.

    In view 0 every dropout has the mask it would have without views; in view r its key is ``advance(key, r)``. All views together move
    the counters as one pass does, and the running means of batch normalisation to the mean of the views'.

    Args:
        model: the network, or the skeleton of a pack.
        held: parameters and buffers by name that stand in the place of the model's own; those of one trial under a ``vmap`` over trials.
            Empty where the model's own are meant.
        upper, x, graph, keys, count, numbers: as for :func:`perturbed`.

    Example:
        >>> import torch, unspool as us
        >>> from unspool.train.upper import Upper
        >>> model, upper = us.models.GCN(5, 2, hidden=4), Upper.parse("ce + consistency(views=3)")
        >>> stacked_views(model, {}, upper, torch.eye(5), us.graph.ring(5), [], torch.tensor(1), upper.numbers).shape
        torch.Size([3, 5, 2])
    """
    own = {**dict(model.named_buffers()), **held}
    view = torch.arange(upper.views, device=count.device)
    each = {name: view_key(own[name], view) for name in _keys(model)}
    moving = {name: own[name].expand(upper.views, *own[name].shape).clone() for name in _running(model)}

    def one(state: dict[str, Tensor], number: Tensor) -> Tensor:
        seen = perturbed(model, upper, x, graph, keys, number, count, numbers)
        return one_view(model, {**own, **state}, seen)

    outputs = vmap(one)(each | moving, view)
    with torch.no_grad():
        for name, value in moving.items():
            own[name].copy_(value.mean(0))
    return outputs


def one_view(model: nn.Module, held: Mapping[str, Tensor], seen: Any) -> Tensor:
    """What a network says with these parameters and buffers, if it assigns none of them: several views share them.

    Example:
        >>> import torch, unspool as us
        >>> one_view(us.models.SGC(5, 2), {}, (torch.eye(5), us.graph.ring(5))).shape
        torch.Size([5, 2])
    """
    output, moved = said_with(model, dict(held), seen, {})
    if moved:
        raise Unstackable(f"its forward assigns {next(iter(moved))!r}, which the views of an upper level share")
    return output


def looped_views(
    model: nn.Module,
    upper: Upper,
    x: Any,
    graph: Graph,
    keys: Sequence[Tensor],
    count: Tensor,
    numbers: Mapping[str, Any],
) -> Tensor:
    """The same, one view after another: the reference, and the way of networks that cannot be stacked.

    A network that draws from torch's generator draws in every view anew.
    """
    own, drops = _movable(model), _keys(model)
    outputs: list[Tensor] = []
    after: list[dict[str, Tensor]] = []
    # Trap: a number of Python would be copied to the device, which a captured epoch may not do.
    for number in torch.arange(upper.views, device=count.device).unbind():
        state = {name: value.clone() for name, value in own.items()}
        state |= {name: view_key(own[name], number) for name in drops}
        seen = perturbed(model, upper, x, graph, keys, number, count, numbers)
        outputs.append(functional_call(model, state, seen))
        after.append(state)
    with torch.no_grad():
        for name, value in own.items():
            if name in drops:
                continue
            first = after[0][name]
            value.copy_(torch.stack([a[name] for a in after]).mean(0) if value.is_floating_point() else first)
    return torch.stack(outputs)


class Views:
    """The views of one network in training: stacked if they can be, which the first pass finds out.

    Args:
        model: the network.
        upper: prepared for the task.
        task: its data.
        keys: of the perturbations.
        numbers: of the upper level, tensors on the device of the task.
    """

    def __init__(
        self, model: nn.Module, upper: Upper, task: Any, keys: Sequence[Tensor], numbers: Mapping[str, Tensor]
    ) -> None:
        self.model, self.upper, self.task, self.keys, self.numbers = model, upper, task, keys, numbers
        self.stacked: bool | None = None

    def __call__(self, count: Tensor) -> Tensor:
        """What the network says, shape (views, nodes, outputs)."""
        how = (self.upper, self.task.x, self.task.graph, self.keys, count, self.numbers)
        if self.upper.views == 1:
            return self.model(*perturbed(self.model, *how[:4], 0, count, self.numbers))[None]
        if self.stacked is False:
            return looped_views(self.model, *how)
        if self.stacked:
            return stacked_views(self.model, {}, *how)
        own = _movable(self.model)
        before = {name: value.clone() for name, value in own.items()}
        try:
            outputs = stacked_views(self.model, {}, *how)
        except torch.OutOfMemoryError:
            raise
        except (RuntimeError, ValueError, TypeError, NotImplementedError):
            # A part that looks at values, or draws: if it is wrong for another reason, the loop will say so.
            with torch.no_grad():
                for name, value in own.items():
                    value.copy_(before[name])
            self.stacked = False
            return looped_views(self.model, *how)
        self.stacked = True
        return outputs


def _keys(model: nn.Module) -> list[str]:
    """Names of the keys of all dropout that is awake."""
    return [
        f"{name}.key".lstrip(".") for name, part in model.named_modules() if isinstance(part, Dropout) and not part.idle
    ]


def _running(model: nn.Module) -> list[str]:
    """Names of the running means of batch normalisation."""
    return [
        f"{name}.{what}".lstrip(".")
        for name, part in model.named_modules()
        if isinstance(part, _NORMS) and part.training and part.running_mean is not None
        for what in ("running_mean", "running_var")
    ]


def _movable(model: nn.Module) -> dict[str, Tensor]:
    """All buffers that a pass may change."""
    # Trap: dropout knows by the identity of its rate that it does nothing.
    rates = {f"{name}.rate".lstrip(".") for name, part in model.named_modules() if isinstance(part, Dropout)}
    return {name: value for name, value in model.named_buffers() if name not in rates}
