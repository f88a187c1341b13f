"""Cells of a table: the trials of one model on one dataset, with the setting that validation chooses."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from unspool.models.preset_tables import printed_accuracy
from unspool.reproduce.results import Record
from unspool.study import Best, Sample


@dataclass(frozen=True)
class Cell:
    """One cell: the trials of the chosen setting, one for each seed.

    Example:
        >>> from unspool.reproduce.results import example_record
        >>> cell = choose([example_record(seed) for seed in range(5)])[0]
        >>> cell.text, cell.printed, cell.difference, cell.met
        ('83.00 ± 0.32', (83.24, 0.5), -0.24, True)
    """

    rows: tuple[Record, ...]

    @property
    def first(self) -> Record:
        """One of its trials; all agree in everything but the seed and its results."""
        return self.rows[0]

    @property
    def valid(self) -> Sample:
        """Validation scores."""
        return Sample(tuple(row.valid_score for row in self.rows))

    @property
    def test(self) -> Sample:
        """Test scores."""
        return Sample(tuple(row.test_score for row in self.rows))

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
        """What the paper's Table 2 prints: mean and standard deviation in per cent; None where it has no such cell."""
        plain = not self.first.variant
        return printed_accuracy(self.first.model, self.first.dataset) if plain else None

    @property
    def difference(self) -> float:
        """Ours less theirs in points, of means rounded as they are printed, so that the three numbers of a row agree with each
        other; NaN where nothing is printed, or ours is no number."""
        if self.printed is None or math.isnan(self.mean):
            return math.nan
        return round(round(self.mean, 2) - self.printed[0], 2) + 0.0  # no -0.0

    @property
    def met(self) -> bool | None:
        """Whether ours is within one printed standard deviation of theirs, or above; None where nothing is printed.

        The one place that decides it, for the terminal and the page. Runs that diverged have not met it.
        """
        return None if self.printed is None else self.difference >= -self.printed[1]

    @property
    def group(self) -> Best:
        """The cell for :func:`unspool.study.compare`; pairs are made of equal seeds."""
        row = self.first
        known: dict[str, Any] = {"model": row.model, "data": row.dataset, "depth": row.depth, "variant": row.variant}
        return Best(
            settings={name: value for name, value in known.items() if value not in (None, "")},
            over=("seed",),
            members=tuple((r.seed,) for r in self.rows),
            valid=self.valid,
            loss=Sample(tuple(r.valid_loss for r in self.rows)),
            test=self.test,
            diverged=sum(r.reason == "diverged" for r in self.rows),
        )


def choose(rows: Iterable[Record], by: Sequence[str] = ("dataset", "variant", "model", "preset")) -> list[Cell]:
    """One cell for each combination of some columns, in order of appearance.

    Where a cell has several settings, the highest mean validation score decides, then the lower validation loss; settings
    that have fewer seeds than others, or a trial that diverged, come last. Test scores are never looked at.

    Example:
        >>> from unspool.reproduce.results import example_record
        >>> low = [example_record(seed, rate=0.05, valid_score=0.7, test_score=0.99) for seed in range(3)]
        >>> choose([*low, *(example_record(seed) for seed in range(3))])[0].first.rate
        0.01
    """
    cells: dict[tuple[Any, ...], list[Record]] = {}
    for row in rows:
        cells.setdefault(tuple(getattr(row, name) for name in by), []).append(row)
    return [ranked(held)[0] for held in cells.values()]


def ranked(rows: Iterable[Record]) -> list[Cell]:
    """The settings of some trials, the best first, as :func:`choose` ranks them.

    Example:
        >>> from unspool.reproduce.results import example_record
        >>> [cell.first.rate for cell in ranked([example_record(rate=0.1, valid_score=0.7), example_record()])]
        [0.01, 0.1]
    """
    settings: dict[tuple[Any, ...], dict[int, Record]] = {}
    for row in rows:
        settings.setdefault(row.setting, {})[row.seed] = row
    return sorted((_cell(held) for held in settings.values()), key=_rank)


def _cell(held: dict[int, Record]) -> Cell:
    return Cell(tuple(held[seed] for seed in sorted(held)))


def _rank(cell: Cell) -> tuple[float, ...]:
    group = cell.group
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
