"""The multi-layer perceptron that most models begin with."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from unspool.errors import IncompatibleError
from unspool.nn.dropout import Dropout
from unspool.nn.linear import Linear, Start, check_fits, taken_away
from unspool.ops.activated import activate, activated_product
from unspool.ops.kernels import fused


class Perceptron(nn.Module):
    """Linear layers with ReLU between, and dropout before each.

    Args:
        widths: features of the input, of each hidden layer, and of the output.
        dropout: the rate, on the input of every layer.
        bias: whether the layers have one; in front of batch normalisation, which takes it away, it stays 0.
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
        for layer in self.layers[:-1] if batch_norm else ():
            taken_away(layer.bias)  # type: ignore[arg-type]
        self.dropout = Dropout(dropout)
        self.after = Dropout(after)
        self.open_end, self.held, self.residual = open_end, held, residual

    def forward(self, x: Any) -> Tensor:
        """The output of the last layer."""
        first, *others = self.layers
        before: Any = x
        h, bias = self._begun(first, x)  # type: ignore[arg-type]
        for i, layer in enumerate(others):
            if self.norms is not None:
                h, bias = self.norms[i](h if bias is None else h + bias), None
            if self.residual:
                h = activate(h, bias, relu=True)
                h = h + before if before.shape[-1] == h.shape[-1] else h
                before, h = h, layer(self.dropout(h))
            else:
                h = activated_product(h, layer.weight, layer.bias, bias, relu=True, mask=self.dropout.draw())  # type: ignore[arg-type]
            bias = None
        return activate(h, bias, relu=not self.open_end, mask=None if self.held else self.after.draw())

    def at_rows(self, x: Tensor, rows: Tensor) -> Tensor:
        """The output at some rows, which are given with their numbers: masks are those of these rows of a whole signal.

        Example:
            >>> import torch
            >>> net, x, rows = Perceptron([5, 4, 3], dropout=0.5), torch.rand(9, 5), torch.tensor([7, 2])
            >>> calls = net.dropout.count.clone()
            >>> whole = net(x)[rows]
            >>> _ = net.dropout.count.copy_(calls)
            >>> torch.allclose(net.at_rows(x[rows], rows), whole, atol=1e-6)
            True
        """
        if self.norms is not None:
            raise IncompatibleError("batch normalisation looks at all nodes, so some rows alone do not tell its output")
        *hidden, last = self.layers
        for layer in hidden:
            h = torch.relu(layer(self.dropout.at_rows(x, rows)))
            x = h + x if self.residual and x.shape[-1] == h.shape[-1] else h
        h = last(self.dropout.at_rows(x, rows))
        h = h if self.open_end else torch.relu(h)
        return h if self.held else self.after.at_rows(h, rows)

    def _begun(self, first: Linear, x: Any) -> tuple[Tensor, Tensor | None]:
        """The first layer, and a bias that is still to be added."""
        if isinstance(x, Tensor) and fused(x, first.weight):
            check_fits(x, first.weight)
            return activated_product(x, first.weight, first.bias, mask=self.dropout.draw()), None
        return first.begun(self.dropout(x))
