"""AirGNN: adaptive residuals (Liu et al., 2021)."""

from __future__ import annotations

from typing import Any

from torch import nn

from unspool.algorithm import ProximalGradient
from unspool.models.model import Model, check_share
from unspool.nn import Perceptron
from unspool.objective import RowSparseFidelity, Smoothness
from unspool.unrolling import unroll


class AirGNN(Model):
    r"""Smoothing that corrects odd nodes and leaves the others alone: row by row, :math:`h_i \leftarrow x_i + \mathrm{ReLU}\bigl(1 - \tfrac{\lambda}{2(1-\lambda)\lVert [AH]_i - x_i\rVert}\bigr)([AH]_i - x_i)`.

    Proposition 10: proximal gradient steps of size :math:`1/(2(1-\lambda))` on
    :math:`(1-\lambda)\lVert BH\rVert^2 + \lambda\lVert H-X\rVert_{2,1}`. The paper's γ is 1 − λ. Gradients are finite where a node
    agrees with its neighbours.

    Args:
        in_features, out_features: channels of the input and of the output.
        hidden: width of the perceptron.
        depth: K, the number of steps.
        residual: λ in [0, 1), the weight of the robust fidelity to one's own prediction.
        dropout: rate on the inputs of both layers.
        adjoint: how gradients flow: ``Stored()`` when omitted, ``Checkpointed(every=)`` for memory at depth.

    Example:
        >>> import torch, unspool as us
        >>> model = us.models.AirGNN(5, 3, residual=0.4)
        >>> print(model.objective)
        0.6 ‖B H‖²  +  0.4 ‖H − X‖₂,₁
        >>> model(torch.eye(5), us.graph.ring(5)).shape
        torch.Size([5, 3])
    """

    derivation = "K proximal gradient steps of size 1/(2(1 − λ)) (Proposition 10, erratum 5)"

    def __init__(
        self,
        in_features: int,
        out_features: int,
        *,
        hidden: int = 64,
        depth: int = 10,
        residual: float = 0.5,
        dropout: float = 0.5,
        adjoint: Any = None,
    ) -> None:
        super().__init__(
            in_features, out_features, hidden=hidden, depth=depth, residual=residual, dropout=dropout, adjoint=adjoint
        )
        check_share("residual", residual, below=True)
        smooth = 1 - residual
        self.p_pre = Perceptron([in_features, hidden, out_features], dropout)
        objective = Smoothness(smooth) + RowSparseFidelity(residual)
        self.propagation = unroll(objective, ProximalGradient(step=1 / (2 * smooth)), depth, adjoint=adjoint)
        self.p_pos = nn.Identity()
