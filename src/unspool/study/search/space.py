"""Which trials a study has, before there are data: grids and random draws.

>>> import unspool as us
>>> space = grid(us.models.UGDGNN, seed=range(10), lr=[0.005, 0.01], dropout=[0.1, 0.5, 0.8])
>>> print(space)
UGDGNN: 6 settings × 10 seeds
>>> print(space.trials("cora")[0])
UGDGNN(dropout=0.1), lr 0.005, weight decay 0.0005, seed 0
"""

from __future__ import annotations

import functools
import itertools
import math
import operator
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from torch import nn

from unspool import identity
from unspool.settings import Range, schema_of
from unspool.settings.ranges import Choice, unit
from unspool.study.search.resolve import CONFIG, Settings, check_names, resolve, takes, try_out
from unspool.train import Preset, Trial
from unspool.train.trial import looks

#: More trials than this are a mistake, and would not fit into memory.
MOST = 1_000_000


@dataclass(frozen=True, eq=False)
class Part:
    """One model, what is said about it in each setting, and the seeds that each setting is run with."""

    model: type[nn.Module]
    settings: tuple[Settings, ...]
    seeds: tuple[int, ...]

    def __str__(self) -> str:
        many, seeds = len(self.settings), len(self.seeds)
        return f"{self.model.__name__}: {many} setting{'s' * (many > 1)} × {seeds} seed{'s' * (seeds > 1)}"


class Space:
    """A set of trials that has not met its data yet; made by :func:`grid` and :func:`random`.

    What is left out comes from a preset, which may depend on the dataset: so trials are written out by :meth:`trials`.
    Spaces can be joined with ``+``. ``len`` is the number of trials; on some dataset two of them may turn out to be the
    same one, which is then run once.

    Example:
        >>> import unspool as us
        >>> space = grid(us.models.GCN, seed=range(3)) + grid(us.models.SGC, seed=0, lr=[0.05, 0.2])
        >>> print(space)
        GCN: 1 setting × 3 seeds
        SGC: 2 settings × 1 seed
        >>> len(space), len(space + space)
        (5, 5)
    """

    def __init__(self, parts: tuple[Part, ...]) -> None:
        self.parts = parts

    def trials(self, dataset: Any) -> list[Trial]:
        """All trials on a dataset, always in the same order: setting by setting, seed by seed, none twice.

        Args:
            dataset: its name, for presets that know it.

        Example:
            >>> import unspool as us
            >>> [t.seed for t in grid(us.models.GCN, seed=[4, 2, 4]).trials("texas")]
            [4, 2]
        """
        if not isinstance(dataset, str):
            raise TypeError(f"{type(dataset).__name__}: expected the name of a dataset, such as 'cora'")
        found: dict[str, Trial] = {}
        for part in self.parts:
            settled = [resolve(part.model, words, dataset) for words in part.settings]
            try_out(part.model, settled)
            for first in settled:
                for trial in map(first.with_seed, part.seeds):
                    found.setdefault(trial.key(""), trial)
        return list(found.values())

    def __add__(self, other: Any) -> Space:
        if not isinstance(other, Space):
            return NotImplemented
        return Space(self.parts + other.parts)

    def __len__(self) -> int:
        return self._count

    @functools.cached_property
    def _count(self) -> int:
        return len({(p.model, _mark(w), seed) for p in self.parts for w in p.settings for seed in p.seeds})

    def __str__(self) -> str:
        return "\n".join(str(part) for part in self.parts)

    def __repr__(self) -> str:
        return f"<Space of {len(self)} trials: {'; '.join(str(part) for part in self.parts)}>"


def grid(*models: type[nn.Module], seed: Any = range(10), preset: Any = None, **choices: Any) -> Space:
    """Every combination of some choices.

    Args:
        models: classes, such as ``us.models.GPRGNN``, or any ``torch.nn.Module`` built as ``model(in_features, out_features,
            **settings)``.
        seed: one whole number or several; each setting is run with all of them.
        preset: where everything comes from that is not said: the model's own defaults when omitted, ``us.reproduce.PAPER``,
            ``us.reproduce.OFFICIAL``, one of your own, or a list of them.
        choices: by name, one value or a list of values. Settings of :class:`~unspool.train.TrainConfig` (``lr``, ``weight_decay``,
            ``epochs``, ...) change how training goes, everything else is a setting of the model; one that only some of the models
            know is given to those. A value that is a list itself stands in a list: ``warm=[[0.5, 0.3, 0.2]]``.

    ``patience`` switches stopping on where the preset never stops.

    Example:
        >>> import unspool as us
        >>> space = grid(us.models.GPRGNN, us.models.GCN, seed=range(2), teleport=[0.1, 0.2, 0.5], epochs=200)
        >>> print(space)
        GPRGNN: 3 settings × 2 seeds
        GCN: 1 setting × 2 seeds
    """
    seeds = _seeds(seed)
    said = {name: _values(name, given) for name, given in {"preset": preset, **choices}.items()}
    for name, values in said.items():
        ranges = [v for v in values if isinstance(v, Range)]
        if ranges:
            raise TypeError(f"{name}: a grid has no values in the range {ranges[0]}; give a list, or use random()")
    parts: list[Part] = []
    for model, words in _by_model(models, said).items():
        _check_size(math.prod(len(v) for v in words.values()), seeds)
        rows = itertools.product(*words.values())
        parts.append(Part(model, tuple(dict(zip(words, row, strict=True)) for row in rows), seeds))
    return Space(tuple(parts))


