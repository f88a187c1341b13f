"""SIGN: all hops side by side, a matrix each (Frasca et al., 2020)."""

from __future__ import annotations

import torch
from torch import Tensor

from unspool.algorithm import GradientDescent
from unspool.models import usual_settings as usual
from unspool.models.graph_first_gprgnn import hidden_layer_first
from unspool.models.model import Model
from unspool.nn import Linear
from unspool.objective import Smoothness
from unspool.objective.coefficient import Leaf
from unspool.settings import setting
from unspool.unrolling import unroll


class SIGN(Model):
    r"""All hops side by side, a matrix each, then a layer: :math:`\sigma\bigl([X W_0, A X W_1, \ldots, A^K X W_K] + b\bigr)\, \Omega + c`.

    K gradient steps of size 1/2 on :math:`\lVert BH\rVert_{T_k}^2` from :math:`H = [X W_0, \ldots, X W_K]`, where :math:`T_k` is the projection
    on the channels of hops k to K: a step moves only those that have further to go. Nothing that is not linear stands before the hops, so it
    trains from stored ones (:func:`unspool.hops.write`) as well as on a graph.


    Example:
        >>> import torch, unspool as us
        >>> model = us.models.SIGN(5, 3, depth=2, hidden=4)
        >>> print(model.objective)
        ‖B H‖²_Tₖ
        >>> model.propagation.hops(us.graph.ring(5), torch.eye(1)).numpy()[1]  # of A: the channels of hop 1 alone
        array([0., 0., 0., 0., 1., 1., 1., 1., 0., 0., 0., 0.], dtype=float32)
    """

    # Differs: powers of A alone, the authors' SIGN(p, 0, 0), and ReLU in the place of PReLU.
    title = "all hops side by side, a matrix each: SIGN with powers of A (Frasca et al., 2020)"
    derivation = "K gradient steps of size 1/2 on ‖B H‖²_Tₖ, where Tₖ projects on the channels of hops k and beyond"

    hidden: int = usual.width("channels of every hop")
    depth: int = usual.depth(4)
    dropout: float = usual.dropout(meaning="rate on the hidden features, after the hops")
    bias: bool = setting(True, "whether the layers have one; it is added after the hops")

    def build(self) -> None:
        """Make the parts."""
        every = (self.depth + 1) * self.hidden
        self.p_pre = Linear(self.in_features, every, bias=False)
        further = Further(self.hidden, self.depth)
        self.propagation = unroll(Smoothness(1.0, metric=further), GradientDescent(step=0.5), self.depth)
        self.p_pos = hidden_layer_first(every, self.out_features, self.dropout, self.bias)


class Further(Leaf):
    """The projection on the channels that have layer k still before them, of K + 1 blocks of channels whose number says how far they go.

    It does not train.

    Example:
        >>> Further(2, depth=2).start_layers(2)
        tensor([[0., 0., 1., 1., 1., 1.],
                [0., 0., 0., 0., 1., 1.]], dtype=torch.float64)
    """

    def __init__(self, width: int, depth: int) -> None:
        super().__init__("T", per_layer=True)
        self.width, self.depth = width, depth

    def start(self) -> Tensor:
        """That of the first layer."""
        return self.start_layers(1)[0]

    def start_layers(self, depth: int) -> Tensor:
        """Those of all layers."""
        goes = torch.arange(self.depth + 1).repeat_interleave(self.width)
        return (goes[None] >= torch.arange(1, depth + 1)[:, None]).to(torch.float64)

    def value_of(self, raw: Tensor) -> Tensor:
        """The diagonal itself."""
        return raw

    @property
    def learnt(self) -> bool:
        """No."""
        return False
