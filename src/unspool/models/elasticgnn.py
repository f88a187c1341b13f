"""ElasticGNN: sharp borders between smooth regions (Liu et al., 2021)."""

from __future__ import annotations

from unspool.algorithm import PrimalDual
from unspool.models import usual_settings as usual
from unspool.models.model import Model
from unspool.nn import Perceptron
from unspool.objective import EdgeSparse, Fidelity, Smoothness
from unspool.settings import log_uniform, setting
from unspool.unrolling import unroll


class ElasticGNN(Model):
    r"""Smoothing that lets a few edges jump: :math:`\tfrac12\lVert H-X\rVert^2 + \tfrac{\lambda_2}{2}\lVert BH\rVert^2 + \lambda_1\lVert BH\rVert_{2,1}`.

    One layer is a primal-dual step with :math:`\gamma = 1/(1+\lambda_2)`, :math:`\beta = 1/(2\gamma)` and one dual variable Z for every edge:
    :math:`Y = \gamma X + (1-\gamma)AH`, then :math:`Z \leftarrow \Pi_{\lVert z_e\rVert\le\lambda_1}(Z + \beta B(Y - \gamma B^\top Z))` and
    :math:`H \leftarrow Y - \gamma B^\top Z`. Needs an undirected, symmetrically normalised graph.


    Example:
        >>> import torch, unspool as us
        >>> model = us.models.ElasticGNN(5, 3, lambda1=2.0, lambda2=4.0)
        >>> print(model.objective)
        0.5 ‖H − X‖²  +  2 ‖B H‖²  +  2 ‖B H‖₂,₁
        >>> model(torch.eye(5), us.graph.ring(5)).shape
        torch.Size([5, 3])
    """

    title = "sharp borders between smooth regions (Liu et al., 2021)"
    derivation = "K primal-dual steps of size 1/(1 + λ₂): PD3O without a proximal term, which is PAPC"

    hidden: int = usual.width()
    depth: int = usual.depth(10, "K, the number of steps")
    lambda1: float = setting(3.0, "λ₁, the weight of jumps across edges", at_least=0, search=log_uniform(0.1, 10.0))
    lambda2: float = setting(3.0, "λ₂, the weight of squared differences", at_least=0, search=log_uniform(0.1, 10.0))
    rows: bool = setting(True, "whether an edge jumps in all channels together (‖BH‖₂,₁) or in each alone (‖BH‖₁)")
    dropout: float = usual.dropout()

    def build(self) -> None:
        """Make the parts."""
        self.p_pre = Perceptron([self.in_features, self.hidden, self.out_features], self.dropout)
        objective = Fidelity(0.5) + Smoothness(self.lambda2 / 2) + EdgeSparse(self.lambda1, rows=self.rows)
        self.propagation = unroll(objective, PrimalDual(step=1 / (1 + self.lambda2)), self.depth)
