"""The multi-layer perceptron that most models begin with."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from unspool.nn.dropout import Dropout
from unspool.nn.linear import Linear, Start


class Perceptron(nn.Module):
    """Linear layers with ReLU between, and dropout before each.

    Args:
        widths: features of the input, of each hidden layer, and of the output.
        dropout: the rate, on the input of every layer.
        bias: whether the layers have one.
        start: how the weights begin.
        batch_norm: normalise each hidden layer over the nodes.
        open_end: whether the last layer is linear; otherwise it ends in a ReLU too.
        after: the rate of one more dropout, on the output.
        residual: whether hidden layers that keep the width add their input to what they give.
        held: whether that dropout, the module ``after``, is left to whoever takes the output: a model calls it once per hop.

    Example:
        >>> import torch
        >>> Perceptron([5, 16, 3], dropout=0.5)(torch.ones(4, 5)).shape
        torch.Size([4, 3])
    """

    def __init__(
        self,
        widths: Sequence[int],
        dropout: float = 0.0,
        bias: bool = True,
        start: Start = Start.UNIFORM,
        batch_norm: bool = False,
        open_end: bool = True,
        after: float = 0.0,
        held: bool = False,
        residual: bool = False,
    ) -> None:
        super().__init__()
        pairs = list(itertools.pairwise(widths))
        self.layers = nn.ModuleList(Linear(a, b, bias, start) for a, b in pairs)
        self.norms = nn.ModuleList(nn.BatchNorm1d(b) for _, b in pairs[:-1]) if batch_norm else None
        self.dropout = Dropout(dropout)
        self.after = Dropout(after)
        self.open_end, self.held, self.residual = open_end, held, residual

    def forward(self, x: Any) -> Tensor:
        """The output of the last layer."""
        h = x
        for i, layer in enumerate(self.layers):
            before, h = h, layer(self.dropout(h))
            if i + 1 < len(self.layers) and self.norms is not None:
                h = self.norms[i](h)
            if i + 1 < len(self.layers) or not self.open_end:
                h = torch.relu(h)
            if self.residual and i + 1 < len(self.layers) and before.shape[-1] == h.shape[-1]:
                h = h + before
        return h if self.held else self.after(h)
