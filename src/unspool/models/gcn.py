"""GCN: graph convolutional network (Kipf and Welling, 2017)."""

from __future__ import annotations

from unspool.models import usual_settings as usual
from unspool.models.convolutions import Convolutions
from unspool.models.model import Model
from unspool.nn import Perceptron, Start
from unspool.settings import setting


class GCN(Model):
    r"""Convolutions with ReLU between: :math:`H^{(k)} = \mathrm{ReLU}(A H^{(k-1)} W^{(k)} + b^{(k)})`, the last without ReLU.

    Proposition 8: with square W and no bias, proximal gradient steps of size 1/2 on
    :math:`\lVert BH\rVert_W^2 + \lVert H\rVert_{I-W}^2 + I(H \ge 0)`, a relaxation of gradient steps because W is not symmetric. The
    first W (raw features to hidden) is p_pre; ``model.propagation.as_unrolled()`` gives the steps where they are ones.


    Example:
        >>> import torch, unspool as us
        >>> model = us.models.GCN(5, 3, hidden=16)
        >>> print(model.objective)
        ‖B H‖²_Wₖ  +  ‖H‖²_(I − Wₖ)  +  ι[H ≥ 0]
        >>> model(torch.eye(5), torch.tensor([[0, 1, 2, 3], [1, 0, 3, 2]])).shape
        torch.Size([5, 3])
    """

    title = "graph convolutional network (Kipf and Welling, 2017)"
    derivation = "K proximal gradient steps of size 1/2, for square W and no bias (Proposition 8, erratum 4)"

    hidden: int = usual.width("width of the layers between")
    depth: int = usual.depth(2, "K, the number of convolutions")
    dropout: float = usual.dropout(meaning="rate on the input of every layer")
    bias: bool = setting(True, "whether layers have a b (zero at the start)")
    batch_norm: bool = setting(False, "normalise hidden layers over the nodes (as is usual on ogbn-arxiv)")

    def build(self) -> None:
        """Make the parts."""
        widths = [self.hidden] * (self.depth - 1) + [self.out_features]
        self.p_pre = Perceptron([self.in_features, widths[0]], self.dropout, bias=False, start=Start.GLOROT)
        self.propagation = Convolutions(widths, self.dropout, self.bias, batch_norm=self.batch_norm)
