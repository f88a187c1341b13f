"""UGDGNN with its hops before anything that is not linear: propagation first, so that it can be done once and kept."""

from __future__ import annotations

from unspool.models import usual_settings as usual
from unspool.models.graph_first_gprgnn import hidden_layer_first
from unspool.models.hop_start import HopStart
from unspool.models.model import Model
from unspool.models.ugdgnn import MixedHops, Mixing, general_objective
from unspool.nn import Linear, Start
from unspool.objective import Objective
from unspool.settings import setting


class GraphFirstUGDGNN(Model):
    r"""A perceptron on hops with a matrix each: :math:`\mathrm{MLP}\bigl(\sum_{k=0}^K \gamma_k A^k X W (\zeta_k I + \xi_k W_k)\bigr)`.

    The hops are those of :class:`UGDGNN` on a linear encoding X W, and the perceptron comes after them. The encoding commutes with the graph,
    so it may stand before the hops (few channels travel) or after them, on stored hops Aᵏ X (:func:`unspool.hops.write`), which need no graph:
    the same function, masks of dropout included. Contains :class:`GraphFirstGPRGNN` with the same widths (ζ = 1, ξ = 0).


    Example:
        >>> import torch, unspool as us
        >>> model = us.models.GraphFirstUGDGNN(5, 3, depth=2)
        >>> print(model.objective)
        αₖ ‖H − X‖²_Tαₖ  +  βₖ ‖B H‖²_Tβₖ
        >>> model(torch.eye(5), us.graph.ring(5)).shape
        torch.Size([5, 3])
    """

    title = "UGDGNN with its hops before the perceptron, made for stored hops"
    derivation = "K general gradient steps on X W where the hop coefficients sum to I; otherwise their sum joins the decoder (Proposition 11)"

    hidden: int = usual.width("width of the encoding, on which hops are mixed")
    depth: int = usual.depth(4)
    dropout: float = usual.dropout(meaning="rate on the hidden features, after the hops")
    mixing: Mixing = setting(Mixing.TIED, "whether ξ is 1 − ζ or free")
    bias: bool = setting(True, "whether the layers have one; it is added after the hops")
    start: HopStart = setting(HopStart.UNIFORM, "how γ begins: at 1/K, as GPRGNN with α = 0.1 (ppr), and so on")

    def build(self) -> None:
        """Make the parts."""
        self.p_pre = Linear(self.in_features, self.hidden, bias=False, start=Start.GLOROT)
        self.propagation = MixedHops(self.hidden, self.depth, self.mixing, start=self.start)
        self.p_pos = hidden_layer_first(self.hidden, self.out_features, self.dropout, self.bias)

    @property
    def objective(self) -> Objective:
        """α‖H − X‖²_Tα + β‖BH‖²_Tβ, everything per layer."""
        return general_objective(self.hidden, self.depth)
