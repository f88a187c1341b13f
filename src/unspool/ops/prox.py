r"""Proximal operators: :math:`\operatorname{prox}_{f}(v) = \arg\min_y f(y) + \tfrac12\lVert y - v\rVert^2`.

Each is a plain function of tensors with finite gradients everywhere, kinks included.
"""

from __future__ import annotations

import torch
from torch import Tensor

Number = float | Tensor


def non_negative(v: Tensor) -> Tensor:
    """Project onto the non-negative numbers: the ReLU.

    Example:
        >>> import torch
        >>> non_negative(torch.tensor([-1.0, 2.0]))
        tensor([0., 2.])
    """
    return torch.relu(v)


def box(v: Tensor, low: Number, high: Number) -> Tensor:
    """Project every entry onto the interval [low, high].

    Example:
        >>> import torch
        >>> box(torch.tensor([-3.0, 0.2, 9.0]), -1.0, 1.0)
        tensor([-1.0000,  0.2000,  1.0000])
    """
    return torch.clamp(v, as_like(low, v), as_like(high, v))


def soft_threshold(v: Tensor, radius: Number) -> Tensor:
    r"""Pull every entry towards zero by ``radius``: the proximal operator of :math:`\rho\lVert\cdot\rVert_1`.

    Example:
        >>> import torch
        >>> soft_threshold(torch.tensor([-3.0, 0.2, 9.0]), 1.0)
        tensor([-2.,  0.,  8.])
    """
    return torch.relu(v - radius) - torch.relu(-v - radius)


def as_like(value: Number, v: Tensor) -> Tensor:
    """A number as a tensor in the dtype and on the device of v, made there: copying it over would break a CUDA graph."""
    return value.to(v) if isinstance(value, Tensor) else torch.full((), float(value), dtype=v.dtype, device=v.device)


def row_shrink(h: Tensor, radius: Number, centre: Tensor | None = None) -> Tensor:
    r"""Pull each row of ``h`` towards the same row of ``centre`` (or zero), by at most ``radius``.

    .. math:: \operatorname{prox}(H)_i = x_i + \max(0, 1 - \rho / \lVert h_i - x_i\rVert_2)(h_i - x_i)

    Proximal operator of :math:`\rho\lVert H - X\rVert_{2,1}`. In AirGNN, a node whose neighbours nearly agree with it
    keeps its own features.

    Example:
        >>> import torch
        >>> row_shrink(torch.tensor([[3.0, 4.0], [0.3, 0.4]]), 1.0)
        tensor([[2.4000, 3.2000],
                [0.0000, 0.0000]])
    """
    offset = h if centre is None else h - centre
    rho = as_like(radius, h)
    # Trap: relu(1 - radius / length) has the right value at the centre but a nan gradient, and so has the norm of a
    # zero row; both are replaced where the row is pulled all the way in.
    squared = (offset * offset).sum(-1, keepdim=True)
    outside = squared > rho * rho
    length = torch.where(outside, squared, torch.ones_like(squared)).sqrt()
    shrunk = torch.where(outside, offset * (1 - rho / length), torch.zeros_like(offset))
    return shrunk if centre is None else centre + shrunk


def ball(v: Tensor, radius: Number) -> Tensor:
    r"""Project each row onto the ball :math:`\lVert v_i\rVert_2 \le \rho`.

    Example:
        >>> import torch
        >>> ball(torch.tensor([[3.0, 4.0], [0.3, 0.4]]), 1.0)
        tensor([[0.6000, 0.8000],
                [0.3000, 0.4000]])
    """
    rho = as_like(radius, v)
    squared = (v * v).sum(-1, keepdim=True)
    outside = squared > rho * rho
    # Trap: the norm of a zero row has no gradient. Written as one factor per row, nothing but v is kept for the way back.
    length = torch.where(outside, squared, torch.ones_like(squared)).sqrt()
    return v * torch.where(outside, rho / length, torch.ones_like(length))


def simplex(v: Tensor, total: float = 1.0) -> Tensor:
    r"""Project each row onto :math:`\{p \ge 0, \sum_j p_j = \text{total}\}`, by sorting.

    Example:
        >>> import torch
        >>> simplex(torch.tensor([[0.6, 0.6, -1.0]]))
        tensor([[0.5000, 0.5000, 0.0000]])
    """
    if total <= 0:
        raise ValueError(f"simplex of total {total}: the entries must sum to a positive number")
    v = v - v.amax(-1, keepdim=True)  # the projection does not see a common shift, but floating point does
    ordered = torch.sort(v, dim=-1, descending=True).values
    excess = ordered.cumsum(-1) - total
    count = torch.arange(1, v.shape[-1] + 1, dtype=v.dtype, device=v.device)
    support = (ordered * count > excess).sum(-1, keepdim=True).clamp_min(1)
    shift = torch.gather(excess, -1, support - 1) / support
    return torch.relu(v - shift)
