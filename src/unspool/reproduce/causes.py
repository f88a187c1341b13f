"""Why an entry of ours may differ from the printed one: a data file of causes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from unspool.reproduce.experiment_files import read_experiment


@dataclass(frozen=True)
class Cause:
    """A reason for a deviation, and what explains the printed number.

    Attributes:
        model, dataset, preset: which entries it concerns; ``*`` for any.
        cause: what differs, or what the paper leaves open.
        explanation: what explains the printed number.
    """

    model: str
    dataset: str
    preset: str
    cause: str
    explanation: str

    def concerns(self, model: str, dataset: str, preset: str) -> bool:
        """Whether an entry is meant."""
        pairs = ((self.model, model), (self.dataset, dataset), (self.preset, preset))
        return all(mine in ("*", theirs) for mine, theirs in pairs)

    def __str__(self) -> str:
        return f"{self.cause}; {self.explanation}"


@cache
def all_causes() -> tuple[Cause, ...]:
    """Every known cause, in the order of the file.

    Example:
        >>> all(cause.explanation for cause in all_causes())
        True
    """
    return tuple(Cause(**one) for one in read_experiment("causes")["cause"])


def causes_of(model: str, dataset: str, preset: str = "paper") -> tuple[Cause, ...]:
    """What is known about an entry, the narrowest cause first.

    Example:
        >>> [cause.dataset for cause in causes_of("GCNII", "photo")]
        ['*', 'photo']
    """
    found = [cause for cause in all_causes() if cause.concerns(model, dataset, preset)]
    return tuple(sorted(found, key=lambda cause: cause.model == "*"))
