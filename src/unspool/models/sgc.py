"""SGC: simplified graph convolution (Wu et al., 2019)."""

from __future__ import annotations

from enum import Enum

from torch import nn

from unspool.algorithm import GradientDescent
from unspool.models import usual_settings as usual
from unspool.models.model import Model
from unspool.nn import Bias, Linear
from unspool.nn.flatten import Densify
from unspool.objective import Smoothness
from unspool.settings import setting
from unspool.unrolling import unroll


class Side(Enum):
    """Where a weight matrix stands that commutes with the graph: before the propagation or after it."""

    PRE = "pre"
    POS = "pos"


class SGC(Model):
    r"""A fixed low-pass filter and one linear layer: :math:`A^K X W + b`.

    Proposition 3: K gradient steps of size 1/2 on :math:`\lVert BH\rVert_T^2 + \lVert H\rVert_{I-T}^2` with
    :math:`W = \prod_k T^{(k)}`. In the second reading, which is how it runs here, T = I and W belongs to p_pre or
    p_pos; all three give the same function.


    Example:
        >>> import torch, unspool as us
        >>> model = us.models.SGC(5, 3, depth=2)
        >>> print(model.objective)
        ‖B H‖²
        >>> model(torch.eye(5), us.graph.ring(5)).shape
        torch.Size([5, 3])
    """

    title = "simplified graph convolution (Wu et al., 2019)"
    derivation = (
        "K gradient steps of size 1/2 on ‖B H‖², with W in the encoder or the decoder (Proposition 3, its second form)"
    )

    depth: int = usual.depth(2)
    bias: bool = setting(True, "whether there is a b")
    weights: Side = setting(Side.PRE, "where W stands: before the hops (few channels travel) or after them")

    def build(self) -> None:
        """Make the parts."""
        self.propagation = unroll(Smoothness(1.0), GradientDescent(step=0.5), self.depth)
        if self.weights is Side.PRE:
            self.p_pre = Linear(self.in_features, self.out_features, bias=False)
            self.p_pos = Bias(self.out_features) if self.bias else nn.Identity()
        else:
            self.p_pre = Densify()
            self.p_pos = Linear(self.in_features, self.out_features, self.bias)
