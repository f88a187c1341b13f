"""From what was typed to a search space: models, lists of values, ranges, seeds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from torch import nn

from unspool import study
from unspool.cli.commands.options import CONFIG, SHORT
from unspool.cli.data_options import DataOptions
from unspool.cli.errors import option
from unspool.cli.train_options import (
    model_named,
    preset_named,
    split_pair,
    stored_depth,
    stored_search,
    take_texts,
    usual_model,
)
from unspool.errors import UNSHOWN, InputError
from unspool.reproduce import paper_grid
from unspool.settings import Setting, schema_of
from unspool.settings.kinds import Nullable, Real, Whole
from unspool.text import plain_number, split_list
from unspool.train import TrainConfig

_ELSEWHERE = {"seed": "--seeds and --first-seed", "seeds": "--seeds", "preset": "--preset", "model": "MODELS"}


@dataclass(frozen=True)
class SpaceOptions:
    """What the user said about the space; values are text as they were typed."""

    models: tuple[str, ...] = ()
    seeds: int = 10
    first_seed: int = 0
    presets: tuple[str, ...] = ()
    settings: tuple[str, ...] = ()
    loss: str | None = None
    normalise_rows: bool | None = None
    count: int | None = None
    ranges: tuple[str, ...] = ()
    draw: int = 0
    paper_grid: bool = False
    short: Mapping[str, str] | None = None
    config: Mapping[str, str] | None = None

    @staticmethod
    def taken_from(options: dict[str, Any]) -> SpaceOptions:
        """Take these options out of all options."""
        short, config = take_texts(options, SHORT), take_texts(options, CONFIG)
        mine = [f.name for f in fields(SpaceOptions) if f.name not in ("short", "config")]
        return SpaceOptions(**{name: options.pop(name) for name in mine}, short=short, config=config)

    def space(self, data: DataOptions) -> study.Space:
        """The space that was asked for; what cannot be is refused in one sentence.

        Example:
            >>> print(SpaceOptions(("gcn",), seeds=3, settings=("dropout=0.2,0.5",)).space(DataOptions()))
            GCN: 2 settings × 3 seeds
        """
        kinds = [model_named(name) for name in dict.fromkeys(self.models or (usual_model(data),))]
        seeds = range(self.first_seed, self.first_seed + self.seeds)
        said = self._values(kinds)
        spans = self._ranges(kinds, said)
        self._check(said)
        if self.paper_grid:
            return _joined([paper_grid(kind, seed=seeds) for kind in kinds])
        parts: list[study.Space] = []
        for kind in kinds:
            mine = {name: values for name, values in {**said, **spans}.items() if _takes(kind, name)}
            presets = [preset_named(name, kind, data) for name in self.presets or (None,)]
            shallow = {name: [depth] for name, depth in stored_depth(kind, data).items()}
            if self.count is None:
                parts.append(study.grid(kind, seed=seeds, preset=presets, **{**shallow, **mine}))
                continue
            chosen = spans or len(presets) > 1 or any(len(values) > 1 for values in mine.values())
            if not chosen and data.hops is not None:  # everything is drawn, and depths from those that are there
                shallow = stored_search(kind, data)
            words = {**shallow, **mine}
            parts.append(study.random(kind, count=self.count, seed=seeds, draw=self.draw, preset=presets, **words))
        return _joined(parts)

    def _check(self, said: Mapping[str, list[Any]]) -> None:
        if self.ranges and self.count is None:
            raise ValueError("--range is for random draws; give their number with --random N, or give a list of values")
        if self.paper_grid and (said or self.count is not None or self.presets):
            raise ValueError("--paper-grid is a fixed grid; leave the settings out, or give lists of values")

    def _values(self, kinds: list[type[nn.Module]]) -> dict[str, list[Any]]:
        """Every setting that was said, with its values."""
        short = [f"{name}={text}" for name, text in {**(self.short or {}), **(self.config or {})}.items()]
        found: dict[str, list[Any]] = {}
        for pair in (*short, *self.settings):
            name, text = _pair("--setting", pair)
            if name in found:
                raise ValueError(
                    f"--setting {pair}: {name} is given twice; give all its values in one list, {_list(name)}"
                )
            one = _setting(name, kinds)
            try:
                found[name] = [one.parse(part) for part in split_list(text)]
            except InputError as problem:
                kind = one.kind.inner if isinstance(one.kind, Nullable) else one.kind
                if problem.hint is None and isinstance(kind, Real | Whole) and (":" in text or ".." in text):
                    raise InputError(
                        name,
                        text,
                        problem.expected,
                        f"a range is --range {name}={text}, with --random N",
                        owner=problem.owner,
                    ) from None
                raise
        return found

    def _ranges(self, kinds: list[type[nn.Module]], said: Mapping[str, Any]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for pair in self.ranges:
            name, text = _pair("--range", pair)
            if name in said or name in found:
                raise ValueError(f"--range {pair}: {name} is given twice; give one range, or one list")
            try:
                kind = _setting(name, kinds).kind
            except InputError as problem:
                raise ValueError(f"--range {pair}: {problem.sentence(option)}") from None
            kind = kind.inner if isinstance(kind, Nullable) else kind
            if not isinstance(kind, Real | Whole):
                raise ValueError(f"--range {pair}: {name} is not a number; give a list with {_list(name)}")
            if isinstance(kind, Whole) and ".." not in text:
                raise ValueError(f"--range {pair}: {name} is a whole number; write --range {name}=LOW..HIGH")
            found[name] = range_of(pair, text)
        return found


def _joined(parts: list[study.Space]) -> study.Space:
    return sum(parts[1:], parts[0])


def _pair(option: str, pair: str) -> tuple[str, str]:
    name, text = split_pair(option, pair)
    if name in _ELSEWHERE:
        raise ValueError(f"{option} {pair}: {name} is set with {_ELSEWHERE[name]}")
    return name, text


def _list(name: str) -> str:
    """How a list of values of a setting is typed."""
    return f"{option(name)} V1,V2,..." if name in CONFIG else f"--setting {name}=V1,V2,..."


def _takes(kind: type[nn.Module], name: str) -> bool:
    return name in TrainConfig.schema or schema_of(kind).takes(name)


def _setting(name: str, kinds: list[type[nn.Module]]) -> Setting:
    """The setting of this name, of training or of the first model that has it."""
    if name in TrainConfig.schema:
        return TrainConfig.schema[name]
    for kind in kinds:
        if schema_of(kind).takes(name):
            return schema_of(kind).of(name)
    if len(kinds) == 1:
        return schema_of(kinds[0]).of(name)
    each = "; ".join(f"{kind.__name__} takes {', '.join(schema_of(kind)) or 'none'}" for kind in kinds)
    hints = (schema_of(kind).hint(name) for kind in kinds)
    meant = next((hint for hint in hints if hint is not None), None)
    raise InputError(name, UNSHOWN, f"a setting of one of the models: {each}", meant, owner=kinds[0].__name__)


def range_of(pair: str, text: str) -> Any:
    """``LOW:HIGH``, ``LOW:HIGH:log`` or ``LOW..HIGH``, as the range that it means.

    Example:
        >>> print(range_of("lr=0.001:0.1:log", "0.001:0.1:log"), "/", range_of("depth=2..20", "2..20"))
        0.001 to 0.1 by factors / 2 to 20 in whole numbers
    """
    whole = ".." in text
    parts = text.split("..") if whole else text.split(":")
    try:
        ends = [(int if whole else float)(plain_number(part)) for part in parts[:2]]
    except ValueError:
        ends = []
    if len(ends) != 2 or parts[2:] not in ([], [] if whole else ["log"]):
        raise ValueError(
            f"--range {pair}: write LOW:HIGH, LOW:HIGH:log for a log range, or LOW..HIGH for whole numbers"
        )
    if not ends[0] < ends[1] or (parts[2:] and ends[0] <= 0):
        factors = "a low end above 0 for a log range; otherwise leave :log out"
        what = factors if parts[2:] and ends[0] <= 0 else "two finite ends, the lower one first"
        raise ValueError(f"--range {pair}: expected {what}")
    make: Any = study.integers if whole else study.log_uniform if parts[2:] else study.uniform
    return make(*ends)
