"""GPRGNN with its filter before the perceptron: propagation first, so that it can be done once and kept."""

from __future__ import annotations

from torch import nn

from unspool.models import usual_settings as usual
from unspool.models.hop_start import HopStart, hop_start
from unspool.models.model import Model
from unspool.nn import Bias, Dropout, Linear
from unspool.objective import Fidelity, Learnable, Objective, Smoothness
from unspool.settings import setting
from unspool.unrolling import HopNetwork


class GraphFirstGPRGNN(Model):
    r"""A perceptron on features that passed a learnt filter: :math:`\mathrm{MLP}\bigl(\sum_{k=0}^K \gamma_k A^k X\bigr)`.

    Another function than :class:`GPRGNN`, which filters what a perceptron says. The first layer of the perceptron commutes with the graph,
    :math:`\sum_k \gamma_k A^k X\, W_1 = \sum_k \gamma_k A^k (X W_1)`: so on a graph few channels travel, and from stored hops Aᵏ X
    (:func:`unspool.hops.write`) no graph is needed. Both are the same function, masks of dropout included. On the denoising problem
    :math:`\alpha\lVert H-XW_1\rVert^2 + (1-\alpha)\lVert BH\rVert^2` it takes K gradient steps as GPRGNN does on its own (Proposition 6).


    Example:
        >>> import torch, unspool as us
        >>> model = us.models.GraphFirstGPRGNN(5, 3, depth=2)
        >>> print(model.objective)
        αₖ ‖H − X‖²  +  (1 − αₖ) ‖B H‖²
        >>> model(torch.eye(5), us.graph.ring(5)).shape
        torch.Size([5, 3])
    """

    title = "GPRGNN with its filter before the perceptron, made for stored hops"
    derivation = (
        "K gradient steps of size 1/2 with untied α on X W, where Σγ = 1; otherwise times Σγ (Proposition 6, erratum 2)"
    )

    hidden: int = usual.width()
    depth: int = usual.depth(4)
    teleport: float = usual.teleport("α of the start")
    dropout: float = usual.dropout(meaning="rate on the hidden features, after the hops")
    bias: bool = setting(True, "whether the layers have one; it is added after the hops")
    start: HopStart = setting(HopStart.PPR, "how γ begins")
    warm: list[float] | None = setting(None, "γ itself, for HopStart.WARM", of=[float])

    def build(self) -> None:
        """Make the parts."""
        self.p_pre = Linear(self.in_features, self.hidden, bias=False)
        self.propagation = HopNetwork(hop_start(self.start, self.depth, self.teleport, self.warm))
        self.p_pos = hidden_layer_first(self.hidden, self.out_features, self.dropout, self.bias)

    @property
    def objective(self) -> Objective:
        """α‖H − X‖² + (1 − α)‖BH‖² with one α per layer."""
        alpha = Learnable(self.teleport, per_layer=True, name="α")
        return Fidelity(alpha) + Smoothness(1 - alpha)


def hidden_layer_first(width: int, outputs: int, dropout: float, bias: bool) -> nn.Sequential:
    """What stands behind the hops of a network that propagates first: the rest of a perceptron whose first product is before them.

    Example:
        >>> import torch
        >>> hidden_layer_first(8, 3, 0.5, True)(torch.ones(2, 8)).shape
        torch.Size([2, 3])
    """
    begun = [Bias(width)] if bias else []
    return nn.Sequential(*begun, nn.ReLU(), Dropout(dropout), Linear(width, outputs, bias))
