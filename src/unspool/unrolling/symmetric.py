r"""Layers with matrices, fitted: for symmetric metrics, and where dividing finds no invertible point.

The layers g ← q + g (p + q a) of :mod:`unspool.unrolling.division` with symmetric p and q have (2K − 1) f (f + 1)/2 numbers on f channels
(p of the first layer meets g = 0), and g has K f² coefficients: from K ≥ (f + 1)/2 on there are enough. No formula is known to us, so

1. outer layers are taken off one by one: q = g(Z) and p = −q Z are exact for any matrix Z in the place of a₀, and symmetric for a
   family of Z that Newton's method finds;
2. the few inner layers that are left are fitted all at once by Gauss-Newton with damping.

Both begin at random points, always the same ones; what comes closest is kept.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from unspool.unrolling.division import Array, unrolled

_EXACT = 1e-10
_STEPS = 300


def symmetric_steps(g: Array, tries: int = 12) -> tuple[Array, Array, float]:
    """Symmetric p and q whose layers come nearest to g, first to last, and their error (see :func:`distance`).

    Example:
        >>> import numpy as np
        >>> from unspool.unrolling.division import tails
        >>> hops = np.random.default_rng(0).standard_normal((4, 2, 2))  # three layers on two channels
        >>> keep, hop, error = symmetric_steps(tails(hops @ np.linalg.inv(hops.sum(0))))
        >>> error < 1e-9, bool(np.array_equal(hop, hop.transpose(0, 2, 1)))
        (True, True)
    """
    return _best(_symmetric_tries(g, tries), g)


def fitted_steps(g: Array, tries: int = 4) -> tuple[Array, Array, float]:
    """Any p and q whose layers come nearest to g, and their error."""
    random = np.random.default_rng(0)
    basis = np.eye(g.shape[1] ** 2).reshape(-1, *g.shape[1:])
    return _best((_gauss_newton(g, basis, random) for _ in range(tries)), g)


def distance(keep: Array, hop: Array, g: Array) -> float:
    """The largest error of a hop coefficient that the layers make, relative to the largest one."""
    wanted = np.concatenate([np.eye(g.shape[1])[None] - g[:1], g[:-1] - g[1:], g[-1:]])
    return float(np.abs(unrolled(keep, hop) - wanted).max() / np.abs(wanted).max())


def _best(candidates: Iterator[tuple[Array, Array]], g: Array) -> tuple[Array, Array, float]:
    found, error = None, np.inf
    for keep, hop in candidates:
        new = distance(keep, hop, g)
        if found is None or new < error:
            found, error = (keep, hop), new
        if error <= _EXACT:
            break
    assert found is not None
    return *found, error


def _symmetric_tries(g: Array, tries: int) -> Iterator[tuple[Array, Array]]:
    features = g.shape[1]
    few = (features + 2) // 2 + 1  # one layer more than the count asks for
    basis, random = _symmetric_basis(features), np.random.default_rng(0)
    for number in range(tries):
        rest, outer = g, list[tuple[Array, Array]]()
        while len(rest) > few:
            step = _outermost(rest, (0.0, 0.3, 0.6, 1.0)[number % 4], random)
            if step is None:
                rest, outer = g, []
                break
            outer.insert(0, step[:2])
            rest = step[2]
        for _ in range(2):
            keep, hop = _gauss_newton(rest, basis, random)
            yield np.stack([*keep, *(p for p, _ in outer)]), np.stack([*hop, *(q for _, q in outer)])
    yield _gauss_newton(g, basis, random)


def _symmetric_basis(features: int) -> Array:
    rows, columns = np.triu_indices(features)
    basis = np.zeros((len(rows), features, features))
    number = np.arange(len(rows))
    basis[number, rows, columns] = basis[number, columns, rows] = np.where(rows == columns, 1.0, np.sqrt(0.5))
    return basis


# -- inner layers, all at once ------------------------------------------------------------------------------------------


def _gauss_newton(g: Array, basis: Array, random: np.random.Generator) -> tuple[Array, Array]:
    """Levenberg and Marquardt's method on the values of g at Chebyshev's points, by steps of least length."""
    depth, features = len(g), g.shape[1]
    points = np.cos(np.pi * (np.arange(depth) + 0.5) / depth)
    wanted = np.zeros((depth, features, features))
    for coefficient in g[::-1]:
        wanted = wanted * points[:, None, None] + coefficient
    one = np.einsum("bmn,mn->b", basis, np.eye(features))
    x = 0.3 * random.standard_normal((2 * depth - 1, len(basis)))
    x[0::2] += one * random.uniform(0.3, 0.9, (depth, 1))
    x[1::2] += one * random.uniform(-0.3, 0.5, (depth - 1, 1))
    residual, slope = _linear(*_matrices(x, basis), points, wanted, basis)
    cost, damping, factor = residual @ residual, 1e-3 * np.abs(slope).max() ** 2, 2.0
    goal = 1e-26 * float(np.square(wanted).sum())
    for _ in range(_STEPS):
        if cost <= goal or damping > 1e12:
            break
        normal = slope @ slope.T
        # Trap: where the slope is singular, the least damping must still be seen in its digits.
        normal[np.diag_indices(len(normal))] += damping + 1e-14 * np.abs(slope).max() ** 2
        move = -slope.T @ np.linalg.solve(normal, residual)
        ahead = x + move.reshape(x.shape)
        new = _values(*_matrices(ahead, basis), points)[-1].ravel() - wanted.ravel()
        expected = cost - float(np.square(residual + slope @ move).sum())
        gain = (cost - float(new @ new)) / max(expected, 1e-300)
        if gain > 0:
            x = ahead
            residual, slope = _linear(*_matrices(x, basis), points, wanted, basis)
            cost = residual @ residual
            damping, factor = max(damping * max(0.1, 1 - (2 * min(gain, 1.0) - 1) ** 3), 1e-16), 2.0
        else:
            damping, factor = damping * factor, 2 * factor
    return _matrices(x, basis)


def _matrices(x: Array, basis: Array) -> tuple[Array, Array]:
    """p and q of each layer; the first p is of no use and zero."""
    all_of_them = np.einsum("kb,bmn->kmn", x, basis)
    return np.concatenate([np.zeros_like(all_of_them[:1]), all_of_them[1::2]]), all_of_them[0::2]


def _values(keep: Array, hop: Array, points: Array) -> Array:
    """g after each layer, at each point."""
    value = np.zeros((len(hop) + 1, len(points), *hop.shape[1:]))
    for k, (p, q) in enumerate(zip(keep, hop, strict=True)):
        value[k + 1] = value[k] @ (p + points[:, None, None] * q) + q
    return value


def _linear(keep: Array, hop: Array, points: Array, wanted: Array, basis: Array) -> tuple[Array, Array]:
    """The residual and its derivative by every number of the layers."""
    value, eye = _values(keep, hop, points), np.eye(hop.shape[1])
    after = np.broadcast_to(eye, wanted.shape)
    columns: list[Array] = []
    for k in range(len(hop) - 1, -1, -1):
        turned = np.einsum("bmn,znj->zbmj", basis, after)
        columns.insert(0, np.einsum("zim,zbmj->zijb", points[:, None, None] * value[k] + eye, turned))
        if k:
            columns.insert(0, np.einsum("zim,zbmj->zijb", value[k], turned))
        after = (keep[k] + points[:, None, None] * hop[k]) @ after
    return (value[-1] - wanted).ravel(), np.concatenate(columns, axis=-1).reshape(wanted.size, -1)


# -- outer layers, one by one -------------------------------------------------------------------------------------------


def _outermost(g: Array, spread: float, random: np.random.Generator) -> tuple[Array, Array, Array] | None:
    """Symmetric p, q and the quotient, of the start that leaves the smallest numbers; None where Newton fails from all."""
    features, found = g.shape[1], list[tuple[float, tuple[Array, Array, Array]]]()
    for point in (0.0, 0.5, -0.5, 0.9, -0.9):
        z = _symmetric_point(g, point * np.eye(features) + spread * random.standard_normal((features, features)))
        if z is None:
            continue
        value, quotient = np.zeros_like(z), np.zeros_like(g[:-1])
        for j in range(len(g) - 1, 0, -1):
            value = value @ z + g[j]
            quotient[j - 1] = value
        hop = value @ z + g[0]
        keep = -hop @ z
        hop, keep = (hop + hop.T) / 2, (keep + keep.T) / 2
        if np.linalg.cond(hop) < 1e8:
            rest = quotient @ np.linalg.inv(hop)
            found.append((max(float(np.abs(m).max()) for m in (keep, hop, rest)), (keep, hop, rest)))
    return min(found, key=lambda pair: pair[0])[1] if found else None


def _symmetric_point(g: Array, z: Array) -> Array | None:
    """Newton's method for a matrix Z with g(Z) and g(Z) Z symmetric; None where it does not arrive."""
    features = len(z)
    upper = np.triu_indices(features, 1)
    turns = np.eye(features**2).reshape(-1, features, features)

    def skew(m: Array) -> Array:
        return (m - m.swapaxes(-1, -2))[..., upper[0], upper[1]]

    for _ in range(30):
        value, slope = np.zeros_like(z), np.zeros_like(turns)
        for coefficient in g[::-1]:
            slope = slope @ z + value @ turns
            value = value @ z + coefficient
        residual = np.concatenate([skew(value), skew(value @ z)])
        size = float(np.abs(residual).max(initial=0.0))
        if not np.isfinite(size) or size > 1e6:
            return None
        if size <= 1e-12 * max(1.0, float(np.abs(value).max())):
            return z
        across = np.concatenate([skew(slope), skew(slope @ z + value @ turns)], axis=1)
        normal = across.T @ across + 1e-3 * min(size, 1.0) * np.eye(len(residual))
        z = z - (across @ np.linalg.solve(normal, residual)).reshape(features, features)
    return None
