"""What a setting may be when it is drawn at random: between two ends, on a line or by factors, or one of a list.

A range turns a number between 0 and 1 into a value. The numbers come from :func:`unit`, which knows nothing but three
names, so a draw is the same on every machine and in every version.
"""

from __future__ import annotations

import hashlib
import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any


class Range(ABC):
    """Everything a setting may be, with odds; made by :func:`uniform`, :func:`log_uniform`, :func:`integers`, :func:`choice`."""

    @abstractmethod
    def at(self, share: float) -> Any:
        """The value below which ``share`` of all draws lie (0 ≤ share < 1); of a list, the one at that place."""

    @abstractmethod
    def suggest(self, trial: Any, name: str) -> Any:
        """A value that an Optuna trial suggests."""


@dataclass(frozen=True)
class Uniform(Range):
    """Numbers between two ends, all equally likely; made by :func:`uniform`."""

    low: float
    high: float

    def at(self, share: float) -> float:
        """``low + share (high − low)``."""
        return min(self.high, self.low + share * (self.high - self.low))

    def suggest(self, trial: Any, name: str) -> float:
        """Evenly."""
        return trial.suggest_float(name, self.low, self.high)

    def __str__(self) -> str:
        return f"{self.low:g} to {self.high:g}"


@dataclass(frozen=True)
class LogUniform(Range):
    """Numbers between two positive ends, all sizes equally likely; made by :func:`log_uniform`."""

    low: float
    high: float

    def at(self, share: float) -> float:
        """``low (high / low) ** share``."""
        # Rounding may carry the power over an end.
        return min(self.high, max(self.low, self.low * (self.high / self.low) ** share))

    def suggest(self, trial: Any, name: str) -> float:
        """By factors."""
        return trial.suggest_float(name, self.low, self.high, log=True)

    def __str__(self) -> str:
        return f"{self.low:g} to {self.high:g} by factors"


@dataclass(frozen=True)
class Integers(Range):
    """Whole numbers between two ends, both included; made by :func:`integers`."""

    low: int
    high: int

    def at(self, share: float) -> int:
        """One of ``high − low + 1`` equal parts of the unit interval each."""
        return min(self.high, self.low + int(share * (self.high - self.low + 1)))

    def suggest(self, trial: Any, name: str) -> int:
        """In whole numbers."""
        return trial.suggest_int(name, self.low, self.high)

    def __str__(self) -> str:
        return f"{self.low} to {self.high} in whole numbers"


@dataclass(frozen=True)
class Choice(Range):
    """One of a list, all equally likely; made by :func:`choice`."""

    values: tuple[Any, ...]

    def at(self, share: float) -> Any:
        """One of the values."""
        return self.values[min(len(self.values) - 1, int(share * len(self.values)))]

    def suggest(self, trial: Any, name: str) -> Any:
        """By its name: Optuna's storages take plain values only."""
        names = {value.name.lower() if isinstance(value, Enum) else value: value for value in self.values}
        return names[trial.suggest_categorical(name, list(names))]

    def __str__(self) -> str:
        return f"one of {', '.join(str(v) for v in self.values)}"


def uniform(low: float, high: float) -> Range:
    """Numbers between two ends, all equally likely: for dropout and teleport.

    Example:
        >>> uniform(0.2, 0.8).at(0.5)
        0.5
    """
    low, high = _ends("uniform", low, high)
    return Uniform(low, high)


def log_uniform(low: float, high: float) -> Range:
    """Numbers between two positive ends, as many between 0.001 and 0.01 as between 0.01 and 0.1: for rate and decay.

    Example:
        >>> round(log_uniform(0.001, 0.1).at(0.5), 12)
        0.01
    """
    low, high = _ends("log_uniform", low, high)
    if low <= 0:
        raise ValueError(
            f"log_uniform({low:g}, {high:g}): factors need a low end above 0; for 0 to {high:g} use uniform"
        )
    return LogUniform(low, high)


def integers(low: int, high: int) -> Range:
    """Whole numbers between two ends, both included: for depth and hidden.

    Example:
        >>> [integers(2, 4).at(share) for share in (0.0, 0.5, 0.99)]
        [2, 3, 4]
    """
    _ends("integers", low, high)
    if int(low) != low or int(high) != high:
        raise ValueError(f"integers({low}, {high}): both ends are whole numbers; for others use uniform")
    return Integers(int(low), int(high))


def choice(values: Any) -> Range:
    """One of a list; a plain list says the same.

    Example:
        >>> choice(["paper", "official"]).at(0.7)
        'official'
    """
    # Trap: a word is a sequence too, of its letters.
    if isinstance(values, str) or not isinstance(values, Sequence):
        raise TypeError(f"choice({values!r}): expected a list of values, such as choice([1, 2])")
    if not values:
        raise ValueError("choice([]): there is nothing to choose from; give at least one value")
    return Choice(tuple(values))


def unit(draw: int, number: int, word: str) -> float:
    """A number in [0, 1) that belongs to a draw, the number of a setting and a word, and to nothing else.

    So the first settings stay as they are when more are drawn or another word is varied too.

    Example:
        >>> unit(0, 0, "rate") == unit(0, 0, "rate"), unit(0, 0, "rate") == unit(0, 1, "rate")
        (True, False)
    """
    mark = hashlib.sha256(f"{draw}/{number}/{word}".encode()).digest()
    return (int.from_bytes(mark[:8], "big") >> 11) / 2**53  # as many bits as a float holds


def _ends(name: str, low: Any, high: Any) -> tuple[float, float]:
    for end in (low, high):
        if isinstance(end, bool) or not hasattr(end, "__float__"):
            raise TypeError(f"{name}({low!r}, {high!r}): both ends are numbers")
    low, high = float(low), float(high)
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise ValueError(f"{name}({low:g}, {high:g}): expected two finite ends, the lower one first")
    return low, high
