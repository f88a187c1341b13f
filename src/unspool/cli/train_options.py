"""From what was typed to what is trained: the trial and its data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from torch import nn

from unspool import hops
from unspool.cli.commands.options import CONFIG, SHORT
from unspool.cli.data_options import DataOptions
from unspool.cli.errors import option
from unspool.cli.paths import look_here
from unspool.errors import InputError
from unspool.models import Model, StableGNN, find_model
from unspool.models.graph_first import check_uses
from unspool.ops.stored_hops import StoredHops
from unspool.reproduce import presets
from unspool.settings import Range, schema_of
from unspool.settings.ranges import Choice, Integers
from unspool.study import declared_search
from unspool.study.search.resolve import with_patience
from unspool.train import TaskKind, TrainConfig, Trial, TrialLoader
from unspool.train.epochs import make_optimiser

#: The set that is trained on when none is named, and the model.
BUILT_IN, USUAL = "citeseer", "UGDGNN"
#: The same from stored hops.
USUAL_OF_HOPS = "GraphFirstUGDGNN"
#: The model when none is named, where its recipe has been measured, and presets that are its own.
BEST, MEASURED, ITS_OWN = (
    "StableGNN",
    ("citeseer", "cora", "pubmed", "cs", "physics", "photo"),
    (None, "stable", "grand"),
)


@dataclass(frozen=True)
class TrainOptions:
    """What the user asked for, apart from data and places; values are text as they were typed."""

    model: str | None
    preset: str | None = None
    settings: tuple[str, ...] = ()
    loss: str | None = None
    normalise_rows: bool | None = None
    short: Mapping[str, str] | None = None
    config: Mapping[str, str] | None = None

    @staticmethod
    def taken_from(options: dict[str, Any]) -> TrainOptions:
        """Take these options out of all options."""
        short, config = take_texts(options, SHORT), take_texts(options, CONFIG)
        mine = [f.name for f in fields(TrainOptions) if f.name not in ("short", "config")]
        return TrainOptions(**{name: options.pop(name) for name in mine}, short=short, config=config)

    def trial(self, data: DataOptions) -> Trial:
        """The trial, with seed 0; refused in one sentence where it cannot be, before any work."""
        model = self.model_for(data)
        start = preset_named(self.preset, model, data).trial(model, name_for_presets(data))
        said = {name: TrainConfig.schema[name].parse(text) for name, text in (self.config or {}).items()}
        config = start.config.replace(**with_patience(said, start.config.stop))
        rows = start.normalise_rows if self.normalise_rows is None else self.normalise_rows
        settings = {**start.settings, **self._settings(model)}
        return replace(start, settings={**stored_depth(model, data), **settings}, config=config, normalise_rows=rows)

    def model_for(self, data: DataOptions) -> type[nn.Module]:
        """The model that was named; when none was, the one that is known to be best on these data, and the paper's elsewhere."""
        if self.model is not None:
            return model_named(self.model)
        measured = not data.own and self.loss is None and presets.plain_name(name_for_presets(data)) in MEASURED
        return model_named(BEST if measured and self.preset in ITS_OWN else usual_model(data))

    def _settings(self, model: type[nn.Module]) -> dict[str, Any]:
        """``name=value`` pairs as settings of the model."""
        schema, found = schema_of(model), dict[str, Any]()
        short = [f"{name}={text}" for name, text in (self.short or {}).items()]
        for pair in (*short, *self.settings):
            name, text = split_pair("--setting", pair)
            if name in found:
                raise ValueError(f"--setting {pair}: {name} is given twice; give it once")
            if name in CONFIG and not schema.takes(name):
                raise ValueError(
                    f"--setting {pair}: {name} belongs to training, not to the model; write {option(name, text)}"
                )
            found[name] = schema.of(name).parse(text)
        return found


def usual_model(data: DataOptions) -> str:
    """The model when none is named, on data of which nothing is known."""
    return USUAL if data.hops is None else USUAL_OF_HOPS


def stored_depth(model: type[nn.Module], data: DataOptions) -> dict[str, Any]:
    """The depth of a network that would ask for more hops than are stored, where nobody says how deep it is to be."""
    if data.hops is None or not schema_of(model).takes("depth"):
        return {}
    usual, there = schema_of(model).of("depth").default, hops.open(data.hops, check=False).depth
    return {"depth": there} if isinstance(usual, int) and usual > there else {}


def stored_search(model: type[nn.Module], data: DataOptions) -> dict[str, Range]:
    """The declared search ranges of a model with no depth beyond the hops that are stored; with its own where there is none within."""
    found = declared_search(model)
    if data.hops is None or "depth" not in found:
        return found
    span, there = found["depth"], hops.open(data.hops, check=False).depth
    if isinstance(span, Integers) and span.low <= there:
        found["depth"] = Integers(span.low, min(span.high, there))
    if isinstance(span, Choice) and (within := tuple(v for v in span.values if v <= there)):
        found["depth"] = Choice(within)
    return found


def take_texts(options: dict[str, Any], names: Any) -> dict[str, str]:
    """Take options out of all options; those that were not given are left out."""
    found = {name: options.pop(name) for name in names if name in options}
    return {name: text for name, text in found.items() if text is not None}


