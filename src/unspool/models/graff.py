"""GRAFF: a gradient flow with attraction and repulsion (Di Giovanni et al., 2023)."""

from __future__ import annotations

from torch import nn

from unspool.algorithm import GradientDescent
from unspool.models import usual_settings as usual
from unspool.models.model import Model
from unspool.nn import Dropout, Linear, Perceptron
from unspool.objective import Diagonal, Ridge, Smoothness, Source, Symmetric
from unspool.settings import setting, uniform
from unspool.unrolling import unroll


class GRAFF(Model):
    r"""Hidden features move down an energy whose edges attract in some channels and repel in others: :math:`H \leftarrow H - \tau(H\Omega - AHW - X\tilde W)`.

    The energy is :math:`\tfrac12\sum_i\langle h_i,\Omega h_i\rangle - \tfrac12\sum_{ij}a_{ij}\langle h_i, Wh_j\rangle - \sum_i\langle h_i,\tilde Wx_i\rangle`,
    which with A = I − L is :math:`\tfrac12\lVert H\rVert_{\Omega-W}^2 + \tfrac12\lVert BH\rVert_W^2 - \langle H, X\tilde W\rangle`: Theorem 2 with a
    symmetric T_β that may have negative eigenvalues. Channels of W with positive eigenvalues become smooth, those with negative ones sharp.
    Ω and W̃ are diagonal, and all three serve every layer or one each. It starts as the heat flow H ← H − τLH.


    Example:
        >>> import torch, unspool as us
        >>> model = us.models.GRAFF(5, 3, hidden=8)
        >>> print(model.objective)
        0.5 ‖H‖²_(Ω − W)  +  0.5 ‖B H‖²_W  −  ⟨H, X W̃⟩
        >>> model(torch.eye(5), us.graph.ring(5)).shape
        torch.Size([5, 3])
    """

    title = "a gradient flow with attraction and repulsion (Di Giovanni et al., 2023)"
    derivation = "K gradient steps of size τ with a symmetric, indefinite T_β (Theorem 2); one polynomial of the graph"

    hidden: int = usual.width("width of the features that travel")
    depth: int = usual.depth(4, "K, the number of steps")
    step: float = setting(0.5, "τ, the step size", above=0, search=uniform(0.1, 1.0))
    tied: bool = setting(True, "whether all layers share Ω, W and W̃")
    dropout: float = usual.dropout(meaning="rate on the inputs of the first and the last layer")

    def build(self) -> None:
        """Make the parts."""
        width, own = self.hidden, not self.tied
        omega, source = Diagonal(width, per_layer=own, name="Ω"), Diagonal(width, per_layer=own, name="W̃")
        w = Symmetric(width, per_layer=own, name="W")
        objective = Ridge(0.5, metric=omega - w) + Smoothness(0.5, metric=w) + Source(1.0, matrix=source)
        self.p_pre = Perceptron([self.in_features, width], self.dropout, open_end=False)
        self.propagation = unroll(objective, GradientDescent(step=self.step), self.depth)
        nn.init.zeros_(self.propagation.coefficients["W̃"])
        self.p_pos = nn.Sequential(Dropout(self.dropout), Linear(width, self.out_features))
