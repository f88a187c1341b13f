"""Maps on channels: numbers, diagonals and matrices that multiply a signal H (nodes × features) from the right.

A number or a 0-d tensor t means t·I, a 1-d tensor a diagonal, a 2-d tensor a matrix. Adding a number to a matrix
therefore adds it to the diagonal: ``1 - T`` is I − T.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

Map = float | Tensor

#: To such a degree polynomials with higher powers are raised, so that bounds on them are tight.
_DEGREE = 24


def rank(t: Map) -> int:
    """0 for a number, 1 for a diagonal, 2 for a matrix."""
    return t.ndim if isinstance(t, Tensor) else 0


def is_zero(t: Map) -> bool:
    """Whether t is zero for certain: the plain number 0, not a tensor that happens to hold it."""
    return not isinstance(t, Tensor) and t == 0


def add(a: Map, b: Map) -> Map:
    """a + b, with numbers and diagonals as matrices where needed.

    Example:
        >>> import torch
        >>> add(1.0, -torch.ones(2, 2))
        tensor([[ 0., -1.],
                [-1.,  0.]])
    """
    if max(rank(a), rank(b)) < 2:
        return a + b
    features = (a if rank(a) == 2 else b).shape[-1]  # type: ignore[union-attr]
    like = a if rank(a) == 2 else b
    return as_matrix(a, features, like) + as_matrix(b, features, like)


def compose(a: Map, b: Map) -> Map:
    """First a, then b: H a b."""
    if rank(a) == 2 and rank(b) == 2:
        return a @ b  # type: ignore[operator]
    if rank(a) == 1 and rank(b) == 2:
        return a[:, None] * b  # type: ignore[index]
    return a * b


def apply(h: Tensor, t: Map) -> Tensor:
    """H t."""
    return h @ t if rank(t) == 2 else h * t  # type: ignore[operator]


def negative(t: Map) -> Map:
    """−t."""
    return -t


def as_matrix(t: Map, features: int, like: Map) -> Tensor:
    """t as a (features, features) tensor in the dtype and on the device of ``like``."""
    if isinstance(t, Tensor) and t.ndim == 2:
        return t
    if not isinstance(like, Tensor):
        like = torch.empty(0)
    eye = torch.eye(features, dtype=like.dtype, device=like.device)
    return eye * t


def eigenvalue_range(t: Map) -> tuple[Map, Map]:
    """Smallest and largest eigenvalue of the symmetric part of t, as 0-d tensors or numbers; stackable."""
    if not isinstance(t, Tensor) or t.ndim == 0:
        return t, t
    if t.ndim == 1:
        return t.amin(), t.amax()
    value = torch.linalg.eigvalsh((t + t.mT) / 2)
    return value[..., 0], value[..., -1]


def spectral_norm(t: Map) -> Map:
    """The largest singular value of t."""
    if not isinstance(t, Tensor):
        return abs(t)
    if t.ndim < 2:
        return t.abs().amax()
    return torch.linalg.matrix_norm(t, ord=2)


def row_sum(t: Map) -> Map:
    """The largest sum of sizes in a row: no less than the largest eigenvalue of a symmetric t, and cheap."""
    return spectral_norm(t) if rank(t) < 2 else t.abs().sum(-1).amax()  # type: ignore[union-attr]


def largest_size(values: Tensor, own: int = 1) -> Map:
    """The largest absolute value of weights; 0 where there are none, as on a graph without edges.

    Where they have the leading dimensions of a stack, each of its signals has a number of its own, of shape (..., 1, 1).

    Args:
        values: the weights.
        own: how many dimensions those of one signal have.

    Example:
        >>> import torch
        >>> largest_size(torch.tensor([1.0, -3.0])), largest_size(torch.empty(0)), largest_size(torch.eye(2)).shape
        (tensor(3.), tensor(0.), torch.Size([2, 1, 1]))
    """
    if values.numel() == 0:
        return values.new_zeros(())
    return values.abs().amax() if values.ndim <= own else values.abs().flatten(-own).amax(-1)[..., None, None]


def larger(a: Map, b: Map) -> Map:
    """The larger of two numbers, tensors or not."""
    if isinstance(a, Tensor) or isinstance(b, Tensor):
        like = a if isinstance(a, Tensor) else b
        return torch.maximum(torch.as_tensor(a).to(like), torch.as_tensor(b).to(like))  # type: ignore[arg-type]
    return max(a, b)


def smaller(a: Map, b: Map) -> Map:
    """The smaller of two numbers, tensors or not."""
    return -larger(-a, -b)


def asymmetry(t: Map) -> float:
    """‖t − tᵀ‖ / ‖t‖, zero for numbers and diagonals."""
    if rank(t) < 2 or not isinstance(t, Tensor):
        return 0.0
    size = float(torch.linalg.matrix_norm(t))
    return float(torch.linalg.matrix_norm(t - t.mT)) / size if size > 0 else 0.0


def trimmed(maps: tuple[Map, ...]) -> tuple[Map, ...]:
    """Without the zeros at the end.

    Example:
        >>> trimmed((0.0, 2.0, 0.0))
        (0.0, 2.0)
    """
    count = len(maps)
    while count and is_zero(maps[count - 1]):
        count -= 1
    return maps[:count]


def control_points(maps: tuple[Map, ...], top: float) -> list[Map]:
    """Maps whose weighted means the polynomial M₀ + λ M₁ + λ² M₂ + ... runs through for λ in [0, top] (Bernstein's form).

    Its norm and its eigenvalues therefore stay within theirs. With two maps they are the values at the ends; more powers
    are raised in degree, which brings the points close to the polynomial.

    Example:
        >>> control_points((1.0, 2.0), 2.0)
        [1.0, 5.0]
    """
    degree = 1 if len(maps) <= 2 else _DEGREE + len(maps)
    points: list[Map] = []
    for j in range(degree + 1):
        total: Map = 0.0
        for i, t in enumerate(maps[: j + 1]):
            if not is_zero(t):
                total = add(total, compose(math.comb(j, i) / math.comb(degree, i) * top**i, t))
        points.append(total)
    return points


def largest_norm(maps: tuple[Map, ...], top: float, norm: Callable[[Map], Map] = spectral_norm) -> Map:
    """A bound on ‖M₀ + λ M₁ + ...‖ over λ in [0, top]."""
    norms = [norm(point) for point in control_points(maps, top)]
    total = norms[0]
    for one in norms[1:]:
        total = larger(total, one)
    return total


def eigenvalue_bounds(maps: tuple[Map, ...], top: float) -> tuple[Map, Map]:
    """Bounds on the eigenvalues of M₀ + λ M₁ + ... over λ in [0, top]; met where there are no higher powers."""
    # Eigenvalues of P + λQ: the largest is convex and the smallest concave in λ, so the ends hold the extremes.
    ranges = [eigenvalue_range(point) for point in control_points(maps, top)]
    low, high = ranges[0]
    for a, b in ranges[1:]:
        low, high = smaller(low, a), larger(high, b)
    return low, high


def tensor_of(value: Any) -> Tensor:
    """A tensor, array, list or tuple of numbers as a tensor; True and False count as 1 and 0.

    Example:
        >>> tensor_of([True, False])
        tensor([1., 0.])
    """
    try:  # a copy, so that read-only and reversed arrays do, too
        made = value if isinstance(value, Tensor) else torch.from_numpy(np.array(value))
    except (TypeError, ValueError):
        what = type(value).__name__
        raise TypeError(f"a {what} is not a coefficient unless it holds numbers alone, in rows of one length") from None
    return made.float() if made.dtype == torch.bool else made


def strange(t: Map) -> float | None:
    """The first number in it that is not finite; None where all are."""
    if not isinstance(t, Tensor):
        return None if math.isfinite(t) else t
    bad = t[~torch.isfinite(t)]
    return float(bad[0]) if bad.numel() else None
