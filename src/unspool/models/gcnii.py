"""GCNII: graph convolutions with initial residual and identity mapping (Chen et al., 2020)."""

from __future__ import annotations

import functools
import math
from enum import Enum

from torch import nn

from unspool.algorithm import ProximalGradient
from unspool.models import usual_settings as usual
from unspool.models.model import Model
from unspool.nn import Dropout, Linear, Perceptron, Start
from unspool.nn.linear import begin
from unspool.objective import Coefficient, Fidelity, Fixed, NonNegative, Objective, Relaxed, Ridge, Schedule, Smoothness
from unspool.settings import setting, uniform
from unspool.unrolling import unroll


class IdentityMapping(Enum):
    """How strongly GCNII's layers lean on W rather than on the identity.

    ``LOGARITHMIC``: θ_l = log(λ/l + 1), as its authors do. ``CONSTANT``: the paper's ξ, the same in all layers.
    """

    LOGARITHMIC = "logarithmic"
    CONSTANT = "constant"


def logarithmic(strength: float, layer: int) -> float:
    """θ_l = log(λ/l + 1).

    Example:
        >>> round(logarithmic(0.5, 1), 4)
        0.4055
    """
    return math.log(strength / layer + 1)


def gcnii_objective(width: int, teleport: float, lean: Coefficient) -> Objective:
    """a‖H − X‖²_T + (1 − a)‖BH‖²_T + ‖H‖²_(I−T) + ι[H ≥ 0] with T = θ W + (1 − θ) I.

    Example:
        >>> len(gcnii_objective(3, 0.1, Fixed(0.5)).terms)
        4
    """
    w = Relaxed(width, per_layer=True, name="W")
    t = lean * w + (1 - lean)
    smooth = Fidelity(teleport, metric=t) + Smoothness(1 - teleport, metric=t) + Ridge(1.0, metric=1 - t)
    return smooth + NonNegative()


class GCNII(Model):
    r"""Deep convolutions that remember: :math:`H \leftarrow \mathrm{ReLU}\bigl(((1-a) A H + a X)(\theta W + (1-\theta) I)\bigr)`.

    Proposition 9: with :math:`T = \theta W + (1-\theta) I`, proximal gradient steps of size 1/2 on
    :math:`a\lVert H-X\rVert_T^2 + (1-a)\lVert BH\rVert_T^2 + \lVert H\rVert_{I-T}^2 + I(H\ge0)`; a relaxation, as W is not symmetric.
    The paper's ζ is 1 − a.


    Example:
        >>> import torch, unspool as us
        >>> model = us.models.GCNII(5, 3, hidden=16, depth=4)
        >>> print(model.objective)
        0.1 ‖H − X‖²_(θₖ Wₖ + (1 − θₖ) I)  +  0.9 ‖B H‖²_(θₖ Wₖ + (1 − θₖ) I)  +  ‖H‖²_(I − (θₖ Wₖ + (1 − θₖ) I))  +  ι[H ≥ 0]
        >>> model(torch.eye(5), us.graph.ring(5)).shape
        torch.Size([5, 3])
    """

    title = "graph convolutions with initial residual and identity mapping (Chen et al., 2020)"
    derivation = "K proximal gradient steps of size 1/2, a relaxation as W is not symmetric (Proposition 9, erratum 4)"

    hidden: int = usual.width("width of the layers")
    depth: int = usual.depth(16, "K, the number of layers")
    teleport: float = usual.teleport("a, how strongly each layer returns to X")
    identity: IdentityMapping = setting(IdentityMapping.LOGARITHMIC, "whether θ falls with depth or stays")
    strength: float = setting(0.5, "λ of θ_l = log(λ/l + 1), or ξ itself", at_least=0, search=uniform(0.1, 1.5))
    dropout: float = usual.dropout(meaning="rate before every layer, the first and the last linear one included")

    def build(self) -> None:
        """Make the parts."""
        if self.identity is IdentityMapping.LOGARITHMIC:
            lean = Schedule(functools.partial(logarithmic, self.strength), name="θ")
        else:
            lean = Fixed(self.strength)
        objective = gcnii_objective(self.hidden, self.teleport, lean)
        self.p_pre = Perceptron([self.in_features, self.hidden], self.dropout, open_end=False)
        self.propagation = unroll(objective, ProximalGradient(step=0.5), self.depth, between=Dropout(self.dropout))
        begin(self.propagation.coefficients["W"], None, Start.UNIFORM)
        self.p_pos = nn.Sequential(Dropout(self.dropout), Linear(self.hidden, self.out_features))
