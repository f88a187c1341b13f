"""PPNP: personalised propagation of neural predictions (Gasteiger et al., 2019)."""

from __future__ import annotations

from unspool.algorithm import Exact
from unspool.models import usual_settings as usual
from unspool.models.model import Model
from unspool.nn import Perceptron
from unspool.objective import Fidelity, Smoothness
from unspool.settings import setting
from unspool.unrolling import unroll


class PPNP(Model):
    r"""A perceptron followed by the exact minimiser: :math:`\gamma\,(I - (1-\gamma) A)^{-1} X`.

    Proposition 4: the minimiser of :math:`\gamma\lVert H-X\rVert^2 + (1-\gamma)\lVert BH\rVert^2`. Solved by sparse conjugate
    gradients, never a dense inverse; the gradient is one more solve. Needs an undirected graph.


    Example:
        >>> import torch, unspool as us
        >>> model = us.models.PPNP(5, 3)
        >>> print(model.objective)
        0.1 ‖H − X‖²  +  0.9 ‖B H‖²
        >>> model(torch.eye(5), us.graph.ring(5)).shape
        torch.Size([5, 3])
    """

    title = "personalised propagation of neural predictions (Gasteiger et al., 2019)"
    derivation = "the exact minimiser, by conjugate gradients with implicit gradients (Proposition 4)"

    hidden: int = usual.width()
    teleport: float = usual.teleport("γ, how strongly a node keeps its own prediction", positive=True)
    dropout: float = usual.dropout()
    bias: bool = setting(False, "whether the layers have one")
    tolerance: float | None = setting(
        None,
        "relative residual of the solve; 1e-10 in float64 and 1e-6 in float32 when omitted",
        of=float,
        above=0,
        below=1,
    )

    def build(self) -> None:
        """Make the parts."""
        self.p_pre = Perceptron([self.in_features, self.hidden, self.out_features], self.dropout, self.bias)
        objective = Fidelity(self.teleport) + Smoothness(1 - self.teleport)
        self.propagation = unroll(objective, Exact(self.tolerance))
