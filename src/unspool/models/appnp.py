"""APPNP: approximate personalised propagation of neural predictions (Gasteiger et al., 2019)."""

from __future__ import annotations

from unspool.algorithm import GradientDescent
from unspool.models import usual_settings as usual
from unspool.models.masks import Masks
from unspool.models.model import Model
from unspool.nn import Perceptron
from unspool.objective import Fidelity, Smoothness
from unspool.settings import setting
from unspool.unrolling import unroll


class APPNP(Model):
    r"""A perceptron whose predictions are smoothed: :math:`H^{(k)} = (1-\gamma) A H^{(k-1)} + \gamma X`.

    Proposition 4: K gradient steps of size 1/2 on :math:`\gamma\lVert H-X\rVert^2 + (1-\gamma)\lVert BH\rVert^2`, started at X.


    Example:
        >>> import torch, unspool as us
        >>> model = us.models.APPNP(5, 3, teleport=0.2)
        >>> print(model.objective)
        0.2 ‖H − X‖²  +  0.8 ‖B H‖²
        >>> model(torch.eye(5), us.graph.ring(5)).shape
        torch.Size([5, 3])
    """

    title = "approximate personalised propagation of neural predictions (Gasteiger et al., 2019)"
    derivation = "K gradient steps of size 1/2 from H = X (Proposition 4)"

    hidden: int = usual.width()
    depth: int = usual.depth(10, "K, the number of steps")
    teleport: float = usual.teleport("γ, how strongly a node keeps its own prediction")
    dropout: float = usual.dropout()
    propagation_dropout: float = usual.dropout(0.0, "rate on the perceptron's output, before the steps")
    masks: Masks = setting(
        Masks.ONCE,
        "whether one mask of it serves all steps, or each hop of their sum γ Σ (1−γ)ᵏ Aᵏ X + (1−γ)ᴷ Aᴷ X has a fresh one",
    )
    bias: bool = setting(False, "whether the layers have one (the authors' have none)")

    def build(self) -> None:
        """Make the parts."""
        self.p_pre = Perceptron(
            [self.in_features, self.hidden, self.out_features], self.dropout, self.bias, after=self.propagation_dropout,
            held=self.masks is Masks.EACH_HOP,
        )  # fmt: skip
        objective = Fidelity(self.teleport) + Smoothness(1 - self.teleport)
        self.propagation = unroll(objective, GradientDescent(step=0.5), self.depth)
