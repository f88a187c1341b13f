"""GPRGNN: generalised PageRank graph neural network (Chien et al., 2021)."""

from __future__ import annotations

import copy
from typing import Any

import torch

from unspool.models import usual_settings as usual
from unspool.models.convert import adopt, number_hops
from unspool.models.hop_start import HopStart, hop_start
from unspool.models.masks import Masks
from unspool.models.model import Model
from unspool.nn import Perceptron
from unspool.objective import Fidelity, Learnable, Objective, Smoothness
from unspool.settings import setting
from unspool.unrolling import HopNetwork


class GPRGNN(Model):
    r"""A perceptron whose predictions pass a learnt filter: :math:`\sum_{k=0}^K \gamma_k A^k X`.

    Proposition 6: K gradient steps of size 1/2 on :math:`\alpha\lVert H-X\rVert^2 + (1-\alpha)\lVert BH\rVert^2` with its own α in
    every layer, where Σγ = 1 and no partial sum is 1. With weights and steps of any size Σγ = 1 is enough, and any other γ with
    Σγ ≠ 0 is such a network times the number Σγ (docs/errata.md, 2). ``model.propagation.read_back()`` finds α and β of each layer.


    Example:
        >>> import torch, unspool as us
        >>> model = us.models.GPRGNN(5, 3, depth=2)
        >>> print(model.objective)
        αₖ ‖H − X‖²  +  (1 − αₖ) ‖B H‖²
        >>> model.propagation.hops().detach().numpy().round(2)
        array([0.1 , 0.09, 0.81], dtype=float32)
    """

    title = "generalised PageRank graph neural network (Chien et al., 2021)"
    derivation = (
        "K gradient steps of size 1/2 with untied α, where Σγ = 1; otherwise times Σγ (Proposition 6, erratum 2)"
    )

    hidden: int = usual.width()
    depth: int = usual.depth(10)
    teleport: float = usual.teleport("α of the start")
    dropout: float = usual.dropout()
    propagation_dropout: float | None = setting(
        None,
        "rate on the perceptron's output, before the hops; that of dropout when omitted",
        of=float,
        at_least=0,
        below=1,
    )
    masks: Masks = setting(Masks.ONCE, "whether all hops share one mask of it, or each has a fresh one")
    bias: bool = setting(True, "whether the layers have one")
    start: HopStart = setting(HopStart.PPR, "how γ begins")
    warm: list[float] | None = setting(None, "γ itself, for HopStart.WARM", of=[float])

    def build(self) -> None:
        """Make the parts."""
        after = self.dropout if self.propagation_dropout is None else self.propagation_dropout
        self.p_pre = Perceptron(
            [self.in_features, self.hidden, self.out_features],
            self.dropout,
            self.bias,
            after=after,
            held=self.masks is Masks.EACH_HOP,
        )
        self.propagation = HopNetwork(hop_start(self.start, self.depth, self.teleport, self.warm))

    @property
    def objective(self) -> Objective:
        """α‖H − X‖² + (1 − α)‖BH‖² with one α per layer."""
        alpha = Learnable(self.teleport, per_layer=True, name="α")
        return Fidelity(alpha) + Smoothness(1 - alpha)

    @classmethod
    def from_model(cls, model: Any) -> GPRGNN:
        """The GPRGNN that computes what another model computes, with its trained weights: APPNP, SGC or a GPRGNN.

        Example:
            >>> import torch, unspool as us
            >>> appnp, graph, x = us.models.APPNP(5, 3).eval(), us.graph.ring(5), torch.eye(5)
            >>> torch.allclose(us.models.GPRGNN.from_model(appnp).eval()(x, graph), appnp(x, graph), atol=1e-6)
            True
        """
        hops = number_hops(model)
        made = cls(
            model.in_features, model.out_features, depth=hops.numel() - 1, start=HopStart.WARM, warm=hops.tolist()
        )
        like = next(model.parameters())
        made.propagation.to(like.device, like.dtype)
        with torch.no_grad():
            made.propagation.coefficients.copy_(hops)  # in full precision
        return adopt(made, copy.deepcopy(model.p_pre), made.propagation, copy.deepcopy(model.p_pos), model)
