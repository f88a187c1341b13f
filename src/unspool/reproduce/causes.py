"""Why a cell of ours may differ from the printed one: a data file of causes and readings."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from unspool.reproduce.settings import read_settings


@dataclass(frozen=True)
class Cause:
    """A reason for a deviation, and the reading of the paper that explains it.

    Attributes:
        model, dataset, preset: which cells it concerns; ``*`` for any.
        cause: what differs, or what the paper leaves open.
        reading: what explains the printed number.
    """

    model: str
    dataset: str
    preset: str
    cause: str
    reading: str

    def concerns(self, model: str, dataset: str, preset: str) -> bool:
        """Whether a cell is meant."""
        pairs = ((self.model, model), (self.dataset, dataset), (self.preset, preset))
        return all(mine in ("*", theirs) for mine, theirs in pairs)

    def __str__(self) -> str:
        return f"{self.cause}; {self.reading}"


@cache
def all_causes() -> tuple[Cause, ...]:
    """Every known cause, in the order of the file.

    Example:
        >>> all(cause.reading for cause in all_causes())
        True
    """
    return tuple(Cause(**one) for one in read_settings("causes")["cause"])


def causes_of(model: str, dataset: str, preset: str = "paper") -> tuple[Cause, ...]:
    """What is known about a cell, the narrowest cause first.

    Example:
        >>> [cause.dataset for cause in causes_of("GCNII", "photo")]
        ['*', 'photo']
    """
    found = [cause for cause in all_causes() if cause.concerns(model, dataset, preset)]
    return tuple(sorted(found, key=lambda cause: cause.model == "*"))
