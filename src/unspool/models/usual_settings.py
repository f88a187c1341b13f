"""Settings that many models have, each with its range and where searches look."""

from __future__ import annotations

from typing import Any

from unspool.settings import choice, integers, setting, uniform

#: More layers than this would run for minutes without a sign of life, and say nothing that the minimiser does not.
DEEPEST = 10_000


def width(meaning: str = "width of the perceptron", default: int = 64) -> Any:
    """Channels of hidden layers.

    Example:
        >>> width().typed
        'a whole number of at least 1'
    """
    return setting(default, meaning, at_least=1, search=choice([16, 32, 64, 128, 256]))


def depth(default: int, meaning: str = "K, the number of hops", at_least: int = 1) -> Any:
    """The number of layers.

    Example:
        >>> depth(10).default
        10
    """
    hint = "to solve the problem exactly take PPNP, or lower_level=LowerLevel.EXACT"
    return setting(
        default, meaning, at_least=at_least, at_most=DEEPEST, search=integers(max(at_least, 1), 20), hint=hint
    )


def dropout(default: float = 0.5, meaning: str = "rate on the inputs of both layers") -> Any:
    """A rate at which entries are dropped in training.

    Example:
        >>> dropout().typed
        'a number in [0, 1)'
    """
    return setting(default, meaning, at_least=0, below=1, search=uniform(0.0, 0.9))


def teleport(meaning: str, default: float = 0.1, positive: bool = False) -> Any:
    """How strongly a node returns to its own signal.

    Example:
        >>> teleport("how strongly").typed
        'a number in [0, 1]'
    """
    low: Any = {"above" if positive else "at_least": 0}
    return setting(default, meaning, **low, at_most=1, search=uniform(0.05, 0.5))
