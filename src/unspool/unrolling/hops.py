"""Networks given by free hop coefficients: the form that GPRGNN, JKNet and UGDGNN train."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from unspool.graph import Graph, check_input
from unspool.ops.polynomial import Basis, propagate
from unspool.unrolling.read_back import ReadBack
from unspool.unrolling.read_hops import read_back_hops


class HopNetwork(nn.Module):
    r"""A learnable polynomial of the graph, :math:`\sum_{k=0}^K A^k X c_k`.

    Works on any graph, directed ones included. :meth:`read_back` finds gradient layers, and so denoising problems, behind
    the trained coefficients, unless they sum to a singular map.

    Args:
        hops: where training starts: shape (K+1,) for numbers, (K+1, features) for diagonals, (K+1, features, out) for matrices.
            Kept in torch's default dtype, as all weights are; ``torch.set_default_dtype(torch.float64)`` keeps more digits.

    Example:
        >>> import torch, unspool as us
        >>> net = us.HopNetwork(torch.tensor([0.1, 0.09, 0.81]))
        >>> round(float(net(torch.eye(4), us.graph.ring(4)).sum().detach()), 4)
        4.0
    """

    def __init__(self, hops: Any) -> None:
        super().__init__()
        start = torch.as_tensor(hops, dtype=torch.get_default_dtype())
        if start.ndim not in (1, 2, 3) or start.shape[0] == 0:
            raise ValueError(
                f"hops has shape {tuple(start.shape)}: expected (K+1,), (K+1, features) or (K+1, features, out)"
            )
        self.coefficients = nn.Parameter(start.detach().clone())

    def forward(self, x: Tensor, graph: Graph) -> Tensor:
        """Σ Aᵏ X cₖ."""
        check_input(x, graph)
        return propagate(graph, x, self.coefficients, Basis.POWERS)

    def hops(self) -> Tensor:
        """The coefficients c₀ ... c_K."""
        return self.coefficients

    def read_back(self, *, symmetric: bool = False) -> ReadBack:
        """Gradient layers that give these coefficients: see :func:`~unspool.unrolling.read_hops.read_back_hops`."""
        return read_back_hops(self.coefficients, symmetric=symmetric)

    def extra_repr(self) -> str:
        """Degree and kind."""
        kind = {1: "numbers", 2: "diagonals", 3: "matrices"}[self.coefficients.ndim]
        return f"degree {self.coefficients.shape[0] - 1}, {kind}"
