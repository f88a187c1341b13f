"""How far a coefficient can move, whatever training does to the leaves in it."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from unspool.objective.coefficient import Coefficient, Combined, Fixed, Leaf
from unspool.objective.computed import Computed

#: The lowest and the highest number that a value can come to.
Ends = tuple[float, float]
_ANYWHERE: Ends = (-math.inf, math.inf)


def ends_of(coefficient: Coefficient, depth: int = 1) -> Ends:
    """Bounds on all entries of a coefficient in a network of so many layers: a free leaf may become any number.

    Leaves are taken for independent of each other, so the bounds of an expression that mentions one twice may be wider than what it reaches.
    One that does not train is what it starts as. A leaf of one's own says what bounds it by an attribute ``within``, as :class:`~unspool.Learnable` has.

    Example:
        >>> import unspool as us
        >>> alpha = us.Learnable(0.3, within=(0, 1), name="α")
        >>> ends_of(1 - alpha), ends_of(2 / alpha), ends_of(us.Learnable(0.3) * alpha)
        ((0.0, 1.0), (2.0, inf), (-inf, inf))
    """
    if isinstance(coefficient, Combined):
        left, right = ends_of(coefficient.left, depth), ends_of(coefficient.right, depth)
        return _joined(coefficient, left, right)
    if isinstance(coefficient, Fixed):
        return _span(torch.as_tensor(coefficient.value, dtype=torch.float64))
    if isinstance(coefficient, Leaf) and not coefficient.learnt and not isinstance(coefficient, Computed):
        raw = coefficient.start_layers(depth)
        return _span(torch.stack([coefficient.value_of(one) for one in (raw if coefficient.per_layer else raw[None])]))
    within = getattr(coefficient, "within", None) if isinstance(coefficient, Leaf) else None
    low, high = (None, None) if within is None else within
    return -math.inf if low is None else float(low), math.inf if high is None else float(high)


def _joined(both: Combined, left: Ends, right: Ends) -> Ends:
    if both.operation == "+":
        return left[0] + right[0], left[1] + right[1]
    if both.operation == "−":
        return left[0] - right[1], left[1] - right[0]
    if both.operation == "·":
        low, high = _times(left, right)
        return (max(low, 0.0), high) if both.left is both.right and not both.matrix else (low, high)
    if right[0] < 0 < right[1]:
        return _ANYWHERE
    return _times(left, _inverse(right))


def _times(left: Ends, right: Ends) -> Ends:
    corners = [0.0 if 0.0 in (a, b) else a * b for a in left for b in right]  # what is infinite is never reached
    return min(corners), max(corners)


def _inverse(ends: Ends) -> Ends:
    """Of 1/c, where c has one sign."""
    low, high = ends
    if low >= 0:
        return 1 / high if high else math.inf, 1 / low if low else math.inf
    return 1 / high if high else -math.inf, 1 / low


def _span(value: Tensor) -> Ends:
    return float(value.min()), float(value.max())


__all__ = ["Ends", "ends_of"]
