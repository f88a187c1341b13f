"""Graph convolutions with ReLU between: the layers of GCN and of the nonlinear JKNets."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import torch
from torch import Tensor, nn

from unspool.algorithm import ProximalGradient
from unspool.errors import IncompatibleError
from unspool.graph import Graph, check_input
from unspool.nn import Dropout, Start
from unspool.nn.linear import begin, taken_away
from unspool.objective import NonNegative, Objective, Relaxed, Ridge, Smoothness
from unspool.ops.activated import activate, activated_product
from unspool.ops.spmm import spmm
from unspool.unrolling import Unrolled, unroll


def convolution_objective(features: int) -> Objective:
    """‖BH‖²_W + ‖H‖²_(I−W) + I(H ≥ 0) with a free W per layer: Table 1, row GCN."""
    w = Relaxed(features, per_layer=True, name="W")
    return Smoothness(1.0, metric=w) + Ridge(1.0, metric=1 - w) + NonNegative()


class Convolutions(nn.Module):
    r"""Layers :math:`H \leftarrow \mathrm{ReLU}(A H W + b)`; the first has no W, because the encoder ends in one.

    Where widths do not change and b = 0, the layers are proximal gradient steps (:meth:`as_unrolled`). A W that changes
    the width has no place in an objective, whose H has one width: it re-encodes between two problems (docs/errata.md, 4).

    Args:
        widths: channels after each layer.
        dropout: rate before each layer but the first.
        bias: whether layers have a b; in front of batch normalisation, which takes it away, it stays 0.
        open_end: whether the last layer is linear.
        batch_norm: normalise hidden layers over the nodes.
    """

    role = "convolution"

    def __init__(
        self, widths: Sequence[int], dropout: float, bias: bool, open_end: bool = True, batch_norm: bool = False
    ) -> None:
        super().__init__()
        pairs = list(itertools.pairwise(widths))
        self.weights = nn.ParameterList(nn.Parameter(torch.empty(a, b)) for a, b in pairs)
        self.biases = nn.ParameterList(nn.Parameter(torch.zeros(w)) for w in widths) if bias else None
        self.norms = nn.ModuleList(nn.BatchNorm1d(w) for w in widths[:-1]) if batch_norm else None
        for b in list(self.biases or ())[:-1] if batch_norm else ():
            taken_away(b)
        for weight in self.weights:
            begin(weight, None, Start.GLOROT)
        self.dropout = Dropout(dropout)
        self.open_end, self.depth, self.widths = open_end, len(widths), tuple(widths)

    def layers(self, x: Tensor, graph: Graph) -> Iterator[Tensor]:
        """The output of each layer in turn."""
        check_input(x, graph)
        h = x
        for k in range(self.depth):
            if k > 0:
                h = self.dropout(h) @ self.weights[k - 1]
            h = spmm(graph, h)
            if self.biases is not None:
                h = h + self.biases[k]
            if k + 1 < self.depth and self.norms is not None:
                h = self.norms[k](h)
            if k + 1 < self.depth or not self.open_end:
                h = torch.relu(h)
            yield h

    def forward(self, x: Tensor, graph: Graph) -> Tensor:
        """The output of the last layer."""
        check_input(x, graph)
        h = spmm(graph, x)
        for k, weight in enumerate(self.weights):
            bias = None if self.biases is None else self.biases[k]
            if self.norms is not None:
                h, bias = self.norms[k](activate(h, bias)), None
            h = spmm(graph, activated_product(h, weight, bias=bias, relu=True, mask=self.dropout.draw()))
        return activate(h, None if self.biases is None else self.biases[-1], relu=not self.open_end)

    @property
    def objective(self) -> Objective:
        """The problem of the square layers."""
        return convolution_objective(self.widths[0])

    def as_unrolled(self) -> Unrolled:
        """The ReLU layers as K steps of proximal gradient descent on :attr:`objective`, weights copied.

        Refused where a width changes before the last layer, or a bias is not zero: such layers minimise nothing.
        """
        count = self.depth - 1 if self.open_end else self.depth
        square = list(self.weights)[: max(count - 1, 0)]
        if count < 1:
            raise IncompatibleError("a single linear layer has no ReLU step to unroll")
        if any(w.shape[0] != w.shape[1] for w in square):
            raise IncompatibleError(
                "a layer changes the width, and an objective has one width: only square layers are steps"
            )
        if self.biases is not None and any(bool((b != 0).any()) for b in list(self.biases)[:count]):
            raise IncompatibleError("a layer has a bias, and the problem has none; build with bias=False")
        if self.norms is not None:
            raise IncompatibleError("batch normalisation is not a step on an objective")
        like = next(self.parameters())
        net = unroll(convolution_objective(self.widths[0]), ProximalGradient(step=0.5), count).to(
            like.device, like.dtype
        )
        with torch.no_grad():
            eye = torch.eye(self.widths[0], dtype=like.dtype, device=like.device)
            net.coefficients["W"].copy_(torch.stack([eye, *square]))
        return net
