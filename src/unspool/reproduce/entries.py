"""Entries of a table: the trials of one model on one dataset, with the setting that validation chooses."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import Any

from unspool.reproduce.conditions import CLEAN
from unspool.reproduce.records import Record
from unspool.study import Best, Sample
from unspool.theory.printed_tables import printed_accuracy
from unspool.train import Ending


class Standing(Enum):
    """How a mean of ours stands to a printed one, measured in the printed standard deviation."""

    ABOVE = "above"
    WITHIN = "within 1 std"
    BELOW = "below"


@dataclass(frozen=True)
class Entry:
    """One entry: the trials of the chosen setting, one for each seed.

    Example:
        >>> from unspool.reproduce.records import example_record
        >>> entry = choose([example_record(seed) for seed in range(5)])[0]
        >>> entry.text, entry.printed, entry.difference, entry.standing.name
        ('83.00 ± 0.32', (83.24, 0.5), -0.24, 'WITHIN')
    """

    records: tuple[Record, ...]

    @property
    def first(self) -> Record:
        """One of its trials; all agree in everything but the seed and its results."""
        return self.records[0]

    @cached_property
    def valid(self) -> Sample:
        """Validation scores."""
        return Sample(tuple(one.result.valid_score for one in self.records))

    @cached_property
    def test(self) -> Sample:
        """Test scores."""
        return Sample(tuple(one.result.test_score for one in self.records))

    @property
    def mean(self) -> float:
        """Mean test score in per cent."""
        return 100 * self.test.mean

    @property
    def text(self) -> str:
        """Mean ± standard deviation in per cent."""
        return spread(self.mean, 100 * self.test.std)

    @property
    def printed(self) -> tuple[float, float] | None:
        """What the paper's Table 2 prints: mean and standard deviation in per cent; None where it has no such entry."""
        plain = self.first.condition == CLEAN
        return printed_accuracy(self.first.model, self.first.dataset) if plain else None

    @property
    def difference(self) -> float | None:
        """Ours less theirs in points; None where nothing is printed, or ours is not a number.

        Of means rounded as they are printed, so that the three numbers of a row agree with each other.
        """
        if self.printed is None or math.isnan(self.mean):
            return None
        return round(round(self.mean, 2) - self.printed[0], 2) + 0.0  # no -0.0

    @property
    def standing(self) -> Standing | None:
        """Above or below the printed mean by more than the printed standard deviation, or within it; None where nothing is printed.

        The one place that decides it. Runs that diverged are below.
        """
        if self.printed is None:
            return None
        gap, std = self.difference, self.printed[1]
        if gap is None or gap < -std:
            return Standing.BELOW
        return Standing.ABOVE if gap > std else Standing.WITHIN

    @property
    def met(self) -> bool | None:
        """Whether ours is within one printed standard deviation of theirs, or above; None where nothing is printed."""
        return None if self.standing is None else self.standing is not Standing.BELOW

    @property
    def group(self) -> Best:
        """The entry for :func:`unspool.study.compare`; pairs are made of equal seeds."""
        one = self.first
        known: dict[str, Any] = {"model": one.model, "data": one.dataset, "depth": one.depth}
        return Best(
            settings={name: value for name, value in known.items() if value is not None},
            over=("seed",),
            members=tuple((r.seed,) for r in self.records),
            valid=self.valid,
            loss=Sample(tuple(r.result.valid_loss for r in self.records)),
            test=self.test,
            diverged=sum(r.result.ending is Ending.DIVERGED for r in self.records),
        )


#: What tells entries apart where nothing else is said.
BY = ("dataset", "condition", "model", "preset", "interpretation")


def choose(records: Iterable[Record], by: Sequence[str] = BY) -> list[Entry]:
    """One entry for each combination of some columns, in order of appearance.

    Where an entry has several settings, the highest mean validation score decides, then the lower validation loss; settings
    that have fewer seeds than others, or a trial that diverged, come last. Test scores are never looked at.

    Example:
        >>> from unspool.reproduce.records import example_record
        >>> low = [example_record(seed, lr=0.05, valid_score=0.7, test_score=0.99) for seed in range(3)]
        >>> choose([*low, *(example_record(seed) for seed in range(3))])[0].first.lr
        0.01
    """
    entries: dict[tuple[Any, ...], list[Record]] = {}
    for one in records:
        entries.setdefault(tuple(getattr(one, name) for name in by), []).append(one)
    return [ranked(held)[0] for held in entries.values()]


def ranked(records: Iterable[Record]) -> list[Entry]:
    """The settings of some trials, the best first, as :func:`choose` ranks them.

    Example:
        >>> from unspool.reproduce.records import example_record
        >>> [entry.first.lr for entry in ranked([example_record(lr=0.1, valid_score=0.7), example_record()])]
        [0.01, 0.1]
    """
    settings: dict[tuple[Any, ...], dict[int, Record]] = {}
    for one in records:
        settings.setdefault(one.setting, {})[one.seed] = one
    made = [Entry(tuple(held[seed] for seed in sorted(held))) for held in settings.values()]
    return sorted(made, key=_rank)


def _rank(entry: Entry) -> tuple[float, ...]:
    group = entry.group
    numbers = (-group.valid.mean, group.loss.mean)
    return (-group.n, group.diverged, *(math.inf if math.isnan(v) else v for v in numbers))


def spread(mean: float, std: float) -> str:
    """Mean ± standard deviation with two digits.

    Example:
        >>> spread(83.0, 0.5), spread(83.0, float("nan")), spread(float("nan"), 0.1)
        ('83.00 ± 0.50', '83.00', '–')
    """
    if math.isnan(mean):
        return "–"
    return f"{mean:.2f}" if math.isnan(std) else f"{mean:.2f} ± {std:.2f}"
