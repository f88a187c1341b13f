"""Sparse features where a dense signal is needed."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from unspool.ops import SparseFeatures


class Densify(nn.Module):
    """Pass tensors through, and write sparse features out: a raw signal on the graph does not stay sparse.

    Example:
        >>> import torch
        >>> Densify()(SparseFeatures.from_tensor(torch.eye(2)))
        tensor([[1., 0.],
                [0., 1.]])
    """

    def forward(self, x: Any) -> Tensor:
        """The tensor."""
        return x.to_dense() if isinstance(x, SparseFeatures) else x
