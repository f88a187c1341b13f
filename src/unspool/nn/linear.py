"""Linear maps on channels, from dense or sparse features."""

from __future__ import annotations

import math
from enum import Enum
from typing import Any

import torch
from torch import Tensor, nn

from unspool.ops.activated import activate
from unspool.ops.kernels import fused
from unspool.ops.padded_matmul import dense_product


class Start(Enum):
    """How weights begin: ``UNIFORM`` within ±1/√in (torch's own), ``GLOROT`` within ±√(6/(in + out)) with zero bias."""

    UNIFORM = "uniform"
    GLOROT = "glorot"


def begin(weight: Tensor, bias: Tensor | None, start: Start) -> None:
    """Fill a weight of shape (..., in, out) and its bias."""
    fan_in, fan_out = weight.shape[-2:]
    bound = math.sqrt(6 / (fan_in + fan_out)) if start is Start.GLOROT else 1 / math.sqrt(max(fan_in, 1))
    with torch.no_grad():
        weight.uniform_(-bound, bound)
        if bias is not None and start is Start.GLOROT:
            bias.zero_()
        elif bias is not None:
            bias.uniform_(-bound, bound)


class Linear(nn.Module):
    """X W + b, with W stored as it is written: shape (in, out).

    Args:
        in_features, out_features: the two widths.
        bias: whether there is a b.
        start: how the weights begin.

    Example:
        >>> import torch
        >>> from unspool.nn import SparseFeatures
        >>> layer = Linear(5, 2)
        >>> x = torch.eye(5)
        >>> torch.allclose(layer(x), layer(SparseFeatures.from_tensor(x)))
        True
    """

    def __init__(self, in_features: int, out_features: int, bias: bool = True, start: Start = Start.UNIFORM) -> None:
        super().__init__()
        if in_features < 1 or out_features < 1:
            raise ValueError(f"a layer from {in_features} to {out_features} features: both must be at least 1")
        self.weight = nn.Parameter(torch.empty(in_features, out_features))
        self.bias = nn.Parameter(torch.empty(out_features)) if bias else None
        begin(self.weight, self.bias, start)

    def forward(self, x: Any) -> Tensor:
        """X W + b for a tensor, or for sparse features, under a mask or not."""
        check_fits(x, self.weight)
        if isinstance(x, Tensor):
            return dense_product(x, self.weight, self.bias)
        product = x @ self.weight
        return product if self.bias is None else product + self.bias

    def begun(self, x: Any) -> tuple[Tensor, Tensor | None]:
        """The layer on features, and a bias that is still to be added, where what comes next adds it at no price.

        Example:
            >>> import torch
            >>> product, bias = Linear(2, 3).begun(torch.eye(2))
            >>> product.shape, bias  # on the CPU the product adds it
            (torch.Size([2, 3]), None)
        """
        if self.bias is None or isinstance(x, Tensor) or not fused(self.weight):
            return self(x), None
        check_fits(x, self.weight)
        return x @ self.weight, self.bias

    def extra_repr(self) -> str:
        """The widths."""
        bias = "" if self.bias is not None else ", bias=False"
        return f"{self.weight.shape[-2]}, {self.weight.shape[-1]}{bias}"


class Bias(nn.Module):
    """H + b.

    Example:
        >>> import torch
        >>> Bias(2)(torch.ones(1, 2))
        tensor([[1., 1.]], grad_fn=<AddBackward0>)
    """

    def __init__(self, features: int) -> None:
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(features))

    def forward(self, h: Tensor) -> Tensor:
        """H + b."""
        return activate(h, self.bias)


def taken_away(bias: Tensor | None) -> None:
    """A bias in front of batch normalisation, which takes it away: 0, and never trained.

    Trap: its gradient is 0 but for rounding, which Adam blows up to whole steps; running means lag behind these, so the same trial had
    other validation losses in other company.
    """
    if bias is not None:
        nn.init.zeros_(bias).requires_grad_(False)


def check_fits(x: Any, weight: Tensor) -> None:
    """Raise one sentence when x has another number of features than the layer, or another dtype."""
    if x.shape[-1] != weight.shape[-2]:
        raise ValueError(f"x has {x.shape[-1]} features, but the model was built for {weight.shape[-2]}")
    # Sparse products of half precision run on float32 entries, which sparse features of half precision are kept in.
    half = not isinstance(x, Tensor) and x.dtype == torch.float32 and weight.dtype in (torch.bfloat16, torch.float16)
    if x.dtype != weight.dtype and not half and not torch.is_autocast_enabled(x.device.type):
        mine, theirs = (str(d).removeprefix("torch.") for d in (weight.dtype, x.dtype))
        raise TypeError(f"x is {theirs}, the model {mine}: call model.to(torch.{theirs}) or x.to(torch.{mine})")
