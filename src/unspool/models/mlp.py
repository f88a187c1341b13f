"""MLP: the baseline that sees no graph."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from unspool.models.model import Model, check_features
from unspool.nn import Perceptron
from unspool.objective import Fidelity, Objective, as_objective
from unspool.ops.features import features_of


class MLP(Model):
    """A perceptron on each node alone; a graph may be given, and is not looked at.

    As a denoising problem: ‖H − X‖², whose minimiser is X.

    Args:
        in_features, out_features: channels of the input and of the output.
        hidden: width of the hidden layer.
        dropout: rate on the inputs of both layers.
        bias: whether the layers have one.

    Example:
        >>> import torch, unspool as us
        >>> us.models.MLP(5, 3)(torch.eye(5)).shape
        torch.Size([5, 3])
    """

    derivation = "no propagation: the minimiser of ‖H − X‖² is X"

    def __init__(
        self, in_features: int, out_features: int, *, hidden: int = 64, dropout: float = 0.5, bias: bool = True
    ) -> None:
        super().__init__(in_features, out_features, hidden=hidden, dropout=dropout, bias=bias)
        self.p_pre = Perceptron([in_features, hidden, out_features], dropout, bias)
        self.propagation = Still()
        self.p_pos = nn.Identity()

    @property
    def objective(self) -> Objective:
        """‖H − X‖²."""
        return as_objective(Fidelity(1.0))

    def forward(self, x: Any, graph: Any = None, edge_weight: Any = None) -> Tensor:
        """Predictions from each node's own features."""
        x = features_of(x)
        check_features(x)
        return self.p_pos(self.propagation(self.p_pre(x)))


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
