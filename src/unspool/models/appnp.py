"""APPNP: approximate personalised propagation of neural predictions (Gasteiger et al., 2019)."""

from __future__ import annotations

from torch import nn

from unspool.algorithm import GradientDescent
from unspool.models.masks import Masks
from unspool.models.model import Model, check_share
from unspool.nn import Perceptron
from unspool.objective import Fidelity, Smoothness
from unspool.unrolling import unroll


class APPNP(Model):
    r"""A perceptron whose predictions are smoothed: :math:`H^{(k)} = (1-\gamma) A H^{(k-1)} + \gamma X`.

    Proposition 4: K gradient steps of size 1/2 on :math:`\gamma\lVert H-X\rVert^2 + (1-\gamma)\lVert BH\rVert^2`, started at X.

    Args:
        in_features, out_features: channels of the input and of the output.
        hidden: width of the perceptron.
        depth: K, the number of steps.
        teleport: γ, how strongly a node keeps its own prediction.
        dropout: rate on the inputs of both layers.
        propagation_dropout: rate on the perceptron's output, before the steps.
        masks: whether one mask of it serves all steps, or each hop of their sum γ Σ (1−γ)ᵏ Aᵏ X + (1−γ)ᴷ Aᴷ X has a fresh one.
        bias: whether the layers have one (the authors' have none).

    Example:
        >>> import torch, unspool as us
        >>> model = us.models.APPNP(5, 3, teleport=0.2)
        >>> print(model.objective)
        0.2 ‖H − X‖²  +  0.8 ‖B H‖²
        >>> model(torch.eye(5), us.graph.ring(5)).shape
        torch.Size([5, 3])
    """

    derivation = "K gradient steps of size 1/2 from H = X (Proposition 4)"
    gained = ("propagation_dropout", "masks")

    def __init__(
        self,
        in_features: int,
        out_features: int,
        *,
        hidden: int = 64,
        depth: int = 10,
        teleport: float = 0.1,
        dropout: float = 0.5,
        propagation_dropout: float = 0.0,
        masks: Masks = Masks.ONCE,
        bias: bool = False,
    ) -> None:
        super().__init__(
            in_features, out_features, hidden=hidden, depth=depth, teleport=teleport, dropout=dropout,
            propagation_dropout=propagation_dropout, masks=masks, bias=bias,
        )  # fmt: skip
        check_share("teleport", teleport)
        self.p_pre = Perceptron(
            [in_features, hidden, out_features], dropout, bias, after=propagation_dropout, held=masks is Masks.EACH_HOP
        )
        self.propagation = unroll(Fidelity(teleport) + Smoothness(1 - teleport), GradientDescent(step=0.5), depth)
        self.p_pos = nn.Identity()
