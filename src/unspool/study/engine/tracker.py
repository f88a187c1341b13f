"""Who keeps the results of trials while they train."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from unspool.train import Result, Trial


class TrialTracker(Protocol):
    """Who keeps the results, and knows which trials are free."""

    def claim(self, wanted: Sequence[Trial], count: int) -> list[Trial]:
        """Up to ``count`` of these trials, to be trained here; the others are done, or somebody else has them."""
        ...

    def finish(self, ended: Sequence[tuple[Trial, Result]]) -> None:
        """These trials have ended."""
        ...

    def fail(self, trial: Trial, message: str) -> None:
        """This trial cannot be trained."""
        ...

    def release(self, trials: Sequence[Trial]) -> None:
        """These trials were claimed and did not end; others may have them."""
        ...


class MemoryTracker:
    """The simplest tracker: results in memory, everything is free.

    Attributes:
        results: what came of each trial.
        failures: why others could not be trained.

    Example:
        >>> MemoryTracker().results
        {}
    """

    def __init__(self) -> None:
        self.results: dict[Trial, Result] = {}
        self.failures: dict[Trial, str] = {}
        self.held: set[Trial] = set()

    def claim(self, wanted: Sequence[Trial], count: int) -> list[Trial]:
        """The first that are neither held nor ended."""
        free = [t for t in wanted if t not in self.held and t not in self.results and t not in self.failures]
        self.held.update(free[:count])
        return free[:count]

    def finish(self, ended: Sequence[tuple[Trial, Result]]) -> None:
        """Write results down."""
        for trial, result in ended:
            self.results[trial] = result
            self.held.discard(trial)

    def fail(self, trial: Trial, message: str) -> None:
        """Write a failure down."""
        self.failures[trial] = message
        self.held.discard(trial)

    def release(self, trials: Sequence[Trial]) -> None:
        """Let go."""
        self.held.difference_update(trials)
