"""Whether the metrics of an objective are as wide as the signal."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from torch import Tensor

from unspool.errors import IncompatibleError
from unspool.objective.coefficient import Coefficient, Combined, Fixed, Leaf, Values
from unspool.objective.computed import Computed

if TYPE_CHECKING:
    from unspool.objective.objective import Objective


def check_width(objective: Objective, x: Tensor, values: Values | None = None) -> None:
    """Refuse a metric on other channels than those of X; of computed ones, those whose values are given.

    Example:
        >>> import torch, unspool as us
        >>> check_width(us.Fidelity(0.5, metric=torch.eye(3)) + us.Smoothness(0.5), torch.zeros(4, 2))
        Traceback (most recent call last):
            ...
        unspool.errors.IncompatibleError: the metric T of Fidelity is for 3 × 3 channels, but the signal has 2; give a number, 2 numbers or a matrix of 2 × 2
    """
    channels = x.shape[-1]
    for term in objective.terms:
        metric = getattr(term, "metric", None)
        if not isinstance(metric, Coefficient) or metric.number:
            continue
        for part, shape in _shapes(metric, {} if values is None else values):
            if any(size != channels for size in shape[-2:]) and shape != (1,) and len(shape) < 3:
                size = " × ".join(map(str, shape))
                raise IncompatibleError(
                    f"the metric {part} of {term.name} is for {size} channels, but the signal has {channels}; "
                    f"give a number, {channels} numbers or a matrix of {channels} × {channels}"
                )


def _shapes(metric: Any, values: Values) -> Iterator[tuple[Coefficient, tuple[int, ...]]]:
    """Every part of a metric with its shape, as far as that is known without computing it."""
    if isinstance(metric, Combined):
        yield from _shapes(metric.left, values)
        yield from _shapes(metric.right, values)
    elif isinstance(metric, Computed):
        if metric in values:
            yield metric, tuple(values[metric].shape)
    elif isinstance(metric, Fixed):
        yield metric, tuple(metric.value.shape) if isinstance(metric.value, Tensor) else ()
    elif isinstance(metric, Leaf):
        size = getattr(metric, "features", None)
        if isinstance(size, int):
            yield metric, (size, size) if metric.matrix else (size,)
        elif isinstance(getattr(metric, "initial", None), Tensor):
            yield metric, tuple(metric.initial.shape)  # type: ignore[attr-defined]


__all__ = ["check_width"]
