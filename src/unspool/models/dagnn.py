"""DAGNN: deep adaptive graph neural network (Liu et al., 2020)."""

from __future__ import annotations

from dataclasses import replace

from torch import Tensor, nn

from unspool.graph import Graph, check_input
from unspool.models import usual_settings as usual
from unspool.models.model import Model
from unspool.nn import Linear, Perceptron
from unspool.nn.linear import check_fits
from unspool.objective import Fidelity, Learnable, Objective, Smoothness
from unspool.ops.gated_sum import gated_sum
from unspool.ops.powers import powers
from unspool.settings import setting


class DAGNN(Model):
    r"""A perceptron, K hops, and a gate per node and hop: :math:`\sum_{k=0}^K \sigma(A^k X s + t)\, \odot A^k X`.

    The paper compares with DAGNN but derives no problem for it. With gates that are the same at every node it is a GPRGNN,
    so the nearest problem is :math:`\alpha\lVert H-X\rVert^2 + (1-\alpha)\lVert BH\rVert^2` with untied α; gates that differ
    from node to node minimise no objective of this family.


    Example:
        >>> import torch, unspool as us
        >>> model = us.models.DAGNN(5, 3)
        >>> print(model.objective)
        αₖ ‖H − X‖²  +  (1 − αₖ) ‖B H‖²   (nearest problem: exact only for gates that are the same at every node)
        >>> model(torch.eye(5), us.graph.ring(5)).shape
        torch.Size([5, 3])
    """

    title = "deep adaptive graph neural network (Liu et al., 2020)"
    derivation = "not derived in the paper; nearest problem: GPRGNN's, exact for gates that are the same at every node"

    hidden: int = usual.width()
    depth: int = usual.depth(10)
    dropout: float = usual.dropout(0.8)
    batch_norm: bool = setting(False, "normalise the hidden layer over the nodes (the authors do on ogbn-arxiv)")

    def build(self) -> None:
        """Make the parts."""
        widths = [self.in_features, self.hidden, self.out_features]
        self.p_pre = Perceptron(widths, self.dropout, batch_norm=self.batch_norm)
        self.propagation = GatedHops(self.out_features, self.depth)

    @property
    def objective(self) -> Objective:
        """GPRGNN's problem, with a note that it is only the nearest one."""
        alpha = Learnable(0.5, per_layer=True, name="α")
        nearest = "nearest problem: exact only for gates that are the same at every node"
        return replace(Fidelity(alpha) + Smoothness(1 - alpha), note=nearest)


class GatedHops(nn.Module):
    """Σₖ σ(Aᵏ X s + t) ⊙ Aᵏ X with one gate (s, t) for all hops.

    Example:
        >>> import torch, unspool as us
        >>> GatedHops(3, depth=2)(torch.ones(4, 3), us.graph.ring(4)).shape
        torch.Size([4, 3])
    """

    role = "gate"

    def __init__(self, features: int, depth: int) -> None:
        super().__init__()
        if depth < 1:
            raise ValueError(f"depth={depth}: expected a whole number of at least 1")
        self.gate, self.depth = Linear(features, 1), depth

    def forward(self, x: Tensor, graph: Graph) -> Tensor:
        """The gated sum."""
        check_input(x, graph)
        check_fits(x, self.gate.weight)
        shift = self.gate.bias
        assert shift is not None
        return gated_sum(powers(graph, x, self.depth), self.gate.weight[:, 0], shift)
