"""GNN-HF: fidelity to high frequencies (Zhu et al., 2021)."""

from __future__ import annotations

from unspool.algorithm import GradientDescent
from unspool.models import usual_settings as usual
from unspool.models.model import Model
from unspool.nn import Perceptron
from unspool.objective import FilteredFidelity, Smoothness
from unspool.settings import log_uniform, setting
from unspool.unrolling import unroll


class GNNHF(Model):
    r"""Smoothing that stays close to X at high frequencies too: :math:`\langle H-X, (I + \beta L)(H-X)\rangle + (\tfrac1\alpha - 1)\lVert BH\rVert^2`.

    One layer is a gradient step, :math:`H \leftarrow H - 2\eta[(I+\beta L)(H-X) + (\tfrac1\alpha-1)LH]`, of its authors' size
    :math:`\eta = 1/(2(\beta + \tfrac1\alpha))`. The minimiser, :math:`\alpha[\alpha I + (\alpha\beta + 1 - \alpha)L]^{-1}(I + \beta L)X`, keeps a share
    αβ/(αβ + 1 − α) of even the highest frequencies; :meth:`~unspool.models.Model.solve_exactly` computes it.


    Example:
        >>> import torch, unspool as us
        >>> model = us.models.GNNHF(5, 3, beta=0.5, teleport=0.2)
        >>> print(model.objective)
        ⟨H − X, (1 + 0.5 L)(H − X)⟩  +  4 ‖B H‖²
        >>> model(torch.eye(5), us.graph.ring(5)).shape
        torch.Size([5, 3])
    """

    title = "fidelity to high frequencies (Zhu et al., 2021)"
    derivation = "K gradient steps of size 1/(2(β + 1/α)); one polynomial of the graph"

    hidden: int = usual.width()
    depth: int = usual.depth(10, "K, the number of steps")
    teleport: float = usual.teleport("α, how strongly a node keeps its own prediction", positive=True)
    beta: float = setting(0.5, "β, how much more high frequencies count", at_least=0, search=log_uniform(0.01, 10.0))
    dropout: float = usual.dropout()

    def build(self) -> None:
        """Make the parts."""
        self.p_pre = Perceptron([self.in_features, self.hidden, self.out_features], self.dropout)
        smooth = 1 / self.teleport - 1
        objective = FilteredFidelity(1.0, filter=(1.0, self.beta)) + Smoothness(smooth)
        self.propagation = unroll(objective, GradientDescent(step=0.5 / (self.beta + 1 + smooth)), self.depth)
