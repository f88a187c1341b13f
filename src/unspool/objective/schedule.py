"""Numbers that follow a rule along the layers."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from unspool.objective.coefficient import Leaf


class Schedule(Leaf):
    r"""A number that changes from layer to layer by a rule, and does not train.

    Args:
        rule: the value at layer k = 1, 2, ..., as a function.
        name: how it is printed and what its (frozen) parameter is called.

    Example:
        >>> import math, unspool as us
        >>> theta = us.Schedule(lambda k: math.log(0.5 / k + 1), name="θ")  # GCNII
        >>> theta.start_layers(3).numpy().round(3)
        array([0.405, 0.223, 0.154])
    """

    def __init__(self, rule: Callable[[int], float], name: str | None = None) -> None:
        super().__init__(name, per_layer=True)
        self.rule = rule

    def start(self) -> Tensor:
        """The value of the first layer."""
        return torch.tensor(float(self.rule(1)), dtype=torch.float64)

    def start_layers(self, depth: int) -> Tensor:
        """The values of all layers."""
        return torch.tensor([float(self.rule(k)) for k in range(1, depth + 1)], dtype=torch.float64)

    def value_of(self, raw: Tensor) -> Tensor:
        """The value itself."""
        return raw

    @property
    def learnt(self) -> bool:
        """No."""
        return False

    @property
    def number(self) -> bool:
        """Yes."""
        return True

    def __repr__(self) -> str:
        return f"Schedule({self})"
