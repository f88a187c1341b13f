"""Two networks that differ in one thing: whether every layer ends with H ≥ 0.

GCN and GCNII unroll proximal steps on a quadratic with the indicator of H ≥ 0, whose proximity operator is ReLU; without it the same
steps are gradient steps, and the network is linear between its encoder and its decoder.
"""

from __future__ import annotations

from typing import Any

from torch import nn

from unspool.algorithm import GradientDescent, ProximalGradient
from unspool.models import Model
from unspool.nn import Dropout, Linear, Perceptron
from unspool.objective import Fidelity, NonNegative, Objective, Relaxed, Ridge, Smoothness
from unspool.unrolling import unroll


class WithoutNonNegative(Model):
    """Gradient steps H ← ((1 − a) A H + a X) W on a‖H−X‖²_W + (1−a)‖BH‖²_W + ‖H‖²_(I−W), W free in every layer.

    a = 0 is GCN's problem at equal width, a > 0 GCNII's. Every W begins as the identity, so that with and without the constraint the
    network begins as the same function: X ≥ 0 and A ≥ 0 leave the constraint nothing to do.

    Args:
        in_features, out_features: channels of the input and of the output.
        hidden: width of the layers.
        depth: K, the number of steps.
        teleport: a.
        dropout: rate before every layer.

    Example:
        >>> print(WithoutNonNegative(5, 3, hidden=4, depth=2, teleport=0.1).objective)
        0.1 ‖H − X‖²_Wₖ  +  0.9 ‖B H‖²_Wₖ  +  ‖H‖²_(I − Wₖ)
    """

    reading = "K gradient steps of size 1/2, a relaxation as W is not symmetric"

    def __init__(
        self,
        in_features: int,
        out_features: int,
        *,
        hidden: int = 64,
        depth: int = 8,
        teleport: float = 0.0,
        dropout: float = 0.5,
    ) -> None:
        super().__init__(in_features, out_features, hidden=hidden, depth=depth, teleport=teleport, dropout=dropout)
        self.p_pre = Perceptron([in_features, hidden], dropout, open_end=False)
        self.propagation = unroll(self._problem(hidden, teleport), self._algorithm(), depth, between=Dropout(dropout))
        self.p_pos = nn.Sequential(Dropout(dropout), Linear(hidden, out_features))

    def _problem(self, hidden: int, teleport: float) -> Objective:
        w = Relaxed(hidden, per_layer=True, name="W")
        smooth = Smoothness(1 - teleport, metric=w) + Ridge(1.0, metric=1 - w)
        return Fidelity(teleport, metric=w) + smooth if teleport else smooth

    def _algorithm(self) -> Any:
        return GradientDescent(step=0.5)


class WithNonNegative(WithoutNonNegative):
    """Proximal steps on the same problem with H ≥ 0: the same layers, each followed by ReLU.

    Example:
        >>> print(WithNonNegative(5, 3, hidden=4, depth=2).objective)
        ‖B H‖²_Wₖ  +  ‖H‖²_(I − Wₖ)  +  ι[H ≥ 0]
    """

    reading = "K proximal gradient steps of size 1/2, a relaxation as W is not symmetric"

    def _problem(self, hidden: int, teleport: float) -> Objective:
        return super()._problem(hidden, teleport) + NonNegative()

    def _algorithm(self) -> Any:
        return ProximalGradient(step=0.5)
