"""One group of trials and its numbers."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

from unspool.study.results.exporting import shown, spread
from unspool.text import printable


class Measure(Enum):
    """What settings are chosen by. There is no way to choose by test scores."""

    VALID_SCORE = "validation score"
    VALID_LOSS = "validation loss"


def measure(said: Measure | str) -> Measure:
    """A measure as it is or by its word, ``score`` or ``loss``; everything else is refused, test scores too.

    Example:
        >>> measure("loss")
        <Measure.VALID_LOSS: 'validation loss'>
    """
    known = {
        "score": Measure.VALID_SCORE,
        "valid_score": Measure.VALID_SCORE,
        "loss": Measure.VALID_LOSS,
        "valid_loss": Measure.VALID_LOSS,
    }
    found = said if isinstance(said, Measure) else known.get(str(said))
    if found is None:
        raise ValueError(f"{said!r}: settings are chosen by 'score' or 'loss', both of the validation nodes")
    return found


@dataclass(frozen=True)
class Sample:
    """The same number of several trials.

    Example:
        >>> score = Sample((0.80, 0.82))
        >>> round(score.mean, 3), round(score.std, 3), round(score.error, 3)
        (0.81, 0.014, 0.01)
    """

    values: tuple[float, ...]

    @property
    def finite(self) -> list[float]:
        """The values that are numbers; diverged trials and missing test sets leave NaN."""
        return [v for v in self.values if not math.isnan(v)]

    @property
    def mean(self) -> float:
        """NaN where there is nothing."""
        return statistics.fmean(self.finite) if self.finite else math.nan

    @property
    def std(self) -> float:
        """Sample standard deviation; NaN for fewer than two values."""
        return statistics.stdev(self.finite) if len(self.finite) > 1 else math.nan

    @property
    def error(self) -> float:
        """Standard error of the mean."""
        return self.std / math.sqrt(max(len(self.finite), 1))


@dataclass(frozen=True)
class Best:
    """One group of trials that differ in nothing but ``over`` (the seed, mostly), and its numbers.

    Attributes:
        settings: what all its trials have in common, under flat names.
        over, members: what differs, and the values it has: ``("seed",)`` and ``((0,), (1,), ...)``.
        valid, loss, test: validation score, validation loss and test score of each member, in that order.
        diverged: how many members diverged.
        varied: the settings worth showing. ``score``: what the scores are.
        note: what one should know before quoting the numbers; empty where there is nothing.
        numbers: of the trials in the study, in the order of the members.

    Example:
        >>> from unspool.study.results.trial_table import example_table
        >>> best = example_table().best()
        >>> best.model, best.settings["dropout"], best.n
        ('UGDGNN', 0.5, 3)
        >>> print(best)
        UGDGNN on cora, dropout 0.5: validation 82.57 ± 0.15 %, test 82.68 ± 0.10 % over 3 seeds
    """

    settings: Mapping[str, Any]
    over: tuple[str, ...]
    members: tuple[tuple[Any, ...], ...]
    valid: Sample
    loss: Sample
    test: Sample
    diverged: int = 0
    varied: tuple[str, ...] = ()
    score: str = "accuracy"
    note: str = ""
    numbers: tuple[int, ...] = ()

    @property
    def n(self) -> int:
        """How many trials."""
        return len(self.members)

    @property
    def model(self) -> str:
        """The name of the model."""
        return str(self.settings.get("model", "several models"))

    @property
    def data(self) -> str:
        """The name of the dataset."""
        return str(self.settings.get("data", "several datasets"))

    @property
    def scores(self) -> tuple[str, str]:
        """Validation and test, each as mean ± standard deviation."""
        valid, test = (spread(sample.mean, sample.std, self.score) for sample in (self.valid, self.test))
        return valid, test

    @property
    def label(self) -> str:
        """The varied settings in words."""
        names = [name for name in self.varied if name not in ("model", "data") and name in self.settings]
        return ", ".join(f"{name} {shown(self.settings[name])}" for name in names)

    def rank(self, by: Measure) -> tuple[float, ...]:
        """Sorts the best first: groups without diverged trials, then by mean, then by the mean of the other measure."""
        both = [math.inf if math.isnan(v) else v for v in (-self.valid.mean, self.loss.mean)]
        return (self.diverged, *(both if by is Measure.VALID_SCORE else reversed(both)))

    def noted(self, more: str) -> Best:
        """The same with something more to know."""
        return replace(self, note="; ".join(note for note in (self.note, more) if note))

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        what = ", ".join(part for part in (f"{self.model} on {self.data}", self.label) if part)
        numbers = f"validation {spread(self.valid.mean, self.valid.std, self.score)}"
        if self.test.finite:
            numbers += f", test {spread(self.test.mean, self.test.std, self.score)}"
        many = f"{self.n} {self.over[0] if len(self.over) == 1 else 'trial'}{'s'[: self.n > 1]}"
        return printable(f"{what}: {numbers} over {many}" + (f" ({self.note})" if self.note else ""))


def aligned(names: Sequence[str], groups: Sequence[Best]) -> list[str]:
    """One line for each group under a line of headings."""
    if not groups:
        return ["no trial has finished yet"]
    lines = [[*names, "validation", "test", "seeds"]]
    lines += [
        [*(shown(best.settings.get(name)) for name in names), *best.scores, f"{best.n}  {best.note}"] for best in groups
    ]
    widths = [max(len(line[k]) for line in lines) for k in range(len(lines[0]))]
    return ["  ".join(cell.ljust(w) for cell, w in zip(line, widths, strict=True)).rstrip() for line in lines]
