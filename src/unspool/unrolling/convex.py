r"""Looking for a reading that is convex and stable: every layer with α, β ≥ 0 and a step of at most 2/L.

In p = 1 − 2η(α + β) and q = 2ηβ (:mod:`unspool.unrolling.division`) that is q ≥ 0 and |p| + q ≤ 1: a triangle, whose corners are the
layers H ← A H, H ← H and H ← 2X − H. Hop coefficients c ≥ 0 that sum to one always have such a reading, with p = 0. Negative ones
need layers with p < 0, steps of more than half of what is allowed; which, is found by a search: divide by one layer after the
other (outermost first), keep the few quotients that are nearest to c ≥ 0, and stop as soon as one is there.

A layer of the triangle never lengthens a polynomial (in the sum of absolute coefficients), so what is cut off inside is as small
outside. Every tail sum of a convex stable network lies in [−1, 1], which ends most searches at once.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from unspool.unrolling.division import Array, horner

Indices = NDArray[np.intp]

#: What a hop coefficient may fall below zero to be taken as zero.
_NEGLIGIBLE = 1e-12
#: Candidates for a₀, as arsinh a₀: from where a layer mostly keeps (p/q = 10⁶) over A H to where it mostly reflects.
_GRID: Array = np.linspace(-14.0, 14.0, 241)
#: Candidates for |p| + q.
_LEVELS = (0.02, 0.08, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 0.97, 1.0)
_HALVINGS = 44
#: How many quotients to keep, how far apart, and what not to like in them: tried in turn.
_TRIES: tuple[tuple[int, float, Callable[[Array], Array]], ...] = (
    (12, 0.08, lambda negative: negative.sum(axis=1)),
    (24, 0.03, lambda negative: negative.max(axis=1)),
    (48, 0.01, lambda negative: np.square(negative).sum(axis=1)),
)


def convex_steps(g: Array) -> tuple[Array, Array] | None:
    """Layers (p, q) in the triangle q ≥ 0, |p| + q ≤ 1, first to last; None where none was found.

    Args:
        g: tail sums of hop coefficients that sum to one.

    Example:
        >>> import numpy as np
        >>> from unspool.unrolling.division import tails, unrolled
        >>> keep, hop = convex_steps(tails(np.array([0.4836, 0.36, -0.1308, 0.2872])))
        >>> bool((hop >= 0).all() and (np.abs(keep) + hop <= 1 + 1e-12).all())
        True
        >>> unrolled(keep, hop).round(4)
        array([ 0.4836,  0.36  , -0.1308,  0.2872])
    """
    for width, apart, dislike in _TRIES:
        found = _search(g, width, apart, dislike)
        if found is not None:
            return found
    return None


def _search(g: Array, width: int, apart: float, dislike: Callable[[Array], Array]) -> tuple[Array, Array] | None:
    depth = len(g)
    rest, path = g[None], np.zeros((1, 0, 2))
    for left in range(depth, 0, -1):
        possible = (np.abs(rest).max(axis=1) <= 1 + _NEGLIGIBLE) & (rest[:, -1] >= -_NEGLIGIBLE)
        rest, path = rest[possible], path[possible]
        if not len(rest):
            return None
        negative = np.maximum(-_hops(rest), 0.0)
        best = int(np.argmin(negative.max(axis=1)))
        if negative[best].max() <= _NEGLIGIBLE:
            return _joined(*horner(_cleaned(rest[best])), path[best])
        few = _chosen(rest, dislike(negative), width, apart)
        rest, path = rest[few], path[few]
        if left == 2:
            return _last_two(rest, path)
        parent, keep, hop, rest = _divided(rest)
        path = np.concatenate([path[parent], np.stack([keep, hop], axis=1)[:, None]], axis=1)
    return None


def _chosen(rest: Array, dislike: Array, width: int, apart: float) -> list[int]:
    """The best few that differ from one another: without that, neighbours of one candidate fill the list."""
    few: list[int] = []
    for one in np.argsort(dislike, kind="stable")[: 8 * width]:
        if not few or float(np.abs(rest[few] - rest[one]).max(axis=1).min()) > apart:
            few.append(int(one))
        if len(few) == width:
            break
    return few


def _divided(rest: Array) -> tuple[Indices, Array, Array, Array]:
    """All candidates for the outermost layer of all quotients: whose it is, p, q, and what is left."""
    parent, where, hop = _candidates(rest)
    keep = -where * hop
    quotient = _quotients(rest[parent], where, keep, hop)
    # A pure reflection, H ← 2X − H, where the highest hop has nothing to say.
    spent = np.nonzero(np.abs(rest[:, -1]) <= _NEGLIGIBLE)[0]
    parent = np.concatenate([parent, spent])
    keep = np.concatenate([keep, -np.ones(len(spent))])
    hop = np.concatenate([hop, np.zeros(len(spent))])
    quotient = np.concatenate([quotient, -rest[spent, :-1]])
    sound = np.isfinite(quotient).all(axis=1)
    return parent[sound], keep[sound], hop[sound], quotient[sound]


def _candidates(rest: Array) -> tuple[Indices, Array, Array]:
    """Pairs (a₀, q = g(a₀)) with 0 < q (1 + |a₀|) ≤ 1: on the grid, and where it comes up to one of the levels."""
    size = _sizes(rest[:, None], _GRID)
    parents, cells, levels = [], [], []
    for level in _LEVELS:
        parent, cell = np.nonzero((size[:, :-1] > level) != (size[:, 1:] > level))
        parents.append(parent)
        cells.append(cell)
        levels.append(np.full(len(parent), level))
    parent, cell, level = (np.concatenate(part) for part in (parents, cells, levels))
    crossing, reached = _crossing(rest[parent], level, _GRID[cell], _GRID[cell + 1], size[parent, cell] > level)
    # Trap: far outside [−1, 1] a polynomial cannot be evaluated to any digit, but the level is known, and dividing from
    # the lowest power up forgives what a₀ is off.
    reached = np.where(np.abs(np.sinh(crossing)) <= 1, reached, level)
    inside, point = np.nonzero((size > 1e-3) & (size <= 1))
    where = np.sinh(np.concatenate([crossing, _GRID[point[::3]]]))
    reached = np.concatenate([reached, size[inside, point][::3]])
    return np.concatenate([parent, inside[::3]]), where, reached / (1 + np.abs(where))


def _sizes(g: Array, where: Array) -> Array:
    """g(a₀)(1 + |a₀|), which is |p| + q where it is positive, at arsinh a₀."""
    where = np.sinh(where)
    value = np.zeros(np.broadcast_shapes(g.shape[:-1], where.shape))
    with np.errstate(over="ignore"):  # far outside, and then it is no candidate
        for j in range(g.shape[-1] - 1, -1, -1):
            value = value * where + g[..., j]
        return value * (1 + np.abs(where))


def _crossing(g: Array, level: Array, low: Array, high: Array, falls: NDArray[np.bool_]) -> tuple[Array, Array]:
    """Where the size crosses the level between two ends, on its lower side, and the size there: bisection."""
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        above = _sizes(g, middle) > level
        low, high = np.where(above == falls, middle, low), np.where(above == falls, high, middle)
    where = np.where(falls, high, low)
    return where, _sizes(g, where)


def _quotients(g: Array, where: Array, keep: Array, hop: Array) -> Array:
    """(g − q)/(p + q a), from the highest power down where |a₀| ≤ 1 and from the lowest up elsewhere: no errors grow."""
    down, up = np.zeros((len(g), g.shape[1] - 1)), np.zeros((len(g), g.shape[1] - 1))
    carry = np.zeros(len(g))
    with np.errstate(all="ignore"):
        for j in range(g.shape[1] - 1, 0, -1):
            carry = g[:, j] + where * carry
            down[:, j - 1] = carry / hop
        carry = np.ones(len(g))
        for j in range(g.shape[1] - 1):
            carry = (g[:, j] - hop * carry) / keep
            up[:, j] = carry
    return np.where(np.abs(where)[:, None] <= 1, down, up)


def _last_two(rest: Array, path: Array) -> tuple[Array, Array] | None:
    """Two layers, g = g₀ + g₁ a with g₁ > g₀ (otherwise c ≥ 0): q = (1, g₁), p = (0, g₀ − g₁) if any."""
    fits = np.nonzero((rest[:, 1] > 0) & (2 * rest[:, 1] - rest[:, 0] <= 1 + _NEGLIGIBLE))[0]
    if not len(fits):
        return None
    first, second = rest[fits[0]]
    return _joined(np.array([0.0, first - second]), np.array([1.0, second]), path[fits[0]])


def _hops(g: Array) -> Array:
    return np.concatenate([1 - g[:, :1], g[:, :-1] - g[:, 1:], g[:, -1:]], axis=1)


def _cleaned(g: Array) -> Array:
    """The tail sums of c with what lies below zero by rounding, or just above, set to zero."""
    c = _hops(g[None])[0]
    c[c < _NEGLIGIBLE] = 0.0
    c /= c.sum()
    return np.cumsum(c[::-1])[::-1][1:]


def _joined(keep: Array, hop: Array, path: Array) -> tuple[Array, Array]:
    return np.concatenate([keep, path[::-1, 0]]), np.concatenate([hop, path[::-1, 1]])
