"""How much classes count in training: given by name, or balanced against their numbers of training nodes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any

import torch
from torch import Tensor

from unspool.errors import UNSHOWN, InputError


class Balance(Enum):
    """``BALANCED``: a class counts n / (classes · its training nodes), so that all classes weigh the same together."""

    BALANCED = "balanced"


#: A rule, or one weight for each class in their order.
ClassWeight = Balance | tuple[float, ...]


def read_class_weight(given: Any, classes: Sequence[Any]) -> ClassWeight | None:
    """What somebody says about the weights of classes: nothing, ``"balanced"``, or one weight for each class by name.

    Args:
        given: None, ``"balanced"``, or a mapping.
        classes: their names, in order.

    Example:
        >>> read_class_weight({"yes": 5, "no": 1}, ["no", "yes"])
        (1.0, 5.0)
        >>> read_class_weight({"yes": 5}, ["no", "yes"])
        Traceback (most recent call last):
            ...
        unspool.errors.InputError: class_weight: expected a weight for each class, and 'no' has none; give it 1 ...
    """
    if given is None or isinstance(given, Balance):
        return given
    if given == Balance.BALANCED.value:
        return Balance.BALANCED
    if not isinstance(given, Mapping):
        raise InputError("class_weight", given, "balanced, or a weight for each class")
    found: dict[int, float] = {}
    for name, weight in given.items():
        place = _place(name, classes)
        if place is None:
            raise InputError(
                "class_weight", UNSHOWN, f"weights of {', '.join(map(str, classes))}, and {name!r} is not one of them"
            )
        found[place] = _number(name, weight)
    missing = next((name for place, name in enumerate(classes) if place not in found), None)
    if missing is not None:
        raise InputError(
            "class_weight",
            UNSHOWN,
            f"a weight for each class, and {missing!r} has none",
            "give it 1 to let it count as it is",
        )
    if not any(found.values()):
        raise InputError("class_weight", UNSHOWN, "at least one weight above 0")
    return tuple(found[place] for place in range(len(classes)))


def _place(name: Any, classes: Sequence[Any]) -> int | None:
    """The class that is meant: by itself, or by how it is written, so that 1 finds the class '1'."""
    for called, known in ((name, list(classes)), (str(name), [str(one) for one in classes])):
        if called in known:
            return known.index(called)
    return None


def _number(name: Any, weight: Any) -> float:
    try:
        value = math.nan if isinstance(weight, bool) else float(weight)
    except (TypeError, ValueError):
        value = math.nan
    if not (math.isfinite(value) and value >= 0):
        raise InputError(
            "class_weight", UNSHOWN, f"finite numbers of at least 0, and the weight of {name!r} is {weight!r}"
        )
    return value


def weights_of(rule: ClassWeight, target: Tensor, train: Tensor) -> Tensor:
    """The weight of every node by its class, or of every entry of several labels; counted on the training nodes alone, in float64.

    Classes that no training node has weigh 1 under ``BALANCED``, and so do nodes without a class.

    Args:
        rule: how classes count.
        target: a class number per node, or 0, 1 and NaN of shape (nodes, labels); on the CPU.
        train: ids of the training nodes, there too.

    Example:
        >>> import torch
        >>> weights_of(Balance.BALANCED, torch.tensor([0, 0, 0, 1]), torch.arange(4))
        tensor([0.6667, 0.6667, 0.6667, 2.0000], dtype=torch.float64)
    """
    codes = target if target.ndim == 2 else target[:, None]
    codes = torch.where(torch.isfinite(codes), codes, -1).long()
    columns = [_of_column(rule, codes[:, place], train) for place in range(codes.shape[1])]
    every = torch.stack(columns, 1)
    return every if target.ndim == 2 else every[:, 0]


def _of_column(rule: ClassWeight, codes: Tensor, train: Tensor) -> Tensor:
    """Float64; codes below 0 are unknown."""
    if isinstance(rule, tuple):
        each = torch.tensor(rule, dtype=torch.float64)
    else:
        known = codes[train]
        known = known[known >= 0]
        counts = known.bincount(minlength=max(int(codes.max()) + 1, 1)).double()
        there = counts > 0
        each = torch.where(there, known.numel() / (there.sum() * counts.clamp(min=1)), 1.0)
    return torch.where(codes >= 0, each[codes.clamp(min=0)], 1.0)
