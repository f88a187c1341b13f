r"""The same polynomial in four bases, converted without rounding until the last step.

A filter of degree K is :math:`h(\lambda) = \sum_k c_k p_k(\lambda)` on the frequencies [0, 2]. Which :math:`p_k` are used
changes nothing about the function and everything about the coefficients: (1 − λ)⁵⁰ is a single one in powers of A and fifty
numbers of up to 10¹⁴ with alternating signs in powers of L. Conversion is therefore done in whole numbers, and refused where
the result could not be evaluated in float64.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from enum import Enum
from typing import Any

import numpy as np
import torch
from torch import Tensor

from unspool.errors import IncompatibleError
from unspool.ops import Basis

#: A representation is refused when rounding its coefficients to float64 may move h by more than this share of max|h|.
WORST_ERROR = 1e-6


class PolynomialBasis(Enum):
    r"""Which polynomials of the frequency multiply the coefficients.

    ===========  ==============================================================================  =====================
    member       :math:`p_k(\lambda)`                                                            known from
    ===========  ==============================================================================  =====================
    HOPS         :math:`(1-\lambda)^k`, powers of A: the paper's γ, ``us.Basis.POWERS``          GPRGNN, UGDGNN
    LAPLACIAN    :math:`\lambda^k`, powers of L: the paper's θ                                   spectral GNNs
    CHEBYSHEV    :math:`T_k(1-\lambda)`, ``us.Basis.CHEBYSHEV``                                  momentum methods
    BERNSTEIN    :math:`\binom Kk (\lambda/2)^k (1-\lambda/2)^{K-k}`                             BernNet
    ===========  ==============================================================================  =====================

    Example:
        >>> import unspool as us
        >>> PolynomialBasis.of(us.Basis.POWERS)
        <PolynomialBasis.HOPS: 'powers of A'>
    """

    HOPS = "powers of A"
    LAPLACIAN = "powers of L"
    CHEBYSHEV = "Chebyshev polynomials of A"
    BERNSTEIN = "Bernstein polynomials of L/2"

    @staticmethod
    def of(basis: Any) -> PolynomialBasis:
        """The member that stands for what :func:`~unspool.propagate` runs; members stand for themselves."""
        if isinstance(basis, PolynomialBasis):
            return basis
        if isinstance(basis, Basis):
            return PolynomialBasis.HOPS if basis is Basis.POWERS else PolynomialBasis.CHEBYSHEV
        raise TypeError(f"basis={basis!r}: expected a PolynomialBasis or a Basis")


def convert(coefficients: Any, source: PolynomialBasis | Basis, target: PolynomialBasis | Basis) -> Tensor:
    r"""Write a polynomial given in one basis in another.

    Between powers of L and of A this is the binomial formula of the paper's spectral theorem,

    .. math:: \sum_k \theta_k \lambda^k = \sum_i \gamma_i (1-\lambda)^i
        \quad\text{with}\quad \gamma_i = (-1)^i \sum_{k \ge i} \binom ki \theta_k .

    The given floats are taken at face value and every sum is exact, in whole numbers over a common denominator, so each
    coefficient of the result is correctly rounded. If the rounding alone would spoil the function, because large coefficients
    cancel, the conversion is refused.

    Args:
        coefficients: c₀ ... c_K, of shape (K+1,) for numbers, (K+1, features) for diagonals, (K+1, features, out) for matrices.
        source: the basis they are written in.
        target: the basis to write them in.

    Returns:
        A float64 tensor of the same shape.

    Example:
        >>> import torch
        >>> theta = torch.tensor([1.0, -2.0, 1.0])  # 1 − 2λ + λ²
        >>> convert(theta, PolynomialBasis.LAPLACIAN, PolynomialBasis.HOPS)
        tensor([0., 0., 1.], dtype=torch.float64)
        >>> convert(torch.eye(51)[50], PolynomialBasis.CHEBYSHEV, PolynomialBasis.HOPS)
        Traceback (most recent call last):
            ...
        unspool.errors.IncompatibleError: in powers of A this polynomial of degree 50 cancels: coefficients of size 1.3e+18 make values of size 1, and rounding them to float64 may cost a relative error of 1.5e+03; use PolynomialBasis.CHEBYSHEV, which never cancels
    """
    source, target = PolynomialBasis.of(source), PolynomialBasis.of(target)
    c = _checked(coefficients)
    found = _converted(c, source, target)
    if source is target:
        return found
    error = torch.finfo(torch.float64).eps * _condition(found, target, _converted(c, source, PolynomialBasis.CHEBYSHEV))
    if not error <= WORST_ERROR:
        raise IncompatibleError(
            f"in {target.value} this polynomial of degree {c.shape[0] - 1} cancels: coefficients of size {float(found.abs().max()):.2g} "
            f"make values of size {_size(c, source):.2g}, and rounding them to float64 may cost a relative error of {error:.2g}; "
            "use PolynomialBasis.CHEBYSHEV, which never cancels"
        )
    return found


def condition(coefficients: Any, basis: PolynomialBasis | Basis) -> float:
    r"""How much coefficients cancel: rounding them by ε moves the function by up to ε times this number.

    .. math:: \max_\lambda \sum_k |c_k p_k(\lambda)| \;/\; \max_\lambda |h(\lambda)|, \qquad \lambda \in [0, 2].

    One is perfect. In the Chebyshev basis it never exceeds 2(K+1). Channels of a diagonal are judged one by one, matrices as a
    whole.

    Args:
        coefficients: as in :func:`convert`.
        basis: the basis they are written in.

    Example:
        >>> condition([1.0, -1.0], PolynomialBasis.HOPS)  # 1 − (1 − λ) = λ
        1.0
        >>> condition([1.0, -2.0, 1.0], PolynomialBasis.LAPLACIAN)  # (1 − λ)²
        9.0
    """
    basis = PolynomialBasis.of(basis)
    c = _checked(coefficients)
    return _condition(c, basis, _converted(c, basis, PolynomialBasis.CHEBYSHEV))


def evaluate(coefficients: Any, basis: PolynomialBasis | Basis, frequency: Any) -> Tensor:
    r"""The polynomial :math:`h(\lambda) = \sum_k c_k p_k(\lambda)` at given frequencies, in float64.

    Horner's rule for powers, the three-term recurrence for Chebyshev, a sum of positive weights for Bernstein.

    Args:
        coefficients: as in :func:`convert`.
        basis: the basis they are written in.
        frequency: λ in [0, 2], a number or a tensor of any shape (...).

    Returns:
        Shape (...) for numbers, (..., features) for diagonals, (..., features, out) for matrices.

    Example:
        >>> evaluate([0.0, 0.0, 1.0], PolynomialBasis.HOPS, [0.0, 0.5, 2.0])
        tensor([1.0000, 0.2500, 1.0000], dtype=torch.float64)
    """
    basis = PolynomialBasis.of(basis)
    c = _checked(coefficients)
    where = torch.as_tensor(frequency, dtype=torch.float64)
    if basis in (PolynomialBasis.HOPS, PolynomialBasis.LAPLACIAN):
        variable = (1 - where if basis is PolynomialBasis.HOPS else where).reshape((*where.shape, *[1] * (c.ndim - 1)))
        total = c[-1].expand((*where.shape, *c.shape[1:]))
        for lower in c.flip(0)[1:]:
            total = total * variable + lower
        return total.clone()
    return torch.tensordot(polynomials(where, c.shape[0] - 1, basis), c, dims=1)


def polynomials(frequency: Tensor, degree: int, basis: PolynomialBasis | Basis) -> Tensor:
    """The values p₀(λ) ... p_K(λ) of the basis, stacked in a new last dimension.

    Example:
        >>> import torch
        >>> polynomials(torch.tensor([0.0, 1.0, 2.0]), 2, PolynomialBasis.BERNSTEIN)
        tensor([[1.0000, 0.0000, 0.0000],
                [0.2500, 0.5000, 0.2500],
                [0.0000, 0.0000, 1.0000]], dtype=torch.float64)
    """
    basis = PolynomialBasis.of(basis)
    where = frequency.to(torch.float64)[..., None]
    order = torch.arange(degree + 1, dtype=torch.float64)
    if basis is PolynomialBasis.HOPS:
        return (1 - where) ** order
    if basis is PolynomialBasis.LAPLACIAN:
        return where**order
    if basis is PolynomialBasis.BERNSTEIN:
        choose = torch.tensor([float(math.comb(degree, k)) for k in range(degree + 1)], dtype=torch.float64)
        return choose * (where / 2) ** order * (1 - where / 2) ** (degree - order)
    a = 1 - where[..., 0]
    found = [torch.ones_like(a), a]
    while len(found) <= degree:
        found.append(2 * a * found[-1] - found[-2])
    return torch.stack(found[: degree + 1], dim=-1)


def chebyshev_nodes(count: int) -> Tensor:
    """Frequencies in [0, 2] that crowd towards both ends, in rising order: the roots of T_count(1 − λ).

    Example:
        >>> chebyshev_nodes(2)
        tensor([0.2929, 1.7071], dtype=torch.float64)
    """
    angle = (torch.arange(count, dtype=torch.float64) + 0.5) * (torch.pi / count)
    return 1 - torch.cos(angle)


# -- inside ------------------------------------------------------------------------------------------------------------


def _checked(coefficients: Any) -> Tensor:
    if isinstance(coefficients, Tensor):
        coefficients = coefficients.detach()
    c = torch.as_tensor(coefficients, dtype=torch.float64, device="cpu")
    if c.ndim not in (1, 2, 3) or c.shape[0] == 0:
        raise ValueError(
            f"coefficients have shape {tuple(c.shape)}: expected (K+1,), (K+1, features) or (K+1, features, out)"
        )
    if not bool(torch.isfinite(c).all()):
        raise ValueError("coefficients must be finite")
    return c


def _grid(degree: int) -> Tensor:
    inner = chebyshev_nodes(max(128, 4 * (degree + 1)))
    return torch.cat([torch.zeros(1, dtype=torch.float64), inner, torch.full((1,), 2.0, dtype=torch.float64)])


def _condition(c: Tensor, basis: PolynomialBasis, chebyshev: Tensor) -> float:
    """Trap: max|h| comes from the Chebyshev coefficients, which cannot cancel; those in c may be nothing but rounding."""
    if not c.numel():
        return 1.0
    values = polynomials(_grid(c.shape[0] - 1), c.shape[0] - 1, basis)
    absolute = torch.tensordot(values.abs(), c.abs(), dims=1)
    truth = evaluate(chebyshev, PolynomialBasis.CHEBYSHEV, _grid(c.shape[0] - 1)).abs()
    dims = 0 if c.ndim == 2 else tuple(range(truth.ndim))
    above, below = absolute.amax(dims), truth.amax(dims)
    return float(torch.where(above > 0, above / below, torch.ones_like(above)).max())


def _size(c: Tensor, basis: PolynomialBasis) -> float:
    chebyshev = _converted(c, basis, PolynomialBasis.CHEBYSHEV)
    return float(evaluate(chebyshev, PolynomialBasis.CHEBYSHEV, _grid(c.shape[0] - 1)).abs().max())


def _converted(c: Tensor, source: PolynomialBasis, target: PolynomialBasis) -> Tensor:
    """Exact sums, one rounding each."""
    if source is target:
        return c.clone()
    matrix, below = _change(c.shape[0] - 1, source, target)
    whole, exponent = _whole_numbers(c.reshape(c.shape[0], -1).numpy())
    sums = matrix @ whole
    above = 1
    if exponent >= 0:
        above <<= exponent
    else:
        below <<= -exponent
    try:
        # Division of two Python integers rounds correctly, whatever their size.
        found = [[above * int(v) / below for v in row] for row in sums]
    except OverflowError as problem:
        raise IncompatibleError(
            f"in {target.value} this polynomial has coefficients beyond float64; use PolynomialBasis.CHEBYSHEV"
        ) from problem
    return torch.tensor(found, dtype=torch.float64).reshape(c.shape)


def _whole_numbers(values: Any) -> tuple[Any, int]:
    """Floats as Python integers times one power of two, exactly."""
    fraction, exponent = np.frexp(values)
    digits = (fraction * 2.0**53).astype(np.int64)
    least = int(exponent[digits != 0].min()) if bool((digits != 0).any()) else 0
    shift = np.where(digits != 0, exponent - least, 0)
    return digits.astype(object) << shift.astype(object), least - 53


@functools.lru_cache(maxsize=64)
def _change(degree: int, source: PolynomialBasis, target: PolynomialBasis) -> tuple[Any, int]:
    """The matrix from one basis to another as whole numbers over one denominator, by way of powers of L."""
    first, below = _to_laplacian(degree, source)
    then, also_below = _from_laplacian(degree, target)
    return then @ first, below * also_below


def _to_laplacian(degree: int, basis: PolynomialBasis) -> tuple[Any, int]:
    size = range(degree + 1)
    if basis is PolynomialBasis.LAPLACIAN:
        return _table(degree, lambda i, k: int(i == k)), 1
    if basis is PolynomialBasis.HOPS:
        return _binomial(degree), 1
    if basis is PolynomialBasis.BERNSTEIN:

        def entry(m: int, j: int) -> int:
            return 2 ** (degree - m) * math.comb(degree, j) * _choose(degree - j, m - j) * _sign(m - j)

        return _table(degree, entry), 2**degree
    columns = [[1] + [0] * degree, [0, 1] + [0] * (degree - 1)]
    while len(columns) <= degree:  # T_k = 2 a T_{k−1} − T_{k−2}
        columns.append(
            [2 * (columns[-1][i - 1] if i else 0) - columns[-2][i] for i in size],
        )
    return _binomial(degree) @ _table(degree, lambda i, k: columns[k][i]), 1


def _from_laplacian(degree: int, basis: PolynomialBasis) -> tuple[Any, int]:
    if basis in (PolynomialBasis.LAPLACIAN, PolynomialBasis.HOPS):
        return _to_laplacian(degree, basis)  # the binomial matrix is its own inverse
    if basis is PolynomialBasis.BERNSTEIN:
        every = math.lcm(*(math.comb(degree, k) for k in range(degree + 1)))
        return _table(degree, lambda j, k: math.comb(j, k) * 2**k * (every // math.comb(degree, k))), every

    def entry(i: int, k: int) -> int:  # aᵏ = 2¹⁻ᵏ Σⱼ C(k, j) T_{k−2j}, with T₀ halved
        if i > k or (k - i) % 2:
            return 0
        return math.comb(k, (k - i) // 2) * 2 ** (degree - k) * (2 if i else 1)

    return _table(degree, entry) @ _binomial(degree), 2**degree


def _binomial(degree: int) -> Any:
    return _table(degree, lambda i, k: _sign(i) * math.comb(k, i))


def _choose(n: int, k: int) -> int:
    return math.comb(n, k) if k >= 0 else 0


def _sign(k: int) -> int:
    return (
        -1 if k % 2 else 1
    )  # Trap: (-1) ** k is a float where k is negative, and one float among the integers spoils all


def _table(degree: int, entry: Callable[[int, int], int]) -> Any:
    found = np.empty((degree + 1, degree + 1), dtype=object)
    for i in range(degree + 1):
        for k in range(degree + 1):
            found[i, k] = entry(i, k)
    return found
