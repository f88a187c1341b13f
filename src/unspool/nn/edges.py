"""Modules that look at the two ends of an edge."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from unspool.graph import Graph


class EdgeScore(nn.Module):
    r"""A number in (−1, 1) for every edge: :math:`w_e = \tanh s(x_i, x_j)`, with s symmetric in the two ends.

    Each end passes through a layer, and s is a linear function of |u − v| and u ⊙ v. Positive edges pull their ends
    together, negative ones push them apart. The order is that of :func:`~unspool.graph.edge_list`, the rows of B.

    Args:
        features: width of X.
        hidden: width of the layer.

    Example:
        >>> import torch, unspool as us
        >>> score = us.nn.EdgeScore(4)
        >>> score(torch.randn(5, 4), us.graph.ring(5)).shape
        torch.Size([5])
    """

    def __init__(self, features: int, hidden: int = 16) -> None:
        super().__init__()
        self.layer = nn.Linear(features, hidden)
        self.score = nn.Linear(2 * hidden, 1)
        nn.init.constant_(self.score.bias, 1.0)  # begins near plain smoothness

    def forward(self, x: Tensor, graph: Graph) -> Tensor:
        """The scores, shape (edges,)."""
        i, j = graph.incidence().forward.col.long().view(-1, 2).unbind(1)  # edge_list, from what the graph keeps
        z = torch.tanh(self.layer(x))
        u, v = z[..., i, :], z[..., j, :]
        return torch.tanh(self.score(torch.cat([(u - v).abs(), u * v], dim=-1))).squeeze(-1)
