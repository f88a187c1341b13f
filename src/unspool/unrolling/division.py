r"""Which polynomials are K gradient layers: all that are 1 at frequency zero. Division finds the layers.

With H⁽⁰⁾ = X, r = 0 and p = 1 − 2η(α + β), q = 2ηβ, layer k of eq. (5) turns the response h of the layers before it into
(p + q a) h + 1 − p − q, where a = 1 − λ. At a = 1 that is 1 whatever p and q are. So write h(a) = 1 + (a − 1) g(a); a layer is then

.. math:: g \leftarrow q + (p + q a)\,g,

from g = 0. *Backwards*: take any a₀ with g(a₀) ≠ 0, set q = g(a₀), p = −q a₀, and (g − q)/(p + q a) is a polynomial of one
degree less. After K divisions nothing is left: K layers reach every polynomial of degree K with h(1) = 1, and no other.

The coefficients of g are the tail sums of the hop coefficients, gⱼ = cⱼ₊₁ + … + c_K. For matrices on channels the same holds with
g ← q + g (p + q a), as long as g(a₀) is invertible at some a₀ for every quotient in turn.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

#: Where to look for a₀: on [−1, 1], where dividing costs no digits.
POINTS: Array = np.concatenate([[0.0, 1.0, -1.0, 0.5, -0.5], np.cos(np.pi * (np.arange(33) + 0.5) / 33)])
_TINY = 1e-16
_SINGULAR = 1e-11


def tails(hops: Array) -> Array:
    """The coefficients of g in h = 1 + (a − 1) g, for hop coefficients that sum to one.

    Example:
        >>> import numpy as np
        >>> tails(np.array([0.5, 0.25, 0.25]))
        array([0.5 , 0.25])
    """
    return np.ascontiguousarray(np.cumsum(hops[::-1], axis=0)[::-1][1:])


def unrolled(keep: Array, hop: Array) -> Array:
    """The hop coefficients of layers g ← q + g (p + q a), first to last; p and q are numbers or matrices.

    Example:
        >>> import numpy as np
        >>> unrolled(np.array([0.0, 1.0]), np.array([1.0, -1.0]))
        array([ 1.,  1., -1.])
    """
    depth, square = len(hop), hop.ndim == 3
    one = np.eye(hop.shape[-1]) if square else np.ones(hop.shape[1:])
    g = np.zeros_like(hop)
    for p, q in zip(keep, hop, strict=True):
        ahead = g @ q if square else g * q
        g = g @ p if square else g * p
        g[1:] += ahead[:-1]
        g[0] += q
    c = np.zeros((depth + 1, *hop.shape[1:]))
    c[1:] += g
    c[:-1] -= g
    c[0] += one
    return c


def horner(g: Array) -> tuple[Array, Array]:
    """Layers of numbers with a₀ = 0, H ← q A H + (1 − q) X: the ones that the paper has for GPRGNN. nan where a tail sum is zero.

    Example:
        >>> import numpy as np
        >>> horner(np.array([0.9, 0.81]))[1]
        array([0.9, 0.9])
    """
    before = np.concatenate([[1.0], g[:-1]])
    # Once a tail sum is zero and stays so, the layers before the one that cuts it off may do anything.
    with np.errstate(divide="ignore", invalid="ignore"):
        hop = np.where(before != 0, g / before, np.where(g == 0, 0.0, np.nan))
    return np.zeros_like(g), hop[::-1].copy()


def divide(g: Array, points: Array = POINTS) -> tuple[Array, Array] | None:
    """Divide by one layer after the other, each time at the a₀ that leaves the smallest numbers.

    Args:
        g: tail sums, of shape (K,) or (K, features, features).
        points: candidates for a₀.

    Returns:
        p and q of the layers, first to last; None where some quotient of matrices is singular at every point.

    Example:
        >>> import numpy as np
        >>> unrolled(*divide(tails(np.array([1.0, 1.0, -1.0])))).round(12)
        array([ 1.,  1., -1.])
    """
    if g.ndim == 1:
        found = divide(g[:, None, None], points)
        return None if found is None else (found[0][:, 0, 0], found[1][:, 0, 0])
    depth, features = len(g), g.shape[1]
    size = np.abs(g).max(initial=0.0)
    degree = depth
    while degree and np.abs(g[degree - 1]).max() <= _TINY * size:
        degree -= 1  # without a leading coefficient there is a layer to spare: it does nothing
    keep, hop = np.zeros_like(g), np.zeros_like(g)
    keep[: depth - degree] = np.eye(features)
    rest = g[:degree]
    for k in range(depth - 1, depth - degree - 1, -1):
        step = _outermost(rest, points)
        if step is None:
            return None
        keep[k], hop[k], rest = step
    return keep, hop


def _outermost(g: Array, points: Array) -> tuple[Array, Array, Array] | None:
    """p, q and the quotient of the best a₀.

    Where all coefficients have a kernel in common (columns that no power of A mentions any more), a pseudo-inverse will do.
    """
    at = points[:, None, None]
    value, quotient = np.zeros((len(points), *g.shape[1:])), np.zeros((len(points), len(g) - 1, *g.shape[1:]))
    for j in range(len(g) - 1, 0, -1):
        value = value * at + g[j]
        quotient[:, j - 1] = value
    value = value * at + g[0]
    seen = _rank(g.reshape(-1, g.shape[2])[None])[0]
    sound = np.nonzero(_rank(value) == seen)[0]
    if not len(sound) or seen == 0:
        return (np.eye(g.shape[1]), np.zeros(g.shape[1:]), g[:-1]) if seen == 0 else None
    inverse = np.linalg.inv if seen == g.shape[1] else np.linalg.pinv
    left = quotient[sound] @ inverse(value[sound])[:, None]
    sizes = np.maximum(np.abs(value[sound]).max(axis=(1, 2)), np.abs(left).max(axis=(1, 2, 3), initial=0.0))
    best = int(np.argmin(sizes))
    chosen = sound[best]
    return -points[chosen] * value[chosen], value[chosen], left[best]


def _rank(matrices: Array) -> NDArray[np.int64]:
    if matrices.shape[1:] == (1, 1):
        return (matrices[:, 0, 0] != 0).astype(np.int64)
    values = np.linalg.svd(matrices, compute_uv=False)
    return (values > _SINGULAR * values[:, :1]).sum(axis=1)
