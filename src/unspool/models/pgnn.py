"""p-GNN: message passing from the p-Laplacian (Fu et al., 2022)."""

from __future__ import annotations

from unspool.algorithm import Jacobi
from unspool.models import usual_settings as usual
from unspool.models.model import Model
from unspool.nn import Perceptron
from unspool.objective import EdgePenalty, Fidelity, Power
from unspool.settings import log_uniform, setting, uniform
from unspool.unrolling import unroll


class PGNN(Model):
    r"""Smoothing that counts differences to the power p: :math:`\sum_e \lVert (BH)_e\rVert^p + \mu\lVert H-X\rVert^2`.

    One layer is a Jacobi step. With :math:`M_{ij} = w_{ij}(\lVert (BH)_{ij}\rVert^2 + \varepsilon^2)^{(p-2)/2}` and
    :math:`\alpha_i = (\sum_j M_{ij}/d_i + 2\mu/p)^{-1}`,
    :math:`h_i \leftarrow \alpha_i\sum_j M_{ij} h_j/\sqrt{d_i d_j} + \tfrac{2\mu}{p}\alpha_i x_i`. For p < 2 edges whose ends differ count
    less than they do for p = 2, for p > 2 more, where steps may overshoot: the quadratic that touches ‖·‖ᵖ then lies below it. ε keeps M finite
    where two neighbours agree. Needs an undirected graph.

    Example:
        >>> import torch, unspool as us
        >>> model = us.models.PGNN(5, 3, p=1.5, mu=0.2)
        >>> print(model.objective)
        Σₑ ‖(B H)ₑ‖^1.5  +  0.2 ‖H − X‖²
        >>> model(torch.eye(5), us.graph.ring(5)).shape
        torch.Size([5, 3])
    """

    title = "message passing from the p-Laplacian (Fu et al., 2022)"
    derivation = (
        "K Jacobi steps of size 1: every node divides by the diagonal of the quadratic that touches the penalty at H"
    )
    keeps_laplacian = True

    hidden: int = usual.width()
    depth: int = usual.depth(4, "K, the number of steps")
    p: float = setting(1.5, "the power of differences", at_least=1, search=uniform(1.0, 2.5))
    mu: float = setting(0.1, "μ, how strongly a node keeps its own prediction", above=0, search=log_uniform(0.01, 1.0))
    smoothing: float = setting(0.01, "ε, below which differences count as if squared", above=0)
    dropout: float = usual.dropout()

    def build(self) -> None:
        """Make the parts."""
        self.p_pre = Perceptron([self.in_features, self.hidden, self.out_features], self.dropout)
        objective = EdgePenalty(Power(self.p, self.smoothing)) + Fidelity(self.mu)
        self.propagation = unroll(objective, Jacobi(), self.depth)
