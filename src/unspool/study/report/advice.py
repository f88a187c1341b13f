"""What to try after a study, seen from its results: each piece of advice is a value, and says itself in a sentence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from unspool.errors import InputError
from unspool.models import registry
from unspool.report import counted
from unspool.settings import schema_of
from unspool.study.results.best import Best
from unspool.study.results.exporting import shown
from unspool.study.results.plot import LOGARITHMIC
from unspool.study.results.variance_shares import MANY
from unspool.train import TrainConfig

#: With fewer seeds than this, means and their differences are not to be trusted.
SEEDS = 5
#: Of many values, so large a part at each end counts as the end.
END = 0.1
#: Values whose ends are so far apart were varied by factors.
FACTORS = 8
#: Settings that have an option of their own.
_SHORT = ("dropout", "depth", "hidden")


class Advice:
    """Something to do next; ``str`` is the sentence."""


@dataclass(frozen=True)
class Unfinished(Advice):
    """Trials that have not ended."""

    count: int

    def __str__(self) -> str:
        return f"{counted(self.count, 'trial')} {_are(self.count)} not finished: run the same study again to go on."


@dataclass(frozen=True)
class Failed(Advice):
    """Trials that failed."""

    count: int

    def __str__(self) -> str:
        return f"{counted(self.count, 'trial')} failed (the reasons are below): remove the cause, then train them again with --retry-failed."


@dataclass(frozen=True)
class Diverged(Advice):
    """Trials whose losses became infinite."""

    count: int
    lr: float | None

    def __str__(self) -> str:
        above = "" if self.lr is None else f", all with a learning rate of {self.lr:g} or more"
        return f"In {counted(self.count, 'trial')} the loss became infinite{above}: lower learning rates avoid that."


@dataclass(frozen=True)
class MoreSeeds(Advice):
    """Too few seeds for a decision."""

    seeds: int

    def __str__(self) -> str:
        return (
            f"Each setting has {counted(self.seeds, 'seed')}: --seeds {2 * SEEDS} makes means and differences reliable."
        )


class End(Enum):
    """An end of the values that were tried."""

    LOWEST = "lowest"
    HIGHEST = "highest"


@dataclass(frozen=True)
class Edge(Advice):
    """The best value lies at the end of those tried, so a better one may lie beyond.

    Attributes:
        name: of the setting; ``value``: its best one.
        end: which end that is.
        beyond: values to try, where the setting has any there.
    """

    name: str
    value: float
    end: End
    beyond: tuple[float, ...]

    def __str__(self) -> str:
        values = ",".join(f"{value:.4g}" for value in self.beyond)
        own = self.name in TrainConfig.schema or self.name in _SHORT
        option = f"--{self.name.replace('_', '-')} {values}" if own else f"--setting {self.name}={values}"
        return f"The best {self.name}, {shown(self.value)}, is the {self.end.value} that was tried: try {option}."


@dataclass(frozen=True)
class Idle(Advice):
    """Settings that explain no more than chance."""

    names: tuple[str, ...]

    def __str__(self) -> str:
        explains, them = ("explain", "them") if len(self.names) > 1 else ("explains", "it")
        return (
            f"{_listed(self.names)} {explains} no more than chance would: keep {them} fixed, and vary something else."
        )


@dataclass(frozen=True)
class Tied(Advice):
    """Settings that the test cannot tell from the best."""

    count: int

    def __str__(self) -> str:
        what = "another setting" if self.count == 1 else f"{self.count} other settings"
        return (
            f"On test data {what} cannot be told from the best: take the cheapest of them, or run these alone with more "
            "seeds."
        )


def edges(best: Best, groups: Sequence[Best], idle: Sequence[str] = ()) -> list[Edge]:
    """The settings whose best value is the lowest or highest of those tried with the same model.

    Args:
        best: the best settings.
        groups: all of them.
        idle: settings that make no difference, whose best value says nothing.

    Example:
        >>> from unspool.study.results.trial_table import example_table
        >>> table = example_table().filter(dropout=[0.2, 0.5])
        >>> [str(edge) for edge in edges(table.best(), table.groups())]
        ['The best dropout, 0.5, is the highest that was tried: try --dropout 0.8.']
    """
    found: list[Edge] = []
    for name in best.varied:
        values = {g.settings.get(name) for g in groups if g.model == best.model}
        numbers = sorted(v for v in values if isinstance(v, int | float) and not isinstance(v, bool))
        value = best.settings.get(name)
        if name in idle or len(numbers) < 2 or value not in numbers:
            continue
        far = int(END * len(numbers)) if len(numbers) > MANY else 0
        place = numbers.index(value)
        end = End.HIGHEST if place >= len(numbers) - 1 - far else End.LOWEST if place <= far else None
        beyond = () if end is None else _beyond(best.model, name, numbers, end)
        if end is not None and beyond:
            found.append(Edge(name, value, end, beyond))
    return found


def _beyond(model: str, name: str, numbers: Sequence[float], end: End) -> tuple[float, ...]:
    """Values beyond that end, by factors of two or in steps of the last two, as far as the setting allows them."""
    outer, inner = (numbers[-1], numbers[-2]) if end is End.HIGHEST else (numbers[0], numbers[1])
    if min(numbers) > 0 and (name in LOGARITHMIC or max(numbers) / min(numbers) >= FACTORS):
        factor = 2 if end is End.HIGHEST else 0.5
        steps = [outer * factor, outer * factor**2]
    elif len(numbers) > MANY:  # drawn at random, where neighbours say nothing about the scale
        steps = [outer + (outer - numbers[len(numbers) // 2])]
    else:
        steps = [outer + (outer - inner), outer + 2 * (outer - inner)]
    whole = all(isinstance(number, int) for number in numbers)
    tried = [round(step) if whole else float(f"{step:.3g}") for step in steps]
    return tuple(step for step in tried if step not in numbers and _fits(model, name, step))


def _fits(model: str, name: str, value: Any) -> bool:
    """Whether the setting takes the value; of classes that are not of this package nobody knows."""
    known = registry.shipped().get(model)
    schema = TrainConfig.schema if name in TrainConfig.schema else None if known is None else schema_of(known)
    if schema is None or name not in schema:
        return False
    try:
        schema[name].accept(value)
    except InputError:
        return False
    return True


def _are(count: int) -> str:
    return "is" if count == 1 else "are"


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
