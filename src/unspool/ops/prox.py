r"""Proximal operators: :math:`\operatorname{prox}_{f}(v) = \arg\min_y f(y) + \tfrac12\lVert y - v\rVert^2`.

Each is a plain function of tensors with finite gradients everywhere, kinks included. Those with a radius are one pass over all
trials on a GPU (:mod:`unspool.ops.pull`).
"""

from __future__ import annotations

import torch
from torch import Tensor

from unspool.ops.pull import How, Number, as_like, pull


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
    return pull(How.SOFT, v, radius)


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
    return pull(How.SHRINK, h, radius, centre)


def ball(v: Tensor, radius: Number) -> Tensor:
    r"""Project each row onto the ball :math:`\lVert v_i\rVert_2 \le \rho`.

    Example:
        >>> import torch
        >>> ball(torch.tensor([[3.0, 4.0], [0.3, 0.4]]), 1.0)
        tensor([[0.6000, 0.8000],
                [0.3000, 0.4000]])
    """
    return pull(How.BALL, v, radius)


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