def random(
    *models: type[nn.Module], count: int, seed: Any = range(1), draw: int = 0, preset: Any = None, **ranges: Any
) -> Space:
    """Settings drawn at random.

    The setting with number i depends on ``draw`` and i alone: a larger ``count`` begins with the same settings, and all
    models are given the same values of the words they share.

    Args:
        models, seed, preset: as in :func:`grid`.
        count: how many settings for each model; where only lists are drawn from, some may come twice and are run once.
        draw: which draw; another number gives other settings.
        ranges: by name, a range (:func:`~unspool.study.uniform`, ``log_uniform``, ``integers``, ``choice``), a list to
            choose from, or one value. Where nothing is to be drawn from, each model is searched where its settings and training say
            that searches look (``search`` of :func:`unspool.setting`).

    Example:
        >>> import unspool as us
        >>> from unspool.settings.ranges import integers, log_uniform
        >>> few = random(us.models.GPRGNN, count=2, lr=log_uniform(1e-3, 1e-1), depth=integers(2, 20))
        >>> more = random(us.models.GPRGNN, count=9, lr=log_uniform(1e-3, 1e-1), depth=integers(2, 20))
        >>> print(more)
        GPRGNN: 9 settings × 1 seed
        >>> [str(t) for t in few.trials("cora")] == [str(t) for t in more.trials("cora")[:2]]
        True
    """
    seeds = _seeds(seed)
    count, draw = _whole("count", count, 1), _whole("draw", draw, 0)
    _check_size(count, seeds)
    said = {name: _values(name, given) for name, given in {"preset": preset, **ranges}.items()}
    for name, values in said.items():
        if len(values) > 1 and any(isinstance(v, Range) for v in values):
            raise TypeError(f"{name}: a range inside a list; give one range, or a list of values")
    parts: list[Part] = []
    for model, words in _by_model(models, said).items():
        odds = {name: v[0] if isinstance(v[0], Range) else Choice(v) for name, v in words.items()}
        if all(isinstance(one, Choice) and len(one.values) == 1 for one in odds.values()):
            odds = declared_search(model) | odds
        drawn = [{name: r.at(unit(draw, i, name)) for name, r in odds.items()} for i in range(count)]
        parts.append(Part(model, tuple({_mark(words): words for words in drawn}.values()), seeds))
    return Space(tuple(parts))


def declared_search(model: type[nn.Module]) -> dict[str, Range]:
    """Where searches look that are told nothing else, as the settings of a model and of training declare it.

    Example:
        >>> import unspool as us
        >>> {name: str(span) for name, span in declared_search(us.models.SGC).items()}
        {'lr': '0.001 to 0.1 by factors', 'weight_decay': 'one of 0.0, 5e-05, 0.0005, 0.005', 'depth': '1 to 20 in whole numbers'}
    """
    return {one.name: one.search for one in (*CONFIG.values(), *schema_of(model).values()) if one.search is not None}


def _by_model(models: tuple[Any, ...], said: Mapping[str, tuple[Any, ...]]) -> dict[type[nn.Module], dict[str, Any]]:
    """The words that each model is given: all of training, and its own."""
    check_names(models, said)
    return {model: {name: v for name, v in said.items() if takes(model, name)} for model in models}


def _values(name: str, given: Any) -> tuple[Any, ...]:
    """One value or several, as a tuple without repeats."""
    if hasattr(given, "tolist") and getattr(given, "ndim", 0) == 1:
        given = given.tolist()  # NumPy and torch
    if isinstance(given, set | frozenset) or hasattr(given, "__next__"):
        raise TypeError(f"{name}: a {type(given).__name__} has no fixed order; give a list")
    values = [_single(name, v) for v in given] if isinstance(given, list | tuple | range) else [_single(name, given)]
    if not values:
        raise ValueError(f"{name}: the list is empty; give at least one value, or leave {name} out")
    return tuple({_mark({name: v}): v for v in values}.values())


def _single(name: str, value: Any) -> Any:
    if hasattr(value, "item") and getattr(value, "ndim", None) == 0:
        value = value.item()  # Trap: np.int64(5) is not an int, and would be stored as another value than 5
    if isinstance(value, float) and math.isnan(value):
        raise ValueError(f"{name}: nan is not a value; leave it out")
    if isinstance(value, Choice):
        return Choice(tuple(_single(name, v) for v in value.values))
    return value


def _mark(settings: Settings) -> str:
    """Equal for equal settings; 1, 1.0 and True are three values, as they are in files."""
    return repr(sorted((name, _comparable(v)) for name, v in settings.items()))


def _comparable(value: Any) -> str:
    if isinstance(value, Mapping):
        return repr(sorted(value.items()))
    if isinstance(value, Preset):
        return f"{value.name} {id(value)}"  # two of one name may say different things
    plain = value is None or isinstance(value, bool | int | float | str | list | tuple | Range)
    # Two functions may have one name, so objects count by what they are.
    return repr(value) if plain else f"{looks(value)} {identity.digest(value, 'it')}"


def _seeds(given: Any) -> tuple[int, ...]:
    return tuple(_whole("seed", v, 0) for v in _values("seed", given))


def _whole(name: str, value: Any, least: int) -> int:
    try:
        number = operator.index(value)
    except TypeError:
        number = least - 1
    if number < least or isinstance(value, bool):
        raise ValueError(f"{name}={value!r}: expected a whole number of at least {least}")
    return number


def _check_size(settings: int, seeds: tuple[int, ...]) -> None:
    if settings * len(seeds) > MOST:
        raise ValueError(
            f"{settings:,} settings × {len(seeds):,} seeds are more than {MOST:,} trials; give fewer values, or draw some at random"
        )
