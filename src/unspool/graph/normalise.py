"""How raw edge weights become the operator A."""

from __future__ import annotations

from enum import Enum

import torch
from torch import Tensor


class Normalisation(Enum):
    """What is done to the weights W with their degrees d (the row sums of W, self-loops included).

    ``SYMMETRIC``: A = D^(-1/2) W D^(-1/2), the paper's choice. ``RANDOM_WALK``: A = D^(-1) W, whose rows sum to one.
    ``NONE``: A = W.

    Example:
        >>> import torch, unspool as us
        >>> path = us.graph.path(3, normalise=us.Normalisation.RANDOM_WALK)
        >>> path.to_dense().sum(dim=1)
        tensor([1., 1., 1.])
    """

    SYMMETRIC = "symmetric"
    RANDOM_WALK = "random-walk"
    NONE = "none"


def normalised(row: Tensor, col: Tensor, weight: Tensor, degree: Tensor, how: Normalisation) -> Tensor:
    """The entries of A for the entries (row, col, weight) of W; nodes without any edge get zeros, not infinities."""
    if how is Normalisation.NONE:
        return weight
    if how is Normalisation.RANDOM_WALK:
        return weight * _inverse(degree)[row]
    root = _inverse(degree).sqrt()
    return weight * (root[row] * root[col])  # this order keeps A exactly symmetric in floating point


def _inverse(degree: Tensor) -> Tensor:
    return torch.where(degree > 0, 1.0 / degree, torch.zeros_like(degree))
