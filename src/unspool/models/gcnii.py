"""GCNII: graph convolutions with initial residual and identity mapping (Chen et al., 2020)."""

from __future__ import annotations

import functools
import math
import numbers
from enum import Enum

from torch import nn

from unspool.algorithm import ProximalGradient
from unspool.models.model import Model, check_share
from unspool.nn import Dropout, Linear, Perceptron
from unspool.nn.linear import Start, begin
from unspool.objective import Fidelity, Fixed, NonNegative, Relaxed, Ridge, Schedule, Smoothness
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


class GCNII(Model):
    r"""Deep convolutions that remember: :math:`H \leftarrow \mathrm{ReLU}\bigl(((1-a) A H + a X)(\theta W + (1-\theta) I)\bigr)`.

    Proposition 9: with :math:`T = \theta W + (1-\theta) I`, proximal gradient steps of size 1/2 on
    :math:`a\lVert H-X\rVert_T^2 + (1-a)\lVert BH\rVert_T^2 + \lVert H\rVert_{I-T}^2 + I(H\ge0)`; a relaxation, as W is not symmetric.
    The paper's ζ is 1 − a.

    Args:
        in_features, out_features: channels of the input and of the output.
        hidden: width of the layers.
        depth: K, the number of layers.
        teleport: a, how strongly each layer returns to X.
        identity: whether θ falls with depth or stays.
        strength: λ of θ_l = log(λ/l + 1), or ξ itself.
        dropout: rate before every layer, the first and the last linear one included.

    Example:
        >>> import torch, unspool as us
        >>> model = us.models.GCNII(5, 3, hidden=16, depth=4)
        >>> print(model.objective)
        0.1 ‖H − X‖²_(θₖ Wₖ + (1 − θₖ) I)  +  0.9 ‖B H‖²_(θₖ Wₖ + (1 − θₖ) I)  +  ‖H‖²_(I − (θₖ Wₖ + (1 − θₖ) I))  +  ι[H ≥ 0]
        >>> model(torch.eye(5), us.graph.ring(5)).shape
        torch.Size([5, 3])
    """

    derivation = "K proximal gradient steps of size 1/2, a relaxation as W is not symmetric (Proposition 9, erratum 4)"

    def __init__(
        self,
        in_features: int,
        out_features: int,
        *,
        hidden: int = 64,
        depth: int = 16,
        teleport: float = 0.1,
        identity: IdentityMapping = IdentityMapping.LOGARITHMIC,
        strength: float = 0.5,
        dropout: float = 0.5,
    ) -> None:
        super().__init__(
            in_features, out_features, hidden=hidden, depth=depth, teleport=teleport, identity=identity,
            strength=strength, dropout=dropout,
        )  # fmt: skip
        check_share("teleport", teleport)
        if not (isinstance(strength, numbers.Real) and 0 <= strength < math.inf):
            raise ValueError(f"strength={strength}: expected a finite number of at least 0")
        w = Relaxed(hidden, per_layer=True, name="W")
        if identity is IdentityMapping.LOGARITHMIC:
            lean = Schedule(functools.partial(logarithmic, strength), name="θ")
        else:
            lean = Fixed(strength)
        t = lean * w + (1 - lean)
        objective = (
            Fidelity(teleport, metric=t) + Smoothness(1 - teleport, metric=t) + Ridge(1.0, metric=1 - t) + NonNegative()
        )
        self.p_pre = Perceptron([in_features, hidden], dropout, open_end=False)
        self.propagation = unroll(objective, ProximalGradient(step=0.5), depth, between=Dropout(dropout))
        begin(self.propagation.coefficients["W"], None, Start.UNIFORM)
        self.p_pos = nn.Sequential(Dropout(dropout), Linear(hidden, out_features))
