"""MLP: the baseline that sees no graph."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from unspool.models import usual_settings as usual
from unspool.models.graph_first import own_features
from unspool.models.model import Model, check_features
from unspool.nn import Perceptron
from unspool.objective import Fidelity, Objective, as_objective
from unspool.ops import features_of
from unspool.ops.stored_hops import StoredHops
from unspool.settings import setting


class MLP(Model):
    """A perceptron on each node alone; a graph may be given, and is not looked at.

    As a denoising problem: ‖H − X‖², whose minimiser is X.


    Example:
        >>> import torch, unspool as us
        >>> us.models.MLP(5, 3)(torch.eye(5)).shape
        torch.Size([5, 3])
    """

    title = "the baseline that sees no graph"
    derivation = "no propagation: the minimiser of ‖H − X‖² is X"

    hidden: int = usual.width("width of the hidden layer")
    dropout: float = usual.dropout()
    bias: bool = setting(True, "whether the layers have one")

    def build(self) -> None:
        """Make the parts."""
        self.p_pre = Perceptron([self.in_features, self.hidden, self.out_features], self.dropout, self.bias)
        self.propagation = Still()

    @property
    def objective(self) -> Objective:
        """‖H − X‖²."""
        return as_objective(Fidelity(1.0))

    def forward(self, x: Any, graph: Any = None, edge_weight: Any = None, rows: Tensor | None = None) -> Tensor:
        """Predictions from each node's own features."""
        if isinstance(x, StoredHops):
            return self.p_pos(self.p_pre.at_rows(*own_features(self, x, rows)))
        x = features_of(x)
        check_features(x)
        output = self.p_pos(self.propagation(self.p_pre(x)))
        return output if rows is None else output.index_select(-2, rows)


class Still(nn.Module):
    """Nothing moves.

    Example:
        >>> import torch
        >>> Still()(torch.ones(1, 1))
        tensor([[1.]])
    """

    def forward(self, x: Tensor, graph: Any = None) -> Tensor:
        """X."""
        return x
