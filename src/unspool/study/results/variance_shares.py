"""How much of a variance each of several columns explains: on full grids, with a random forest, and one by one."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unspool.study.results.exporting import order

#: A number with more values than this is continuous: the one-way method cuts it at its quartiles.
MANY = 8

#: The forest is asked at so many points.
POINTS = 256


def codes_of(values: Sequence[Any]) -> list[int]:
    """Which values are equal, whatever they are."""
    seen: dict[Any, int] = {}
    return [seen.setdefault(value, len(seen)) for value in values]


def full_grid(columns: Mapping[str, Sequence[Any]], values: NDArray[np.float64]) -> NDArray[np.float64] | None:
    """The values with one axis for each hyper-parameter, or nothing where a combination is missing or doubled."""
    codes = [codes_of(held) for held in columns.values()]
    shape = [max(code) + 1 for code in codes]
    places = set(zip(*codes, strict=True))
    if len(places) != len(values) or math.prod(shape) != len(values):
        return None
    grid = np.empty(shape)
    grid[tuple(np.array(code) for code in codes)] = values
    return grid


def anova(names: list[str], grid: NDArray[np.float64]) -> tuple[dict[str, float], dict[tuple[str, str], float]]:
    """The share of each axis of a full grid, and what each pair explains beyond its two members."""
    centred = grid - grid.mean()
    total = float((centred**2).mean())

    def effect(*kept: int) -> NDArray[np.float64]:
        return centred.mean(axis=tuple(k for k in range(grid.ndim) if k not in kept), keepdims=True)

    mains = {names[i]: float((effect(i) ** 2).mean()) / total for i in range(grid.ndim)}
    both = combinations(range(grid.ndim), 2)
    pairs = {(names[i], names[j]): float(((effect(i, j) - effect(i) - effect(j)) ** 2).mean()) / total for i, j in both}
    return mains, pairs


def forest_shares(
    columns: Mapping[Any, Sequence[Any]], values: NDArray[np.float64], wanted: Collection[Any] | None = None
) -> dict[Any, float]:
    """Mean predictions along one hyper-parameter, all others drawn independently from the values they had; of those wanted, or of all."""
    try:
        from sklearn.ensemble import RandomForestRegressor
    except ImportError:
        raise ValueError("a random forest needs scikit-learn: pip install 'unspool[sklearn]'") from None

    # A tree sees only the order of values, so rates need no logarithm.
    held = np.array([places_of(column) for column in columns.values()], dtype=float).T
    forest = RandomForestRegressor(n_estimators=64, min_samples_leaf=2, random_state=0, n_jobs=1).fit(held, values)
    draw = np.random.default_rng(0)
    anywhere = np.stack([draw.choice(column, POINTS) for column in held.T], axis=1)
    total = float(np.var(forest.predict(anywhere)))
    shares: dict[Any, float] = {}
    for k, name in enumerate(columns):
        if wanted is not None and name not in wanted:
            continue
        levels, counts = np.unique(held[:, k], return_counts=True)
        if len(levels) > 4 * MANY:
            levels, counts = np.quantile(held[:, k], (np.arange(4 * MANY) + 0.5) / (4 * MANY)), np.ones(4 * MANY)
        asked = np.repeat(anywhere[None], len(levels), axis=0)
        asked[:, :, k] = levels[:, None]
        means = forest.predict(asked.reshape(-1, held.shape[1])).reshape(len(levels), POINTS).mean(1)
        shares[name] = float(np.cov(means, fweights=counts.astype(int), ddof=0)) / total if total else 0.0
    return shares


def one_way_shares(
    columns: Mapping[Any, Sequence[Any]], values: NDArray[np.float64], wanted: Collection[Any] | None = None
) -> dict[Any, float]:
    """Variance between values less what chance alone would give (epsilon squared); of those wanted, or of all."""
    shares: dict[Any, float] = {}
    total = float(((values - values.mean()) ** 2).sum())
    for name, column in columns.items():
        if wanted is not None and name not in wanted:
            continue
        code = np.array(_quartiles(column) if len(set(column)) > MANY else codes_of(column))
        parts = [values[code == c] for c in np.unique(code)]
        within = sum(float(((part - part.mean()) ** 2).sum()) for part in parts)
        free = len(values) - len(parts)
        noise = within / free if free else total
        shares[name] = max(0.0, (total - within - (len(parts) - 1) * noise) / total)
    return shares


def _quartiles(column: Sequence[Any]) -> list[int]:
    """Which quarter each value lies in; quarters are the same on a logarithmic scale."""
    placed = np.array(places_of(column), dtype=float)
    return [int(q) for q in np.searchsorted(np.quantile(placed, [0.25, 0.5, 0.75]), placed)]


def places_of(column: Sequence[Any]) -> list[float]:
    """The place of each value among the others in order."""
    places = {value: float(k) for k, value in enumerate(sorted(set(column), key=order))}
    return [places[value] for value in column]
