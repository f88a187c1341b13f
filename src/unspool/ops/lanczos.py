"""Lanczos' method: what a symmetric operator looks like from a few products with it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

import numpy as np
import torch
from torch import Tensor

#: A vector or columns of a matrix: NumPy's (vectors only) or torch's.
Vectors = TypeVar("Vectors", np.ndarray[Any, Any], Tensor)


class Lanczos(Generic[Vectors]):
    r"""Lanczos' three-term recurrence, :math:`\beta_k v_{k+1} = (M - \alpha_k I) v_k - \beta_{k-1} v_{k-1}`, one product a step.

    The eigenvalues of the tridiagonal matrix with :math:`\alpha` on its diagonal and :math:`\beta` beside it, Ritz values,
    approach the outer ones of M first. Vectors are not orthogonalised again: copies of values that were found appear, which does not
    keep the outer ones from converging.

    Args:
        apply: multiplies with M.
        start: a vector, or a matrix whose columns are followed each by itself.

    Attributes:
        length: of the start, per column.
        diagonal: α, a number per step; for columns a row of them.
        beside: β, the same; the last one couples to the vector that the next step would take. Where it is nearly zero, the start was
            made of so few modes, and nothing new follows.

    Example:
        >>> matrix = torch.diag(torch.tensor([1.0, 2.0, 5.0], dtype=torch.float64))
        >>> run = Lanczos(lambda v: matrix @ v, torch.ones(3, dtype=torch.float64))
        >>> for _ in range(3):
        ...     run.step()
        >>> [round(run.ritz(i)[0], 6) for i in (0, -1)], run.beside[-1] < 1e-12
        ([1.0, 5.0], True)
    """

    def __init__(self, apply: Callable[[Vectors], Vectors], start: Vectors) -> None:
        self._apply = apply
        self.length = _length(start)
        self._before, self._now = start, start / _positive(self.length)
        self.diagonal: list[Any] = []
        self.beside: list[Any] = []

    def step(self) -> None:
        """Multiply once, and add an entry to ``diagonal`` and ``beside``."""
        new = self._apply(self._now)
        if self.beside:
            new = new - self.beside[-1] * self._before
        self.diagonal.append(_inner(self._now, new))
        new = new - self.diagonal[-1] * self._now
        self.beside.append(_length(new))
        # Trap: in an exhausted space β is zero; that cuts what follows off from the first entry, and is no divisor.
        self._before, self._now = self._now, new / _positive(self.beside[-1])

    def ritz(self, index: int) -> tuple[float, float]:
        """A Ritz value by its rank from below (-1 is the largest), and how far it is at most from an eigenvalue of M."""
        from scipy.linalg import eigh_tridiagonal

        rank = index % len(self.diagonal)
        value, vector = eigh_tridiagonal(self.diagonal, self.beside[:-1], select="i", select_range=(rank, rank))
        return float(value[0]), self.beside[-1] * abs(float(vector[-1, 0]))

    def quadrature(self) -> tuple[Tensor, Tensor]:
        r"""Nodes and weights with :math:`v^\top f(M)\, v \approx \sum_j w_j f(\theta_j)` for every start v of a matrix; a row for each."""
        band = torch.diag_embed(torch.stack(self.diagonal, dim=-1))
        if len(self.beside) > 1:
            band = band + torch.diag_embed(torch.stack(self.beside[:-1], dim=-1), offset=1)
        value, vector = torch.linalg.eigh(band, UPLO="U")
        return value, vector[:, 0, :].square() * self.length.square()[:, None]


def _inner(a: Any, b: Any) -> Any:
    if isinstance(a, Tensor):
        product = (a * b).sum(0)
        return float(product) if product.ndim == 0 else product
    return float(a @ b)


def _length(a: Any) -> Any:
    if isinstance(a, Tensor):
        length = torch.linalg.vector_norm(a, dim=0)
        return float(length) if length.ndim == 0 else length
    return float(np.linalg.norm(a))


def _positive(length: Any) -> Any:
    if isinstance(length, Tensor):
        return torch.where(length > 0, length, 1.0)
    return length if length > 0 else 1.0
