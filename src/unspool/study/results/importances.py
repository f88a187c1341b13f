"""Which hyper-parameters matter: how much of the spread of validation scores each of them explains."""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unspool.errors import IncompatibleError
from unspool.study.results.best import Best, Measure, measure
from unspool.study.results.exporting import order
from unspool.study.results.trial_table import TrialTable
from unspool.text import printable

#: A number with more values than this is continuous: the one-way method cuts it at its quartiles.
MANY = 8

#: The forest is asked at so many points.
POINTS = 256


class Method(Enum):
    """How the shares were found.

    ``GRID``: exactly, from every combination of values. ``FOREST``: from a random forest fitted to the settings that were
    tried. ``ONE_WAY``: variance between the values (or quartiles) of each hyper-parameter on its own, which cannot separate
    those that happen to go together; mistrust it below a few hundred settings.
    """

    GRID = "functional ANOVA on the full grid"
    FOREST = "functional ANOVA of a random forest"
    ONE_WAY = "one-way analysis of variance"


@dataclass(frozen=True)
class Importance:
    """Shares of the variance of the mean validation score between settings.

    Attributes:
        shares: of each hyper-parameter alone, largest first.
        interactions: of each pair beyond its two members (full grids only).
        rest: of everything else; all shares together are 1.
        method, target: how it was found, and of what.
        note: what one should know, such as hyper-parameters that only move together.

    Example:
        >>> from unspool.study.results.trial_table import example_table
        >>> print(importance(example_table()))
        functional ANOVA on the full grid: what explains the validation score of 6 settings
        dropout            ███████████████              52 %
        model              ████████████                 44 %
        model × dropout    █                            4 %
    """

    shares: Mapping[str, float]
    interactions: Mapping[tuple[str, str], float]
    rest: float
    method: Method
    target: Measure
    count: int
    note: str = ""

    def bars(self) -> list[tuple[str, float]]:
        """Everything with a name, as drawn and printed; interactions from 0.5 per cent on."""
        pairs = sorted(self.interactions.items(), key=lambda pair: -pair[1])
        named = [(f"{a} × {b}", share) for (a, b), share in pairs if share >= 0.005]
        hidden = sum(share for _, share in pairs if share < 0.005)
        rest = self.rest + hidden
        return [*self.shares.items(), *named, *([("the rest", rest)] if rest >= 0.005 else [])]

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        bars = self.bars()
        wide = max(len(name) for name, _ in bars)
        head = f"{self.method.value}: what explains the {self.target.value} of {self.count} settings"
        lines = [
            f"{name.ljust(wide)}    {('█' * round(28 * share)).ljust(28)} {100 * share:.0f} %" for name, share in bars
        ]
        return printable("\n".join([head, *lines, *([f"({self.note})"] if self.note else [])]))


def importance(
    table: TrialTable,
    target: Measure = Measure.VALID_SCORE,
    over: str | Sequence[str] = "seed",
    method: Method | None = None,
) -> Importance:
    r"""How much of the variance between settings each varied hyper-parameter explains.

    On a full grid with values :math:`y` this is the functional analysis of variance: the share of one hyper-parameter is
    :math:`\operatorname{Var}_i(\operatorname{E}[y \mid x_i]) / \operatorname{Var}(y)`, that of a pair what the two explain
    together and not alone. For random searches and unfinished grids a random forest stands for :math:`y` (if scikit-learn
    is installed), with all hyper-parameters taken to be independent; otherwise each is looked at on its own. Settings
    that diverged count as the worst of the others.

    Args:
        table: trials on one dataset.
        target: what is explained.
        over: what is averaged over first.
        method: the best that fits, when omitted.

    Example:
        >>> from unspool.study.results.trial_table import example_table
        >>> round(importance(example_table().filter(model="GCN")).shares["dropout"], 6)
        1.0
    """
    target = measure(target)
    groups, values = _outcomes(table, target, over)
    columns, note = _columns(groups)
    grid = _full_grid(columns, values)
    if method is None:
        forest = importlib.util.find_spec("sklearn") is not None
        method = Method.GRID if grid is not None else Method.FOREST if forest else Method.ONE_WAY
    pairs: dict[tuple[str, str], float] = {}
    if method is Method.GRID:
        if grid is None:
            raise IncompatibleError(
                "the settings are not a full grid, since some combinations are missing; leave method= out"
            )
        shares, pairs = _anova(list(columns), grid)
    else:
        shares = (_forest if method is Method.FOREST else _one_way)(columns, values)
        # Estimates of independent shares may sum to a little more than one.
        shares = {name: share / max(1.0, sum(shares.values())) for name, share in shares.items()}
    rest = max(0.0, 1 - sum(shares.values()) - sum(pairs.values()))
    ranked = dict(sorted(shares.items(), key=lambda item: -item[1]))
    return Importance(ranked, pairs, rest, method, target, len(groups), note)


# -- what is explained, and by what ------------------------------------------------------------------------------------


def _outcomes(
    table: TrialTable, target: Measure, over: str | Sequence[str]
) -> tuple[tuple[Best, ...], NDArray[np.float64]]:
    """Every group, and the mean of what is explained."""
    groups = table.groups(over)
    if len({g.data for g in groups}) > 1:
        raise IncompatibleError("scores on several datasets cannot be compared; use filter(data=...) first")
    if len(groups) < 2:
        raise IncompatibleError(f"{len(groups)} finished setting: importance needs at least two that differ")
    score = target is Measure.VALID_SCORE
    means = np.array([math.nan if g.diverged else (g.valid if score else g.loss).mean for g in groups])
    fine = means[np.isfinite(means)]
    if fine.size < 2 or np.ptp(fine) <= 1e-12 * np.abs(fine).max():
        raise IncompatibleError(f"all settings have the same {target.value}, so there is nothing to explain")
    return groups, np.where(np.isfinite(means), means, fine.min() if score else fine.max())


