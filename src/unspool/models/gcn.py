"""GCN: graph convolutional network (Kipf and Welling, 2017)."""

from __future__ import annotations

from torch import nn

from unspool.models.convolutions import Convolutions
from unspool.models.model import Model
from unspool.nn import Perceptron, Start


class GCN(Model):
    r"""Convolutions with ReLU between: :math:`H^{(k)} = \mathrm{ReLU}(A H^{(k-1)} W^{(k)} + b^{(k)})`, the last without ReLU.

    Proposition 8: with square W and no bias, proximal gradient steps of size 1/2 on
    :math:`\lVert BH\rVert_W^2 + \lVert H\rVert_{I-W}^2 + I(H \ge 0)`, a relaxation of gradient steps because W is not symmetric. The
    first W (raw features to hidden) is p_pre; ``model.propagation.as_unrolled()`` gives the steps where they are ones.

    Args:
        in_features, out_features: channels of the input and of the output.
        hidden: width of the layers between.
        depth: K, the number of convolutions.
        dropout: rate on the input of every layer.
        bias: whether layers have a b (zero at the start).
        batch_norm: normalise hidden layers over the nodes (as is usual on ogbn-arxiv).

    Example:
        >>> import torch, unspool as us
        >>> model = us.models.GCN(5, 3, hidden=16)
        >>> print(model.objective)
        ‖B H‖²_Wₖ  +  ‖H‖²_(I − Wₖ)  +  ι[H ≥ 0]
        >>> model(torch.eye(5), torch.tensor([[0, 1, 2, 3], [1, 0, 3, 2]])).shape
        torch.Size([5, 3])
    """

    derivation = "K proximal gradient steps of size 1/2, for square W and no bias (Proposition 8, erratum 4)"

    def __init__(
        self,
        in_features: int,
        out_features: int,
        *,
        hidden: int = 64,
        depth: int = 2,
        dropout: float = 0.5,
        bias: bool = True,
        batch_norm: bool = False,
    ) -> None:
        super().__init__(
            in_features, out_features, hidden=hidden, depth=depth, dropout=dropout, bias=bias, batch_norm=batch_norm
        )
        if depth < 1:
            raise ValueError(f"depth={depth}: expected a whole number of at least 1")
        widths = [hidden] * (depth - 1) + [out_features]
        self.p_pre = Perceptron([in_features, widths[0]], dropout, bias=False, start=Start.GLOROT)
        self.propagation = Convolutions(widths, dropout, bias, batch_norm=batch_norm)
        self.p_pos = nn.Identity()
