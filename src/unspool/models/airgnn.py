"""AirGNN: adaptive residuals (Liu et al., 2021)."""

from __future__ import annotations

from unspool.algorithm import ProximalGradient
from unspool.models import usual_settings as usual
from unspool.models.model import Model
from unspool.nn import Perceptron
from unspool.objective import RowSparseFidelity, Smoothness
from unspool.settings import setting, uniform
from unspool.unrolling import Checkpointed, Stored, unroll


class AirGNN(Model):
    r"""Smoothing that corrects odd nodes and leaves the others alone: row by row, :math:`h_i \leftarrow x_i + \mathrm{ReLU}\bigl(1 - \tfrac{\lambda}{2(1-\lambda)\lVert [AH]_i - x_i\rVert}\bigr)([AH]_i - x_i)`.

    Proposition 10: proximal gradient steps of size :math:`1/(2(1-\lambda))` on
    :math:`(1-\lambda)\lVert BH\rVert^2 + \lambda\lVert H-X\rVert_{2,1}`. The paper's γ is 1 − λ. Gradients are finite where a node
    agrees with its neighbours.


    Example:
        >>> import torch, unspool as us
        >>> model = us.models.AirGNN(5, 3, residual=0.4)
        >>> print(model.objective)
        0.6 ‖B H‖²  +  0.4 ‖H − X‖₂,₁
        >>> model(torch.eye(5), us.graph.ring(5)).shape
        torch.Size([5, 3])
    """

    title = "adaptive residuals (Liu et al., 2021)"
    derivation = "K proximal gradient steps of size 1/(2(1 − λ)) (Proposition 10, erratum 5)"

    hidden: int = usual.width()
    depth: int = usual.depth(10, "K, the number of steps")
    residual: float = setting(
        0.5,
        "λ, the weight of the robust fidelity to one's own prediction",
        at_least=0,
        below=1,
        search=uniform(0.1, 0.9),
    )
    dropout: float = usual.dropout()
    adjoint: Stored | Checkpointed | None = setting(
        None,
        "how gradients flow: Stored() when omitted, Checkpointed(every=) for memory at depth",
        of=(Stored, Checkpointed),
    )

    def build(self) -> None:
        """Make the parts."""
        smooth = 1 - self.residual
        self.p_pre = Perceptron([self.in_features, self.hidden, self.out_features], self.dropout)
        objective = Smoothness(smooth) + RowSparseFidelity(self.residual)
        step = ProximalGradient(step=1 / (2 * smooth))
        self.propagation = unroll(objective, step, self.depth, adjoint=self.adjoint)
