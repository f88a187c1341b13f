"""Pairs of networks that differ in one thing: the norm of the fidelity, or the constraint H ≥ 0."""

from __future__ import annotations

from torch import nn

from unspool.algorithm import Algorithm, GradientDescent, ProximalGradient
from unspool.models import Model
from unspool.models import usual_settings as usual
from unspool.nn import Dropout, Linear, Perceptron
from unspool.objective import (
    Fidelity,
    Learnable,
    NonNegative,
    Objective,
    Relaxed,
    Ridge,
    RowSparseFidelity,
    Smoothness,
)
from unspool.settings import setting
from unspool.unrolling import unroll


class LearntSquares(Model):
    """Gradient steps on (1 − λₖ) ‖BH‖² + λₖ ‖H − X‖², λ learnt in every layer.

    Rows that are far off count by the square of their distance, and in :class:`LearntRows` by the distance: nothing else differs. AirGNN
    and APPNP differ in more than that. Settings are searched for each of them, as for every model, so depth and learning rate may differ.

    Example:
        >>> print(LearntSquares(5, 3).objective)
        (1 − λₖ) ‖B H‖²  +  λₖ ‖H − X‖²
    """

    derivation = "K gradient steps of size 1/2 with untied λ"

    hidden: int = usual.width()
    depth: int = usual.depth(10, "K, the number of steps")
    residual: float = setting(0.5, "where λ begins", above=0, below=1)
    dropout: float = usual.dropout()

    def build(self) -> None:
        """Make the parts."""
        self.p_pre = Perceptron([self.in_features, self.hidden, self.out_features], self.dropout)
        self.propagation = unroll(self._problem(), self._algorithm(), self.depth)

    def _problem(self) -> Objective:
        weight = self._weight()
        return Smoothness(1 - weight) + Fidelity(weight)

    def _weight(self) -> Learnable:
        return Learnable(self.residual, per_layer=True, within=(0, 1), name="λ")

    def _algorithm(self) -> Algorithm:
        return GradientDescent(step=0.5)


class LearntRows(LearntSquares):
    """Proximal steps on (1 − λₖ) ‖BH‖² + λₖ ‖H − X‖₂,₁, λ learnt in every layer.

    Example:
        >>> print(LearntRows(5, 3).objective)
        (1 − λₖ) ‖B H‖²  +  λₖ ‖H − X‖₂,₁
    """

    derivation = "K proximal gradient steps of size 1/2 with untied λ"

    def _problem(self) -> Objective:
        weight = self._weight()
        return Smoothness(1 - weight) + RowSparseFidelity(weight)

    def _algorithm(self) -> Algorithm:
        return ProximalGradient(step=0.5)


class WithoutNonNegative(Model):
    """Gradient steps H ← ((1 − a) A H + a X) W on a‖H−X‖²_W + (1−a)‖BH‖²_W + ‖H‖²_(I−W), W free in every layer.

    a = 0 is GCN's problem at equal width, a > 0 GCNII's. GCN and GCNII add the indicator of H ≥ 0, whose proximity operator is ReLU;
    without it the network is linear between its encoder and its decoder. Every W begins as the identity, so that with and without the
    constraint the network begins as the same function: X ≥ 0 and A ≥ 0 leave the constraint nothing to do.

    Example:
        >>> print(WithoutNonNegative(5, 3, hidden=4, depth=2, teleport=0.1).objective)
        0.1 ‖H − X‖²_Wₖ  +  0.9 ‖B H‖²_Wₖ  +  ‖H‖²_(I − Wₖ)
    """

    derivation = "K gradient steps of size 1/2, a relaxation as W is not symmetric"

    hidden: int = usual.width("width of the layers")
    depth: int = usual.depth(8, "K, the number of steps")
    teleport: float = usual.teleport("a, how strongly each layer returns to X", 0.0)
    dropout: float = usual.dropout(meaning="rate before every layer")

    def build(self) -> None:
        """Make the parts."""
        self.p_pre = Perceptron([self.in_features, self.hidden], self.dropout, open_end=False)
        between = Dropout(self.dropout)
        self.propagation = unroll(self._problem(), self._algorithm(), self.depth, between=between)
        self.p_pos = nn.Sequential(Dropout(self.dropout), Linear(self.hidden, self.out_features))

    def _problem(self) -> Objective:
        w = Relaxed(self.hidden, per_layer=True, name="W")
        smooth = Smoothness(1 - self.teleport, metric=w) + Ridge(1.0, metric=1 - w)
        return Fidelity(self.teleport, metric=w) + smooth if self.teleport else smooth

    def _algorithm(self) -> Algorithm:
        return GradientDescent(step=0.5)


class WithNonNegative(WithoutNonNegative):
    """Proximal steps on the same problem with H ≥ 0: the same layers, each followed by ReLU.

    Example:
        >>> print(WithNonNegative(5, 3, hidden=4, depth=2).objective)
        ‖B H‖²_Wₖ  +  ‖H‖²_(I − Wₖ)  +  ι[H ≥ 0]
    """

    derivation = "K proximal gradient steps of size 1/2, a relaxation as W is not symmetric"

    def _problem(self) -> Objective:
        return super()._problem() + NonNegative()

    def _algorithm(self) -> Algorithm:
        return ProximalGradient(step=0.5)
