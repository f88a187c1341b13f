"""Two networks that differ in one thing: whether far-off rows count by their length or by its square.

Both learn the weight λ of the fidelity in every layer, on the same perceptron with the same graph term; AirGNN and APPNP differ in more
than that. Their settings are searched for each of them, as for every model, so depth and rates may differ.
"""

from __future__ import annotations

from typing import Any

from torch import nn

from unspool.algorithm import GradientDescent, ProximalGradient
from unspool.models import Model
from unspool.nn import Perceptron
from unspool.objective import Fidelity, Learnable, Objective, RowSparseFidelity, Smoothness
from unspool.unrolling import unroll


class LearntSquares(Model):
    """Gradient steps on (1 − λₖ) ‖BH‖² + λₖ ‖H − X‖², λ learnt in every layer.

    Args:
        in_features, out_features: channels of the input and of the output.
        hidden: width of the perceptron.
        depth: K, the number of steps.
        residual: where λ begins.
        dropout: rate on the inputs of both layers.

    Example:
        >>> print(LearntSquares(5, 3).objective)
        (1 − λₖ) ‖B H‖²  +  λₖ ‖H − X‖²
    """

    reading = "K gradient steps of size 1/2 with untied λ"

    def __init__(
        self,
        in_features: int,
        out_features: int,
        *,
        hidden: int = 64,
        depth: int = 10,
        residual: float = 0.5,
        dropout: float = 0.5,
    ) -> None:
        super().__init__(in_features, out_features, hidden=hidden, depth=depth, residual=residual, dropout=dropout)
        self.p_pre = Perceptron([in_features, hidden, out_features], dropout)
        self.propagation = unroll(self._problem(residual), self._algorithm(), depth)
        self.p_pos = nn.Identity()

    def _problem(self, residual: float) -> Objective:
        weight = Learnable(residual, per_layer=True, within=(0, 1), name="λ")
        return Smoothness(1 - weight) + Fidelity(weight)

    def _algorithm(self) -> Any:
        return GradientDescent(step=0.5)


class LearntRows(LearntSquares):
    """Proximal steps on (1 − λₖ) ‖BH‖² + λₖ ‖H − X‖₂,₁, λ learnt in every layer: the robust twin.

    Example:
        >>> print(LearntRows(5, 3).objective)
        (1 − λₖ) ‖B H‖²  +  λₖ ‖H − X‖₂,₁
    """

    reading = "K proximal gradient steps of size 1/2 with untied λ"

    def _problem(self, residual: float) -> Objective:
        weight = Learnable(residual, per_layer=True, within=(0, 1), name="λ")
        return Smoothness(1 - weight) + RowSparseFidelity(weight)

    def _algorithm(self) -> Any:
        return ProximalGradient(step=0.5)
