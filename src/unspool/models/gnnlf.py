"""GNN-LF: fidelity to low frequencies (Zhu et al., 2021)."""

from __future__ import annotations

from unspool.algorithm import GradientDescent
from unspool.models import usual_settings as usual
from unspool.models.model import Model
from unspool.nn import Perceptron
from unspool.objective import FilteredFidelity, Smoothness
from unspool.settings import setting, uniform
from unspool.unrolling import unroll


class GNNLF(Model):
    r"""Smoothing that stays close to X at low frequencies above all: :math:`\langle H-X, (\mu I + (1-\mu)A)(H-X)\rangle + (\tfrac1\alpha - 1)\lVert BH\rVert^2`.

    One layer is a gradient step, :math:`H \leftarrow H - 2\eta[(\mu I + (1-\mu)A)(H-X) + (\tfrac1\alpha-1)LH]`, of its authors' size
    :math:`\eta = 1/(2(\mu + \tfrac1\alpha - 1))`, after which H itself drops out and only AH, X and AX are left. For μ ≥ ½ the problem is convex,
    as no eigenvalue of A is below −1; :meth:`~unspool.models.Model.solve_exactly` gives its closed form.


    Example:
        >>> import torch, unspool as us
        >>> model = us.models.GNNLF(5, 3, mu=0.7, teleport=0.2)
        >>> print(model.objective)
        ⟨H − X, (1 − 0.3 L)(H − X)⟩  +  4 ‖B H‖²
        >>> model(torch.eye(5), us.graph.ring(5)).shape
        torch.Size([5, 3])
    """

    title = "fidelity to low frequencies (Zhu et al., 2021)"
    derivation = "K gradient steps of size 1/(2(μ + 1/α − 1)); one polynomial of the graph"

    hidden: int = usual.width()
    depth: int = usual.depth(10, "K, the number of steps")
    teleport: float = usual.teleport("α, how strongly a node keeps its own prediction", positive=True)
    mu: float = setting(
        0.7, "μ, the share of all frequencies in the fidelity", at_least=0.5, at_most=1, search=uniform(0.5, 1.0)
    )
    dropout: float = usual.dropout()

    def build(self) -> None:
        """Make the parts."""
        self.p_pre = Perceptron([self.in_features, self.hidden, self.out_features], self.dropout)
        smooth = 1 / self.teleport - 1
        objective = FilteredFidelity(1.0, filter=(1.0, self.mu - 1)) + Smoothness(smooth)
        self.propagation = unroll(objective, GradientDescent(step=0.5 / (self.mu + smooth)), self.depth)
