"""How to train one trial of a study alone: as a command where there is one, else in Python."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

from unspool import models
from unspool.cli.source import Source
from unspool.cli.study.data import material
from unspool.cli.study.space import CHOICES, settings_of
from unspool.models.presets import Preset
from unspool.study import Provider, Row
from unspool.train import Plan, Precision, Select, Stop


class Unsaid(ValueError):
    """Something about a trial that ``unspool train`` has no words for."""


@dataclass(frozen=True)
class Again:
    """How to train a trial alone: a command, or the reason why there is none and perhaps lines of Python."""

    command: str | None = None
    reason: str | None = None
    python: str | None = None


def again(row: Row, root: Path | None = None) -> Again:
    """The way to train this very trial alone, with exactly its settings.

    Args:
        row: the trial.
        root: the folder with raw data.
    """
    kind = next((model for model in models.MODELS if model.__name__ == row.described["model"]), None)
    if kind is None:
        return Again(reason=f"{row.described['model']} is no model of this package")
    try:
        where = _data(row, root)
    except Unsaid as problem:
        return Again(reason=str(problem))
    reasons: list[str] = []
    # Decay by group can be said by naming a preset that has it, so the others are tried too.
    for name in dict.fromkeys([row.described["preset"], "paper", "default", "official"]):
        try:
            preset = models.preset(kind, where["--dataset"], name)
            return Again(shlex.join(["unspool", "train", kind.__name__, *_listed(where), *_options(row, preset)]))
        except ValueError as problem:  # a preset that does not exist, or Unsaid
            reasons.append(str(problem))
    return Again(reason=reasons[0], python=_python(row, kind, where))


def _listed(options: Mapping[str, str]) -> list[str]:
    return [word for pair in options.items() for word in pair]


def _data(row: Row, root: Path | None) -> dict[str, str]:
    """The options that name the data; Unsaid where no name leads to them."""
    found = re.fullmatch(r"(.*?)(?: \((.+)\))?", row.data)
    name, split = (found[1], found[2]) if found else (row.data, None)
    options = {"--dataset": name.lower(), **({} if split is None else {"--split": split})}
    try:
        held = material(Source(dataset=name.lower(), data=root, split=split), ()).data
    except FileNotFoundError:
        return options  # the set is known and its files are elsewhere
    except ValueError:
        raise Unsaid(
            f"{row.data} is no set with a name; give unspool train the files that the study was given"
        ) from None
    if Provider(held).mark != row.mark:
        raise Unsaid(f"{row.data} is not the set of that name as it comes, or has another split")
    return options if root is None else {**options, "--data": str(root)}


# -- settings and plan -------------------------------------------------------------------------------------------------


def _options(row: Row, preset: Preset) -> list[str]:
    told, plan = row.described, row.described["plan"]
    words = ["--preset", preset.name, *_settings(told["settings"], preset), *_plan(plan, preset.plan())]
    if plan["optimiser"] != "Adam":
        words += ["--optimiser", plan["optimiser"].lower()]
    if plan["precision"] == Precision.BFLOAT16.value:
        words += ["--precision", "bfloat16"]
    words += _decay(row, preset)
    if told["normalise_rows"] != preset.normalise_features:
        words += ["--normalise-rows" if told["normalise_rows"] else "--raw-rows"]
    return [*words, "--seeds", "1", "--first-seed", str(told["seed"]), "--out", f"out/trial{row.number}"]


def _settings(held: Mapping[str, Any], preset: Preset) -> list[str]:
    """What differs from the preset, as ``--set`` takes it."""
    defaults = settings_of(preset.model)
    before = {name: _plain(value) for name, value in {**defaults, **preset.settings}.items()}
    words: list[str] = []
    for name, value in {name: held.get(name, _plain(default)) for name, default in defaults.items()}.items():
        if value == before[name]:
            continue
        if not isinstance(value, bool | int | float) and not isinstance(defaults[name], Enum):
            raise Unsaid(f"--set has no words for {name}={value}")
        words += ["--set", f"{name}={str(value).lower() if isinstance(value, bool) else value}"]
    return words


def _plain(value: Any) -> Any:
    return value.name.lower() if isinstance(value, Enum) else value


def _plan(held: Mapping[str, Any], before: Plan) -> list[str]:
    words: list[str] = []
    for name in ("epochs", "rate"):
        words += [f"--{name}", repr(held[name])] if held[name] != getattr(before, name) else []
    if held["select"] == Select.LAST.value:
        raise Unsaid("unspool train keeps the best epoch, never the last")
    if held["select"] != before.select.value:
        words += ["--select", next(k for k, v in CHOICES["select"].items() if v.value == held["select"])]
    return words + _stop(held, before)


def _stop(held: Mapping[str, Any], before: Plan) -> list[str]:
    if held["stop"] == Stop.NEVER.value:
        # Patience as long as the run is never at an end before it.
        return [] if before.stop is Stop.NEVER else ["--patience", str(held["epochs"])]
    if (
        held["stop"] == before.stop.value
        and held["patience"] == before.patience
        and held["earliest"] == before.earliest
    ):
        return []
    if held["stop"] == Stop.PATIENCE.value:
        return ["--patience", str(held["patience"])]
    raise Unsaid("unspool train stops above the mean only where a preset does")


def _decay(row: Row, preset: Preset) -> list[str]:
    """Nothing where the preset decays these groups so; one number where that number does."""
    wanted = Plan(decay=row.described["plan"]["decay"])
    groups = list(_built(row, preset.model).parameter_groups())
    mine = [wanted.decay_of(group) for group in groups]
    if mine == [preset.plan().decay_of(group) for group in groups]:
        return []
    for number in dict.fromkeys(mine):
        if mine == [Plan(decay=number).decay_of(group) for group in groups]:
            return ["--decay", repr(number)]
    told = ", ".join(f"{group} {value:g}" for group, value in zip(groups, mine, strict=True))
    raise Unsaid(f"unspool train decays all weights alike or as a preset does, and this trial has {told}")


def _built(row: Row, kind: type[models.Model]) -> models.Model:
    defaults = settings_of(kind)
    settings = {name: _revived(defaults.get(name), value) for name, value in row.described["settings"].items()}
    try:
        return kind(4, 2, **settings)
    except (TypeError, ValueError):
        raise Unsaid("its settings hold objects that the file knows by name only") from None


def _revived(default: Any, value: Any) -> Any:
    """A setting as the model takes it; files hold choices by name."""
    return type(default)[value.upper()] if isinstance(default, Enum) and isinstance(value, str) else value


# -- Python ------------------------------------------------------------------------------------------------------------


def _python(row: Row, kind: type[models.Model], where: Mapping[str, str]) -> str | None:
    """Lines that train the trial; None where the file does not know everything."""
    told, plan = row.described, row.described["plan"]
    defaults = settings_of(kind)
    words = {name: _written(defaults.get(name), value) for name, value in told["settings"].items()}
    if plan["optimiser"] != "Adam" or None in words.values():
        return None
    enums = {type(defaults[name]) for name in words if isinstance(defaults.get(name), Enum)}
    settings = ", ".join(f"{name!r}: {word}" for name, word in words.items())
    said = [f"{name}={plan[name]!r}" for name in ("rate", "decay", "epochs", "patience", "earliest")]
    for name, choice in {"select": Select, "stop": Stop, "precision": Precision}.items():
        said.append(f"{name}=us.train.{choice.__name__}.{choice(plan[name]).name}")
    return "\n".join([
        "import unspool as us",
        *sorted(f"from {choice.__module__} import {choice.__name__}" for choice in enums),
        f"data = us.datasets.load({where['--dataset']!r})",
        *([f"data = data.with_split(us.datasets.splits.by_name(data, {where['--split']!r}))"] if "--split" in where else []),
        f"plan = us.train.Plan({', '.join(said)})",
        f"settings = {{{settings}}}",
        f"trial = us.study.Trial(us.models.{kind.__name__}, settings, plan, seed={told['seed']}, normalise_rows={told['normalise_rows']})",
        "print(us.study.run([trial], data).table)",
    ])  # fmt: skip


def _written(default: Any, value: Any) -> str | None:
    """A setting as Python code; None where the file holds only how an object looked."""
    if isinstance(default, Enum):
        return f"{type(default).__name__}.{str(value).upper()}"
    return None if isinstance(value, str) else repr(value)
