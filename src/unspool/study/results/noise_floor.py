"""How important a hyper-parameter looks that does nothing: the floor under importances.

A hyper-parameter always explains a little of the variance, because settings differ by chance. Its floor is what it would explain if it changed
nothing: its values are dealt out anew at random, many times, and 95 per cent of the shares that come of it lie below the floor.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unspool.study.results.variance_shares import places_of

#: So often values are dealt out anew; a forest is fitted for each, so it gets fewer.
SHUFFLES, FORESTS = 400, 20
#: The part of the shuffled shares that lies below the floor.
QUANTILE = 0.95

#: Shares of some of the columns of a table.
Shares = Callable[[Mapping[Any, Sequence[Any]], NDArray[np.float64], Sequence[Any]], dict[Any, float]]


def floors_of_grid(names: Sequence[str], trials: NDArray[np.float64]) -> dict[str, float]:
    """The floor of each axis of a full grid of trials.

    The values of a hyper-parameter are shuffled among trials that have everything else in common, the seed included, so what the others
    do stays as it is, and a split that is hard for all counts for none.

    Args:
        names: of the axes.
        trials: scores, an axis for each name and a last one for the seeds.

    Example:
        >>> scores = np.array([[0.70, 0.71, 0.72], [0.80, 0.81, 0.82], [0.90, 0.91, 0.92]])  # the rows explain nearly all
        >>> 0.3 < floors_of_grid(["lr"], scores)["lr"] < 1
        True
    """
    draw = np.random.default_rng(0)
    means = trials.mean(-1)
    total = float(((means - means.mean()) ** 2).mean())
    floors: dict[str, float] = {}
    for axis, name in enumerate(names):
        others = tuple(k for k in range(trials.ndim) if k != axis)
        shares = [draw.permuted(trials, axis=axis).mean(others).var() / total for _ in range(SHUFFLES)]
        floors[name] = float(np.quantile(shares, QUANTILE))
    return floors


def floors_of_columns(
    shares: Shares, rounds: int, columns: Mapping[str, Sequence[Any]], values: NDArray[np.float64]
) -> dict[str, float]:
    """The floor of each column: what a shuffled copy of it explains that stands beside the real ones.

    Args:
        shares: the method that the real shares were found with.
        rounds: so many copies of each.
        columns: the settings that were tried.
        values: their scores.

    Example:
        >>> from unspool.study.results.variance_shares import one_way_shares
        >>> column = [k % 4 for k in range(40)]
        >>> floors_of_columns(one_way_shares, 50, {"lr": column}, np.array(column, dtype=float))["lr"] < 0.5
        True
    """
    draw = np.random.default_rng(0)
    found: dict[str, list[float]] = {name: [] for name in columns}
    for _ in range(rounds):
        copies = {(name, "shuffled"): draw.permutation(places_of(column)).tolist() for name, column in columns.items()}
        explained = shares({**columns, **copies}, values, list(copies))
        for name in columns:
            found[name].append(explained[name, "shuffled"])
    return {name: float(np.quantile(one, QUANTILE)) for name, one in found.items()}