def _columns(groups: Sequence[Best]) -> tuple[dict[str, list[Any]], str]:
    """The values of each varied hyper-parameter; of those that only move together, the first."""
    columns: dict[str, list[Any]] = {}
    notes: list[str] = []
    models = [g.model for g in groups]
    for name in groups[0].varied:
        values = [g.settings.get(name) for g in groups]
        if len(set(values)) < 2:
            continue
        twin = next((other for other, known in columns.items() if _together(known, values, models)), None)
        if twin is None:
            columns[name] = values
        else:
            notes.append(f"{name} moves with {twin}")
    return columns, "; ".join(notes)


def _together(one: Sequence[Any], other: Sequence[Any], models: Sequence[str]) -> bool:
    """Whether two hyper-parameters only move together."""
    if _codes(one) != _codes(other):
        return False
    # Trap: where every setting of a model has its own values, as in random searches, all columns have equal codes. Then the
    # order decides.
    first, second = _placed(one), _placed(other)
    return (
        len(set(zip(models, one, strict=True))) < len(one)
        or first == second
        or first == [len(one) - 1 - place for place in second]
    )


def _codes(values: Sequence[Any]) -> list[int]:
    """Which values are equal, whatever they are."""
    seen: dict[Any, int] = {}
    return [seen.setdefault(value, len(seen)) for value in values]


# -- methods -----------------------------------------------------------------------------------------------------------


def _full_grid(columns: Mapping[str, Sequence[Any]], values: NDArray[np.float64]) -> NDArray[np.float64] | None:
    """The values with one axis for each hyper-parameter, or nothing where a combination is missing or doubled."""
    codes = [_codes(held) for held in columns.values()]
    shape = [max(code) + 1 for code in codes]
    places = set(zip(*codes, strict=True))
    if len(places) != len(values) or math.prod(shape) != len(values):
        return None
    grid = np.empty(shape)
    grid[tuple(np.array(code) for code in codes)] = values
    return grid


def _anova(names: list[str], grid: NDArray[np.float64]) -> tuple[dict[str, float], dict[tuple[str, str], float]]:
    centred = grid - grid.mean()
    total = float((centred**2).mean())

    def effect(*kept: int) -> NDArray[np.float64]:
        return centred.mean(axis=tuple(k for k in range(grid.ndim) if k not in kept), keepdims=True)

    mains = {names[i]: float((effect(i) ** 2).mean()) / total for i in range(grid.ndim)}
    both = combinations(range(grid.ndim), 2)
    pairs = {(names[i], names[j]): float(((effect(i, j) - effect(i) - effect(j)) ** 2).mean()) / total for i, j in both}
    return mains, pairs


def _forest(columns: Mapping[str, Sequence[Any]], values: NDArray[np.float64]) -> dict[str, float]:
    """Mean predictions along one hyper-parameter, all others drawn independently from the values they had."""
    try:
        from sklearn.ensemble import RandomForestRegressor
    except ImportError:
        raise ValueError("a random forest needs scikit-learn: pip install 'unspool[sklearn]'") from None

    # A tree sees only the order of values, so rates need no logarithm.
    held = np.array([_placed(column) for column in columns.values()], dtype=float).T
    forest = RandomForestRegressor(n_estimators=64, min_samples_leaf=2, random_state=0, n_jobs=1).fit(held, values)
    draw = np.random.default_rng(0)
    anywhere = np.stack([draw.choice(column, POINTS) for column in held.T], axis=1)
    total = float(np.var(forest.predict(anywhere)))
    shares: dict[str, float] = {}
    for k, name in enumerate(columns):
        levels, counts = np.unique(held[:, k], return_counts=True)
        if len(levels) > 4 * MANY:
            levels, counts = np.quantile(held[:, k], (np.arange(4 * MANY) + 0.5) / (4 * MANY)), np.ones(4 * MANY)
        asked = np.repeat(anywhere[None], len(levels), axis=0)
        asked[:, :, k] = levels[:, None]
        means = forest.predict(asked.reshape(-1, held.shape[1])).reshape(len(levels), POINTS).mean(1)
        shares[name] = float(np.cov(means, fweights=counts.astype(int), ddof=0)) / total if total else 0.0
    return shares


def _one_way(columns: Mapping[str, Sequence[Any]], values: NDArray[np.float64]) -> dict[str, float]:
    """Variance between values less what chance alone would give (epsilon squared)."""
    shares: dict[str, float] = {}
    total = float(((values - values.mean()) ** 2).sum())
    for name, column in columns.items():
        code = np.array(_quartiles(column) if len(set(column)) > MANY else _codes(column))
        parts = [values[code == c] for c in np.unique(code)]
        within = sum(float(((part - part.mean()) ** 2).sum()) for part in parts)
        free = len(values) - len(parts)
        noise = within / free if free else total
        shares[name] = max(0.0, (total - within - (len(parts) - 1) * noise) / total)
    return shares


def _quartiles(column: Sequence[Any]) -> list[int]:
    """Which quarter each value lies in; quarters are the same on a logarithmic scale."""
    placed = np.array(_placed(column), dtype=float)
    return [int(q) for q in np.searchsorted(np.quantile(placed, [0.25, 0.5, 0.75]), placed)]


def _placed(column: Sequence[Any]) -> list[float]:
    """The place of each value among the others in order."""
    places = {value: float(k) for k, value in enumerate(sorted(set(column), key=order))}
    return [places[value] for value in column]
