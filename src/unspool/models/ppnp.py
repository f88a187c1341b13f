"""PPNP: personalised propagation of neural predictions (Gasteiger et al., 2019)."""

from __future__ import annotations

from torch import nn

from unspool.algorithm import Exact
from unspool.models.model import Model, check_share
from unspool.nn import Perceptron
from unspool.objective import Fidelity, Smoothness
from unspool.unrolling import unroll


class PPNP(Model):
    r"""A perceptron followed by the exact minimiser: :math:`\gamma\,(I - (1-\gamma) A)^{-1} X`.

    Proposition 4: the minimiser of :math:`\gamma\lVert H-X\rVert^2 + (1-\gamma)\lVert BH\rVert^2`. Solved by sparse conjugate
    gradients, never a dense inverse; the gradient is one more solve. Needs an undirected graph.

    Args:
        in_features, out_features: channels of the input and of the output.
        hidden: width of the perceptron.
        teleport: γ, in (0, 1].
        dropout: rate on the inputs of both layers.
        bias: whether the layers have one.
        tolerance: relative residual of the solve; 1e-10 in float64 and 1e-6 in float32 when omitted.

    Example:
        >>> import torch, unspool as us
        >>> model = us.models.PPNP(5, 3)
        >>> print(model.objective)
        0.1 ‖H − X‖²  +  0.9 ‖B H‖²
        >>> model(torch.eye(5), us.graph.ring(5)).shape
        torch.Size([5, 3])
    """

    derivation = "the exact minimiser, by conjugate gradients with implicit gradients (Proposition 4)"

    def __init__(
        self,
        in_features: int,
        out_features: int,
        *,
        hidden: int = 64,
        teleport: float = 0.1,
        dropout: float = 0.5,
        bias: bool = False,
        tolerance: float | None = None,
    ) -> None:
        super().__init__(
            in_features, out_features, hidden=hidden, teleport=teleport, dropout=dropout, bias=bias, tolerance=tolerance
        )
        check_share("teleport", teleport, positive=True)
        self.p_pre = Perceptron([in_features, hidden, out_features], dropout, bias)
        self.propagation = unroll(Fidelity(teleport) + Smoothness(1 - teleport), Exact(tolerance))
        self.p_pos = nn.Identity()