def split_pair(option: str, pair: str) -> tuple[str, str]:
    """The name and the value of ``name=value``.

    Example:
        >>> split_pair("--setting", "batch-norm=true")
        ('batch_norm', 'true')
    """
    name, sign, text = pair.partition("=")
    if not sign or not name.strip() or not text.strip():
        raise ValueError(f"{option} {pair}: write {option} NAME=VALUE")
    return name.strip().replace("-", "_"), text.strip()


def model_named(name: str, argument: str = "MODEL") -> type[nn.Module]:
    """The class that was named; ``argument`` is how. Modules are looked for in the current folder, too."""
    look_here(name)
    try:
        return find_model(name)
    except InputError as problem:
        raise InputError(argument, problem.value, problem.expected, problem.hint) from None


def optional_model(name: str | None) -> type[nn.Module] | None:
    """The class that was named with ``--model``, if one was."""
    return None if name is None else model_named(name, "model")


def preset_named(name: str | None, model: type[nn.Module], data: DataOptions) -> Any:
    """The preset that was named; when none was, the paper's for named models on its data sets (StableGNN's own for that), and defaults otherwise."""
    known = not data.own and presets.knows(name_for_presets(data))
    if name is None:
        ours = presets.base_model(model) == model.__name__ and model.__module__.startswith("unspool.")
        if known and ours and issubclass(model, StableGNN):
            return presets.STABLE
        return presets.PAPER if known and ours else presets.PRESETS["default"]
    if data.own and name not in ("default", "stable"):
        raise InputError("preset", name, "default or stable for your own files", "the others belong to named data sets")
    return presets.PRESETS[name]


def name_for_presets(data: DataOptions) -> str:
    """The name by which presets know the data."""
    return "own data" if data.own else BUILT_IN if data.dataset is None else data.dataset


def loader_of(data: DataOptions, loss: str | None, device: str) -> TrialLoader:
    """The data, ready for trials."""
    found = data.load(BUILT_IN)
    made = TrialLoader(
        found, device, kind=None if loss is None else TaskKind(loss), class_weight=data.read_class_weight(), source=data.record(BUILT_IN)
    )  # fmt: skip
    if not data.own:
        made.name = name_for_presets(data).lower()  # as it was typed, and not "grid 20×20"
    return made


def check_trial(trial: Trial, loader: TrialLoader) -> nn.Module:
    """Find out before the work whether the model can be built, and whether the optimiser takes it and its decay."""
    model = trial.build(int(loader.data.features.shape[1]), loader.outputs)
    if isinstance(loader.data.features, StoredHops) and isinstance(model, Model):
        check_uses(model, loader.data.features)
    if trial.config.upper is not None:
        trial.config.upper.check(loader.first)
    check_groups([trial])
    _check_optimiser(trial, model)
    return model


def check_trials(trials: Sequence[Trial], loader: TrialLoader) -> None:
    """The same for many trials, whose models are known to build: each model with each optimiser and decay once."""
    check_groups(trials)
    if isinstance(loader.data.features, StoredHops):
        _check_hops(trials, loader.data.features)
    config = {trial: trial.config.to_plain() for trial in trials}
    kinds = {(t.model, config[t]["optimiser"], str(config[t]["weight_decay"])): t for t in trials}
    for trial in kinds.values():
        _check_optimiser(trial, trial.build(4, 2))


def _check_hops(trials: Sequence[Trial], stored: StoredHops) -> None:
    """Networks that propagate first, over hops that are there: each once of those that differ in more than fractions, which move no depth."""
    distinct: dict[Any, Trial] = {}
    for trial in trials:
        words = {name: value for name, value in trial.settings.items() if not isinstance(value, float)}
        distinct.setdefault((trial.model, str(words)), trial)
    for trial in distinct.values():
        made = trial.build(4, 2)
        if isinstance(made, Model):
            check_uses(made, stored)


def _check_optimiser(trial: Trial, model: nn.Module) -> None:
    if not any(parameter.requires_grad for parameter in model.parameters()):
        raise ValueError(f"{trial.name} has no parameters that training could change; give it some, such as a p_pre")
    try:
        make_optimiser(trial.config, model)
    except ValueError as problem:
        if len(trial.config.parameter_groups(model)) == 1:
            raise
        name = trial.config.to_plain()["optimiser"].lower()
        raise ValueError(
            f"--optimiser {name} cannot decay some parameters and not others; add --weight-decay 0"
        ) from problem


def check_groups(trials: Sequence[Trial]) -> None:
    """Refuse a decay of groups of parameters that none of the models has: nothing would come of it, and nobody would notice."""
    decays: list[Any] = [trial.config.weight_decay for trial in trials]
    by_group = [decay for decay in decays if isinstance(decay, Mapping)]
    if not by_group:
        return
    made: list[Any] = [trial.build(4, 2) for trial in {trial.model: trial for trial in trials}.values()]
    groups = [one.parameter_groups() for one in made if hasattr(one, "parameter_groups")]
    known = list(dict.fromkeys(name for found in groups for name in found))
    for decay in by_group:
        if known and not set(decay) <= set(known):
            shown = TrainConfig.schema["weight_decay"].shown(decay)
            raise InputError("weight_decay", shown, f"names of groups of parameters, which are {', '.join(known)}")
