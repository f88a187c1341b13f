"""Whether two groups of trials differ by more than their seeds do."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unspool.errors import IncompatibleError
from unspool.study.results.best import Best
from unspool.study.results.exporting import shown
from unspool.study.results.trial_table import TrialTable
from unspool.text import printable
from unspool.train.loss import SHARES

#: Fewer pairs than this give bootstrap intervals that are too narrow, so theirs are Student's.
FEW = 6


class Test(Enum):
    """Which test gives the p-value, both two-sided and on the differences of pairs.

    ``WILCOXON`` asks only for symmetric differences; with few pairs it cannot give small values (0.06 at best for five).
    Its distribution is exact, ties included, and pairs without a difference are left out.
    """

    __test__ = False  # pytest collects classes by this name

    PAIRED_T = "paired t-test"
    WILCOXON = "Wilcoxon signed-rank test"


@dataclass(frozen=True)
class Comparison:
    """Two groups of trials on the same seeds.

    Attributes:
        a, b: the groups.
        members: the seeds (or seeds and datasets) of the pairs; ``a_scores``, ``b_scores``: test scores in that order.
        difference: mean of a − b; ``low``, ``high``: its confidence interval; ``effect``: it over the standard deviation
            of the differences.
        p_value: of the test; ``corrected``: the same after Holm's correction, where several were made.
        missing_a, missing_b: members that only the other side has.
        note: what one should know before quoting the numbers.

    Example:
        >>> from unspool.study.results.trial_table import example_table
        >>> found = compare(example_table(seeds=4), "UGDGNN", {"model": "GCN", "dropout": 0.2})
        >>> round(found.difference, 4), found.n
        (0.0239, 4)
    """

    a: Best
    b: Best
    members: tuple[tuple[Any, ...], ...]
    a_scores: tuple[float, ...]
    b_scores: tuple[float, ...]
    difference: float
    low: float
    high: float
    p_value: float
    effect: float
    test: Test
    confidence: float
    corrected: float | None = None
    missing_a: tuple[tuple[Any, ...], ...] = ()
    missing_b: tuple[tuple[Any, ...], ...] = ()
    note: str = ""

    @property
    def n(self) -> int:
        """How many pairs."""
        return len(self.members)

    @property
    def names(self) -> tuple[str, str]:
        """The two models; where they are the same, with the settings that differ."""
        a, b = self.a.settings, self.b.settings
        if self.a.model != self.b.model or a == b:
            return self.a.model, self.b.model
        differ = [name for name in {**a, **b} if a.get(name) != b.get(name)]
        told = [", ".join(f"{name} {shown(one.get(name))}" for name in differ) for one in (a, b)]
        return f"{self.a.model} ({told[0]})", f"{self.b.model} ({told[1]})"

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        unit, times = (" points", 100) if self.a.score in SHARES else ("", 1)
        first, second = self.names
        p = self.p_value if self.corrected is None else self.corrected
        gap = f"{abs(times * self.difference):.2f}{unit} {'above' if self.difference >= 0 else 'below'}"
        start = f"{first} is {gap} {second}"
        if p >= 1 - self.confidence:
            start = f"{first} and {second} cannot be told apart: the first is {gap} the second"
        parts = [
            f"{start} on {self.a.data} (test {self.a.score}, {self.n} pairs)",
            f"{100 * self.confidence:g} % interval {times * self.low:.2f} to {times * self.high:.2f}",
            f"{self.test.value} {'p < 0.0001' if p < 1e-4 else f'p = {p:.2g}'}{' (Holm)' * (self.corrected is not None)}",
        ]
        if self.n < FEW:
            parts[1] += f" (Student's, as {self.n} pairs are few)"
        parts += [f"effect size {self.effect:.2g}"] if math.isfinite(self.effect) else []
        return printable("; ".join([*parts, self.note] if self.note else parts))


def compare(
    table: TrialTable,
    a: Any,
    b: Any,
    over: str | Sequence[str] = "seed",
    *,
    test: Test = Test.PAIRED_T,
    confidence: float = 0.95,
    draws: int = 10_000,
    draw: int = 0,
) -> Comparison:
    """Whether two models, or two settings, differ on test data by more than their seeds do.

    Each side is the group that validation chooses, as :meth:`~unspool.study.results.trial_table.TrialTable.best` does. Seeds are paired,
    because the same seed draws the same split. The interval is a percentile bootstrap of the mean difference, which is a
    little too narrow for fewer than about ten pairs; fewer than six have Student's interval, which agrees with the t-test.

    Args:
        table: the trials.
        a, b: model names, classes, mappings of settings, or groups that :meth:`best` gave.
        over: what pairs are made of.
        test: which gives the p-value.
        confidence: of the interval.
        draws: of the bootstrap; ``draw``: its seed.

    Example:
        >>> from unspool.study.results.trial_table import example_table
        >>> print(compare(example_table(seeds=4), "UGDGNN", "GCN"))
        UGDGNN is 1.08 points above GCN on cora (test accuracy, 4 pairs); 95 % interval 0.85 to 1.30
        (Student's, as 4 pairs are few); paired t-test p = 0.00066; effect size 7.4
    """
    _check(test, confidence, draws)
    left, right = _group(table, a, over), _group(table, b, over)
    if left.data != right.data:
        raise IncompatibleError(
            f"scores on {left.data} and {right.data} cannot be compared; take both sides from one dataset"
        )
    x, y = _scores(left), _scores(right)
    common = tuple(m for m in x if m in y)
    lacks = tuple(m for m in y if m not in x), tuple(m for m in x if m not in y)
    notes = [
        f"{side.model} lacks {_over(side)} {_listed(m)}" for side, m in zip((left, right), lacks, strict=True) if m
    ]
    notes += [f"{side.model}: {side.note}" for side in (left, right) if side.note]
    if len(common) < 2:
        why = f": {'; '.join(notes)}" if notes else ""
        raise IncompatibleError(f"two test scores on the same {_over(left)} are needed, found {len(common)}{why}")
    # Trap: 0.83 - 0.82 and 0.73 - 0.72 are the same difference of accuracies, but not as floats; scores come from float32.
    gaps = np.array([x[m] - y[m] for m in common]).round(6)
    mean, deviation = float(gaps.mean()), _deviation(gaps)
    notes += ["all differences are equal"] if mean and not deviation else []
    return Comparison(
        left, right, common, tuple(x[m] for m in common), tuple(y[m] for m in common), mean,
        *_interval(gaps, confidence, draws, draw), paired_t(gaps) if test is Test.PAIRED_T else signed_rank(gaps),
        mean / deviation if deviation else math.copysign(math.inf, mean) if mean else 0.0,
        test, confidence, None, *lacks, "; ".join(notes),
    )  # fmt: skip


def compare_all(table: TrialTable, models: Sequence[Any] | None = None, **options: Any) -> tuple[Comparison, ...]:
    """Every pair of models, with p-values corrected for making so many comparisons (Holm's method).

    Args:
        table: the trials.
        models: as ``a`` and ``b`` of :func:`compare`; all of the table when omitted.
        options: of :func:`compare`.

    Example:
        >>> from unspool.study.results.trial_table import example_table
        >>> [found.names for found in compare_all(example_table())]
        [('GCN', 'UGDGNN')]
    """
    sides = list(dict.fromkeys(r["model"] for r in table.records())) if models is None else list(models)
    if len(sides) < 2:
        raise ValueError("comparing needs at least two models; use compare() for two settings of one model")
    found = [compare(table, a, b, **options) for a, b in combinations(sides, 2)]
    corrected = holm([one.p_value for one in found])
    return tuple(replace(one, corrected=p) for one, p in zip(found, corrected, strict=True))


# -- numbers -----------------------------------------------------------------------------------------------------------


def paired_t(gaps: NDArray[np.float64]) -> float:
    """The p-value of Student's test for mean zero; 1 where all are zero, 0 where all are another equal number."""
    from scipy import stats

    deviation = _deviation(gaps)
    if not deviation:
        return 1.0 if gaps[0] == 0 else 0.0
    return float(2 * stats.t.sf(abs(gaps.mean()) / deviation * math.sqrt(gaps.size), gaps.size - 1))


def signed_rank(gaps: NDArray[np.float64]) -> float:
    """The exact p-value of Wilcoxon's test: every choice of signs of the ranks is as likely as any other.

    Example:
        >>> signed_rank(np.array([1.0, 2.0, 3.0, 4.0, 5.0])), signed_rank(np.zeros(4))
        (0.0625, 1.0)
    """
    from scipy import stats

    gaps = gaps[gaps != 0]
    ranks = np.rint(2 * stats.rankdata(abs(gaps))).astype(int)  # twice, since ties share half ranks
    chance = np.ones(1)
    for rank in ranks:  # the chance of each sum of the ranks with a plus sign
        pad = np.zeros(rank)
        chance = (np.concatenate([chance, pad]) + np.concatenate([pad, chance])) / 2
    above = int(ranks[gaps > 0].sum())
    return float(min(1.0, 2 * min(chance[: above + 1].sum(), chance[above:].sum())))


def _interval(gaps: NDArray[np.float64], confidence: float, draws: int, draw: int) -> tuple[float, float]:
    return student_interval(gaps, confidence) if gaps.size < FEW else bootstrap_interval(gaps, confidence, draws, draw)


def student_interval(gaps: NDArray[np.float64], confidence: float) -> tuple[float, float]:
    """Where the mean lies if the differences are normal: it excludes zero where :func:`paired_t` is below 1 − confidence.

    Example:
        >>> low, high = student_interval(np.array([0.0, 1.0, 2.0]), 0.95)
        >>> round(low, 2), round(high, 2)
        (-1.48, 3.48)
    """
    from scipy import stats

    mean, far = float(gaps.mean()), float(stats.t.ppf((1 + confidence) / 2, gaps.size - 1))
    half = far * _deviation(gaps) / math.sqrt(gaps.size)
    return mean - half, mean + half


def bootstrap_interval(gaps: NDArray[np.float64], confidence: float, draws: int, draw: int) -> tuple[float, float]:
    """Percentiles of the mean of as many differences, drawn with replacement."""
    chosen = np.random.default_rng(draw).integers(gaps.size, size=(draws, gaps.size))
    tail = (1 - confidence) / 2
    low, high = np.quantile(gaps[chosen].mean(1), [tail, 1 - tail])
    return float(low), float(high)


def holm(values: Sequence[float]) -> list[float]:
    """Holm's corrected p-values: the smallest times their number, the next times one less, and never falling.

    Example:
        >>> holm([0.01, 0.04, 0.03])
        [0.03, 0.06, 0.06]
    """
    corrected, least = [0.0] * len(values), 0.0
    for rank, place in enumerate(sorted(range(len(values)), key=lambda k: values[k])):
        least = max(least, min(1.0, (len(values) - rank) * values[place]))
        corrected[place] = least
    return corrected


# -- sides -------------------------------------------------------------------------------------------------------------


def _check(test: Test, confidence: float, draws: int) -> None:
    if test not in tuple(Test):
        raise TypeError(f"test={test!r}: expected Test.PAIRED_T or Test.WILCOXON")
    if not 0 < confidence < 1:
        raise ValueError(f"confidence={confidence}: expected a number between 0 and 1")
    if draws < 1:
        raise ValueError(f"draws={draws}: the interval needs at least one")


def _group(table: TrialTable, side: Any, over: str | Sequence[str]) -> Best:
    if isinstance(side, Best):
        return side
    return table.filter(**(side if isinstance(side, Mapping) else {"model": side})).best(over)


def _scores(group: Best) -> dict[tuple[Any, ...], float]:
    return {m: v for m, v in zip(group.members, group.test.values, strict=True) if math.isfinite(v)}


def _deviation(gaps: NDArray[np.float64]) -> float:
    # Trap: the deviation of equal numbers is 1e-17 rather than zero.
    return float(gaps.std(ddof=1)) if np.ptp(gaps) else 0.0


def _over(group: Best) -> str:
    return " and ".join(group.over)


def _listed(members: Sequence[tuple[Any, ...]], most: int = 8) -> str:
    """Seeds in words."""
    names = [" ".join(shown(v) for v in member) for member in members]
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")
