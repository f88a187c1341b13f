"""JKNet: jumping knowledge networks (Xu et al., 2018)."""

from __future__ import annotations

from enum import Enum
from typing import Any

import torch
from torch import Tensor, nn

from unspool.errors import IncompatibleError
from unspool.models import usual_settings as usual
from unspool.models.channels import Channels
from unspool.models.convolutions import Convolutions, convolution_objective
from unspool.models.model import Model
from unspool.nn import Dropout, Linear, Perceptron, Start
from unspool.nn.linear import begin
from unspool.objective import Fidelity, Objective, Relaxed, Smoothness
from unspool.settings import setting
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


    Example:
        >>> import torch, unspool as us
        >>> model = us.models.JKNet(5, 3, depth=2)
        >>> print(model.objective)
        ‖H − X‖²_Tₖ  +  ‖B H‖²_(I − Tₖ)
        >>> model(torch.eye(5), us.graph.ring(5)).shape
        torch.Size([5, 3])
    """

    title = "jumping knowledge networks (Xu et al., 2018)"

    hidden: int = usual.width("width of the encoder, and of what travels on hidden channels")
    depth: int = usual.depth(5)
    dropout: float = usual.dropout(
        meaning="rate on the input, before the hops and before the last layer; on class channels, on the inputs of the encoder's layers"
    )
    combine: Combine = setting(Combine.SUM, "the paper's sum, or concatenation or maximum over ReLU layers")
    channels: Channels = setting(
        Channels.HIDDEN,
        "which features travel in the sum: hidden ones, or predictions as in UGDGNN; the two others have hidden ones",
    )

    def build(self) -> None:
        """Make the parts."""
        if self.combine is not Combine.SUM and self.channels is Channels.CLASSES:
            raise IncompatibleError(
                f"channels=Channels.CLASSES: Combine.{self.combine.name} joins hidden layers; take Channels.HIDDEN or Combine.SUM"
            )
        if self.channels is Channels.CLASSES:
            self.p_pre = Perceptron([self.in_features, self.hidden, self.out_features], self.dropout)
            self.propagation = _started(self.out_features, self.depth)
            return
        joined = self.hidden
        if self.combine is Combine.SUM:
            self.p_pre = Perceptron([self.in_features, self.hidden], self.dropout, open_end=False, after=self.dropout)
            self.propagation = _started(self.hidden, self.depth)
        else:
            self.p_pre = Perceptron([self.in_features, self.hidden], self.dropout, bias=False, start=Start.GLOROT)
            self.propagation = _Jumping([self.hidden] * self.depth, self.dropout, self.combine)
            joined = self.hidden * self.depth if self.combine is Combine.CONCATENATE else self.hidden
        self.p_pos = nn.Sequential(Dropout(self.dropout), Linear(joined, self.out_features))

    @property
    def objective(self) -> Objective:
        """‖H − X‖²_T + ‖BH‖²_(I−T) for the sum; GCN's problem for the two others, whose layers are GCN's."""
        if self.combine is not Combine.SUM:
            return convolution_objective(self.hidden)
        t = Relaxed(self.propagation.hops().shape[-1], per_layer=True, name="T")  # type: ignore[operator]
        return Fidelity(1.0, metric=t) + Smoothness(1.0, metric=1 - t)

    @property
    def derivation(self) -> str:  # type: ignore[override]
        """How the paper reads it."""
        if self.combine is Combine.SUM:
            return (
                "K gradient steps of size 1/2, where ΣW = I; otherwise ΣW joins the decoder (Proposition 5, erratum 2)"
            )
        return "proximal gradient steps as in GCN; the paper derives only the linear sum, so joining them belongs to the decoder"


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
