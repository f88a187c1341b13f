"""Which hyper-parameters matter: how much of the spread of validation scores each of them explains."""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unspool.errors import IncompatibleError
from unspool.study.results.best import Best, Measure, measure
from unspool.study.results.noise_floor import FORESTS, SHUFFLES, floors_of_columns, floors_of_grid
from unspool.study.results.trial_table import TrialTable
from unspool.study.results.variance_shares import anova, codes_of, forest_shares, full_grid, one_way_shares, places_of
from unspool.text import printable


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
        floors: what each hyper-parameter would explain if it changed nothing (:mod:`unspool.study.results.noise_floor`).
        method, target: how it was found, and of what.
        note: what one should know, such as hyper-parameters that only move together.

    Example:
        >>> from unspool.study.results.trial_table import example_table
        >>> print(importance(example_table()))
        functional ANOVA on the full grid: what explains the validation score of 6 settings
        dropout            ███████████████              52 %  (chance gives up to 28 %)
        model              ████████████                 44 %  (chance gives up to 20 %)
        model × dropout    █                            4 %
    """

    shares: Mapping[str, float]
    interactions: Mapping[tuple[str, str], float]
    rest: float
    method: Method
    target: Measure
    count: int
    floors: Mapping[str, float]
    note: str = ""

    @property
    def noise(self) -> tuple[str, ...]:
        """The hyper-parameters that explain no more than chance would."""
        return tuple(name for name, share in self.shares.items() if share <= self.floors[name])

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
            f"{name.ljust(wide)}    {('█' * round(28 * share)).ljust(28)} {100 * share:.0f} %{self._floor(name)}"
            for name, share in bars
        ]
        return printable("\n".join([head, *lines, *([f"({self.note})"] if self.note else [])]))

    def _floor(self, name: str) -> str:
        if name not in self.floors:
            return ""
        return f"  ({'no more than chance, which gives' if name in self.noise else 'chance gives'} up to {100 * self.floors[name]:.0f} %)"


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
    that diverged count as the worst of the others. Every share has a floor, what the hyper-parameter would explain if it changed nothing
    (:mod:`unspool.study.results.noise_floor`); a share below its floor says nothing.

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
    grid = full_grid(columns, values)
    if method is None:
        forest = importlib.util.find_spec("sklearn") is not None
        method = Method.GRID if grid is not None else Method.FOREST if forest else Method.ONE_WAY
    pairs: dict[tuple[str, str], float] = {}
    if method is Method.GRID:
        if grid is None:
            raise IncompatibleError(
                "the settings are not a full grid, since some combinations are missing; leave method= out"
            )
        shares, pairs = anova(list(columns), grid)
        floors = floors_of_grid(list(columns), _trials(columns, groups, values, target))
    else:
        find, rounds = (forest_shares, FORESTS) if method is Method.FOREST else (one_way_shares, SHUFFLES)
        shares = find(columns, values)
        floors = floors_of_columns(find, rounds, columns, values)
        # Estimates of independent shares may sum to a little more than one.
        shares = {name: share / max(1.0, sum(shares.values())) for name, share in shares.items()}
    rest = max(0.0, 1 - sum(shares.values()) - sum(pairs.values()))
    ranked = dict(sorted(shares.items(), key=lambda item: -item[1]))
    return Importance(ranked, pairs, rest, method, target, len(groups), floors, note)


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


def _trials(
    columns: Mapping[str, Sequence[Any]], groups: Sequence[Best], values: NDArray[np.float64], target: Measure
) -> NDArray[np.float64]:
    """A full grid with one more axis for the seeds; where settings have different ones, with their means alone."""
    score = target is Measure.VALID_SCORE
    seeds = {g.members for g in groups}
    rows = np.array([(g.valid if score else g.loss).values for g in groups]) if len(seeds) == 1 else values[:, None]
    rows = np.where(
        np.isfinite(rows).all(1, keepdims=True) & np.array([[not g.diverged] for g in groups]), rows, values[:, None]
    )
    layers = [full_grid(columns, rows[:, k]) for k in range(rows.shape[1])]
    return np.stack([layer for layer in layers if layer is not None], axis=-1)


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
    if codes_of(one) != codes_of(other):
        return False
    # Trap: where every setting of a model has its own values, as in random searches, all columns have equal codes. Then the
    # order decides.
    first, second = places_of(one), places_of(other)
    return (
        len(set(zip(models, one, strict=True))) < len(one)
        or first == second
        or first == [len(one) - 1 - place for place in second]
    )
