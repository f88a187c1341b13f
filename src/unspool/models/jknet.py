"""JKNet: jumping knowledge networks (Xu et al., 2018)."""

from __future__ import annotations

from enum import Enum
from typing import Any

import torch
from torch import Tensor, nn

from unspool.models.channels import Channels
from unspool.models.convolutions import Convolutions, convolution_objective
from unspool.models.model import Model
from unspool.nn import Dropout, Linear, Perceptron
from unspool.nn.linear import Start, begin
from unspool.objective import Fidelity, Objective, Relaxed, Smoothness
from unspool.unrolling import HopNetwork


class Combine(Enum):
    """How a JKNet joins its layers.

    ``SUM``: the paper's linear sum Σ Aᵏ X W⁽ᵏ⁾, k = 0 ... K. ``CONCATENATE`` and ``MAX``: the usual ones, over K layers
    ReLU(A H W + b).
    """

    SUM = "sum"
    CONCATENATE = "concatenate"
    MAX = "max"


class JKNet(Model):
    r"""All hops at once, each with its own weights: :math:`\sum_{k=0}^K A^k X W^{(k)}`.

    Proposition 5: K gradient steps of size 1/2 on :math:`\lVert H-X\rVert_T^2 + \lVert BH\rVert_{I-T}^2` with a free T per layer,
    where ΣW = I and the partial sums leave I − ΣW invertible; other square W with invertible sum S are, nearly always, gradient layers
    followed by p_pos = S (docs/errata.md, 2). The same functions as UGDGNN in another parametrisation.

    Args:
        in_features, out_features: channels of the input and of the output.
        hidden: width of the encoder, and of what travels on hidden channels.
        depth: K, the number of hops.
        dropout: rate on the input, before the hops and before the last layer; on class channels, on the inputs of the encoder's layers.
        combine: the paper's sum, or concatenation or maximum over ReLU layers.
        channels: which features travel in the sum: hidden ones, or predictions as in UGDGNN; the two others have hidden ones.

    Example:
        >>> import torch, unspool as us
        >>> model = us.models.JKNet(5, 3, depth=2)
        >>> print(model.objective)
        ‖H − X‖²_Tₖ  +  ‖B H‖²_(I − Tₖ)
        >>> model(torch.eye(5), us.graph.ring(5)).shape
        torch.Size([5, 3])
    """

    gained = ("channels",)

    def __init__(
        self,
        in_features: int,
        out_features: int,
        *,
        hidden: int = 64,
        depth: int = 5,
        dropout: float = 0.5,
        combine: Combine = Combine.SUM,
        channels: Channels = Channels.HIDDEN,
    ) -> None:
        super().__init__(
            in_features, out_features, hidden=hidden, depth=depth, dropout=dropout, combine=combine, channels=channels
        )
        self.combine = combine
        if combine is not Combine.SUM and channels is Channels.CLASSES:
            raise ValueError(
                f"channels=Channels.CLASSES: Combine.{combine.name} joins hidden layers; take Channels.HIDDEN or Combine.SUM"
            )
        if channels is Channels.CLASSES:
            self.p_pre = Perceptron([in_features, hidden, out_features], dropout)
            self.propagation = _started(out_features, depth)
            self.p_pos = nn.Identity()
            return
        if combine is Combine.SUM:
            self.p_pre = Perceptron([in_features, hidden], dropout, open_end=False, after=dropout)
            self.propagation = _started(hidden, depth)
            width = hidden
        else:
            self.p_pre = Perceptron([in_features, hidden], dropout, bias=False, start=Start.GLOROT)
            self.propagation = _Jumping([hidden] * depth, dropout, combine)
            width = hidden * depth if combine is Combine.CONCATENATE else hidden
        self.p_pos = nn.Sequential(Dropout(dropout), Linear(width, out_features))

    @property
    def objective(self) -> Objective:
        """‖H − X‖²_T + ‖BH‖²_(I−T) for the sum; GCN's problem for the two others, whose layers are GCN's."""
        if self.combine is not Combine.SUM:
            return convolution_objective(self.settings["hidden"])
        t = Relaxed(self.propagation.hops().shape[-1], per_layer=True, name="T")  # type: ignore[operator]
        return Fidelity(1.0, metric=t) + Smoothness(1.0, metric=1 - t)

    @property
    def derivation(self) -> str:  # type: ignore[override]
        """How the paper reads it."""
        if self.combine is Combine.SUM:
            return "K gradient steps of size 1/2, where ΣW = I; otherwise followed by p_pos = ΣW (Proposition 5, erratum 2)"
        return (
            "proximal gradient steps as in GCN; the paper derives only the linear sum, so joining them belongs to p_pos"
        )


def _started(width: int, depth: int) -> HopNetwork:
    """Σ Aᵏ X W⁽ᵏ⁾ with random matrices whose sum has the size of one."""
    weight = torch.empty(depth + 1, width, width)
    begin(weight, None, Start.GLOROT)
    return HopNetwork(weight / (depth + 1))


class _Jumping(Convolutions):
    """ReLU layers whose outputs are all kept and joined."""

    def __init__(self, widths: list[int], dropout: float, combine: Combine) -> None:
        super().__init__(widths, dropout, bias=True, open_end=False)
        self.combine = combine

    def forward(self, x: Tensor, graph: Any) -> Tensor:
        """The layers, side by side or the largest of each entry."""
        layers = list(self.layers(x, graph))
        if self.combine is Combine.CONCATENATE:
            return torch.cat(layers, dim=-1)
        return torch.stack(layers).amax(0)
