"""From what was typed to a search space: models, lists of values, ranges, seeds."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from enum import Enum
from typing import Any

import torch

from unspool import models, study
from unspool.cli.finite import plain
from unspool.cli.source import said_in_options
from unspool.cli.wish import model_called
from unspool.train import Plan, Precision, Select, Stop

#: The model that is trained when none is named, as in ``unspool train``.
USUAL = "UGDGNN"
#: What a person types for the choices of a plan.
CHOICES: dict[str, dict[str, Any]] = {
    "select": {"loss": Select.VALIDATION_LOSS, "accuracy": Select.VALIDATION_ACCURACY, "last": Select.LAST},
    "stop": {choice.name.lower(): choice for choice in Stop},
    "precision": {choice.name.lower(): choice for choice in Precision},
}
_PLAN = tuple(f.name for f in fields(Plan))
_WHOLE = ("epochs", "patience", "earliest")
_ELSEWHERE = {"seed": "--seeds and --first-seed", "seeds": "--seeds", "preset": "--preset", "model": "MODELS"}


@dataclass(frozen=True)
class Typed:
    """What the user said about the space."""

    models: tuple[str, ...] = ()
    seeds: int = 10
    first_seed: int = 0
    preset: tuple[str, ...] = ()
    settings: tuple[str, ...] = ()
    count: int | None = None
    ranges: tuple[str, ...] = ()
    draw: int = 0
    paper_grid: bool = False
    short: Mapping[str, str | None] | None = None


def space_of(typed: Typed) -> study.Space:
    """The space that was asked for; what cannot be is refused in one sentence.

    Example:
        >>> print(space_of(Typed(("gcn",), seeds=3, settings=("dropout=0.2,0.5",))))
        GCN: 2 settings × 3 seeds
    """
    kinds = [model_called(name) for name in dict.fromkeys(typed.models if typed.models else (USUAL,))]
    seeds = range(typed.first_seed, typed.first_seed + typed.seeds)
    words = _words(typed, kinds)
    spans = {} if typed.count is None else _ranges(typed, kinds, words)
    _check(typed, words)
    preset: Any = list(typed.preset) if typed.preset else None
    with said_in_options():
        if typed.paper_grid:
            parts = [study.paper_grid(kind, seed=seeds) for kind in kinds]
            return sum(parts[1:], parts[0])
        if typed.count is not None:
            drawn = {**words, **spans}
            return study.random(*kinds, count=typed.count, seed=seeds, draw=typed.draw, preset=preset, **drawn)
        return study.grid(*kinds, seed=seeds, preset=preset, **words)


def _check(typed: Typed, words: Mapping[str, list[Any]]) -> None:
    if typed.ranges and typed.count is None:
        raise ValueError("--range is drawn from at random; say how often with --random N, or give a list with --set")
    if typed.paper_grid and (words or typed.count is not None or typed.preset):
        raise ValueError(
            "--paper-grid is the paper's grid as it stands; leave the settings out, or write a grid with --set"
        )
    if typed.count is not None and not typed.ranges and all(len(values) == 1 for values in words.values()):
        raise ValueError("--random has nothing to draw from; give --range NAME=LOW:HIGH, or --set NAME=V1,V2,...")


# -- lists of values ---------------------------------------------------------------------------------------------------


def _words(typed: Typed, kinds: list[type[models.Model]]) -> dict[str, list[Any]]:
    """Every setting that was said, with its values."""
    short = {} if typed.short is None else typed.short
    pairs = [f"{name}={text}" for name, text in short.items() if text is not None]
    found: dict[str, list[Any]] = {}
    for pair in (*pairs, *typed.settings):
        name, text = _halves("--set", pair, kinds)
        if name in found:
            raise ValueError(f"--set {pair}: {name} is said twice; give all its values in one list, {name}=V1,V2,...")
        read = _reader(name, kinds)
        values = [read(part.strip()) for part in text.split(",")]
        found[name] = values
    return found


def _halves(option: str, pair: str, kinds: list[type[models.Model]]) -> tuple[str, str]:
    """The name and the rest of ``name=rest``."""
    name, sign, text = pair.partition("=")
    name = name.strip().replace("-", "_")
    if name in _ELSEWHERE:
        raise ValueError(f"{option} {pair}: {name} is said with {_ELSEWHERE[name]}")
    if not sign or not text.strip():
        raise ValueError(f"{option} {pair}: write {option} NAME={'V1,V2,...' if option == '--set' else 'LOW:HIGH'}")
    if name not in _PLAN and not any(name in settings_of(kind) for kind in kinds):
        each = "; ".join(f"{kind.__name__} takes {', '.join(settings_of(kind))}" for kind in kinds)
        raise ValueError(f"{option} {pair}: {each}; the plan of all takes {', '.join(_PLAN)}")
    return name, text


def settings_of(kind: type[models.Model]) -> dict[str, Any]:
    """The settings of a model with their defaults.

    Example:
        >>> from unspool import models
        >>> settings_of(models.MLP)
        {'hidden': 64, 'dropout': 0.5, 'bias': True}
    """
    given = inspect.signature(kind).parameters.items()
    return {name: p.default for name, p in given if name not in ("in_features", "out_features")}


def _reader(name: str, kinds: list[type[models.Model]]) -> Callable[[str], Any]:
    """What makes a value out of text, for a setting of this name."""
    if name in CHOICES:
        return lambda text: _one_of(name, text, CHOICES[name])
    if name == "optimiser":
        return lambda text: _one_of(name, text, _optimisers())
    if name in _PLAN:
        return lambda text: _number(name, text, whole=name in _WHOLE)
    kind = next(kind for kind in kinds if name in settings_of(kind))
    default = settings_of(kind)[name]
    if default is None and inspect.signature(kind).parameters[name].annotation not in ("float | None", "int | None"):
        raise ValueError(
            f"--set {name}: {name} of {kind.__name__} takes an object; set it in Python with study.grid(...)"
        )
    if isinstance(default, Enum):
        return lambda text: _one_of(name, text, {choice.name.lower(): choice for choice in type(default)})
    if isinstance(default, bool):
        return lambda text: _one_of(name, text, {"true": True, "false": False, "yes": True, "no": False})
    return lambda text: _number(name, text, whole=isinstance(default, int))


def _one_of(name: str, text: str, choices: Mapping[str, Any]) -> Any:
    if text.lower() not in choices:
        raise ValueError(f"--set {name}={text}: choose from {', '.join(list(choices)[:12])}")
    return choices[text.lower()]


def _optimisers() -> dict[str, Any]:
    # Muon takes matrices alone and SparseAdam sparse gradients: no model here has only those.
    without = ("optimizer", "muon", "sparseadam")
    base = torch.optim.Optimizer
    found = {k.lower(): v for k, v in vars(torch.optim).items() if isinstance(v, type) and issubclass(v, base)}
    return {name: kind for name, kind in sorted(found.items()) if name not in without}


def _number(name: str, text: str, whole: bool) -> Any:
    try:
        return int(plain(text)) if whole else float(plain(text))
    except ValueError:
        kind = "whole numbers" if whole else "numbers"
        raise ValueError(f"--set {name}={text}: expected {kind}, with commas between them") from None


# -- ranges ------------------------------------------------------------------------------------------------------------


def _ranges(typed: Typed, kinds: list[type[models.Model]], words: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for pair in typed.ranges:
        name, text = _halves("--range", pair, kinds)
        if name in words or name in found:
            raise ValueError(f"--range {pair}: {name} is said twice; give one range, or one list")
        found[name] = range_of(pair, text.strip())
        default = next((held[name] for kind in kinds if name in (held := settings_of(kind))), 0.0)
        whole = name in _WHOLE or (isinstance(default, int) and not isinstance(default, bool))
        if name in CHOICES or name == "optimiser" or isinstance(default, bool | Enum):
            raise ValueError(f"--range {pair}: {name} is no number; give a list with --set {name}=V1,V2,...")
        if whole and ".." not in text:
            raise ValueError(f"--range {pair}: {name} is a whole number; write --range {name}=LOW..HIGH")
    return found


def range_of(pair: str, text: str) -> Any:
    """``LOW:HIGH``, ``LOW:HIGH:log`` or ``LOW..HIGH``, as the range that it means.

    Example:
        >>> print(range_of("rate=0.001:0.1:log", "0.001:0.1:log"), "/", range_of("depth=2..20", "2..20"))
        0.001 to 0.1 by factors / 2 to 20 in whole numbers
    """
    whole = ".." in text
    parts = text.split("..") if whole else text.split(":")
    try:
        ends = [(int if whole else float)(plain(part)) for part in parts[:2]]
    except ValueError:
        ends = []
    if len(ends) != 2 or parts[2:] not in ([], [] if whole else ["log"]):
        raise ValueError(f"--range {pair}: write LOW:HIGH, LOW:HIGH:log for factors, or LOW..HIGH for whole numbers")
    make: Any = study.integers if whole else study.log_uniform if parts[2:] else study.uniform
    try:
        return make(*ends)
    except ValueError as problem:
        said = str(problem).partition(": ")[2].replace("use uniform", "leave :log out")
        raise ValueError(f"--range {pair}: {said}") from None
