"""Settings of a space as a trial: which go to the configuration, which to the model, and what a preset adds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from torch import nn

from unspool.errors import UNSHOWN, InputError
from unspool.settings import REQUIRED, Range, schema_of
from unspool.settings.declaration import samples
from unspool.train import DEFAULT, Preset, Stop, TrainConfig, Trial

#: Settings as they were given: by name, with nothing from presets yet.
Settings = Mapping[str, Any]

#: Settings that change how training goes.
CONFIG = TrainConfig.schema
#: How many models are built to see whether their settings fit. One takes a millisecond or two.
_TRIED = 100


def takes(model: type[nn.Module], name: str) -> bool:
    """Whether a setting means something to a model or to its training.

    Example:
        >>> import unspool as us
        >>> takes(us.models.SGC, "lr"), takes(us.models.SGC, "depth"), takes(us.models.SGC, "hidden")
        (True, True, False)
    """
    return name == "preset" or name in CONFIG or schema_of(model).takes(name)


def check_names(models: tuple[Any, ...], said: Mapping[str, tuple[Any, ...]]) -> None:
    """Refuse what is not a model class, names that nobody knows, and values that do not fit."""
    if not models:
        raise ValueError("no model is given; begin with a class such as models.GPRGNN")
    for model in models:
        if not (isinstance(model, type) and issubclass(model, nn.Module)):
            kind = type(model).__name__
            hint = f"give the class {kind}, not one that is built" if isinstance(model, nn.Module) else "give a class"
            raise TypeError(f"{kind if isinstance(model, nn.Module) else repr(model)} is not a model class; {hint}")
        taken = [name for name in schema_of(model) if name in said and name in CONFIG]
        if taken:  # models that declare their settings cannot have one of such a name
            raise InputError(
                taken[0],
                UNSHOWN,
                f"a name of one thing, and it is an argument of {model.__name__} and of training",
                "rename that of the model",
            )
        missing = [s.name for s in schema_of(model).values() if s.default is REQUIRED and s.name not in said]
        if missing:
            raise InputError(missing[0], UNSHOWN, f"a value: {model.__name__} has no default for it")
    for name, values in said.items():
        if not any(takes(model, name) for model in models):
            each = "; ".join(f"{m.__name__} takes {', '.join(schema_of(m)) or 'no settings'}" for m in models)
            hints = [schema.hint(name) for schema in (*map(schema_of, models), CONFIG)]
            meant = next((hint for hint in hints if hint is not None), None)
            raise InputError(name, UNSHOWN, f"a setting: {each}; training takes {', '.join(CONFIG)}", meant)
        for value in _samples(values):
            _check_value(models, name, value)


def _check_value(models: tuple[type[nn.Module], ...], name: str, value: Any) -> None:
    if name == "preset":
        if not isinstance(value, Preset | None):
            raise InputError("preset", value, "a preset, such as train.DEFAULT or reproduce.PAPER")
    elif name in CONFIG:
        CONFIG[name].accept(value)
    else:
        for model in models:
            if name in schema_of(model):
                schema_of(model)[name].accept(value)


def _samples(values: tuple[Any, ...]) -> Iterable[Any]:
    """The values themselves, and both ends of ranges."""
    for value in values:
        if isinstance(value, Range):
            yield from samples(value)
        else:
            yield value


def resolve(model: type[nn.Module], settings: Settings, dataset: str) -> Trial:
    """The trial that settings mean on a dataset, with seed 0: what they leave out comes from their preset.

    Example:
        >>> import unspool as us
        >>> trial = resolve(us.models.GPRGNN, {"dropout": 0.2, "lr": 0.05, "preset": us.reproduce.PAPER}, "cora")
        >>> trial.settings["dropout"], trial.settings["depth"], trial.config.lr, trial.config.epochs
        (0.2, 10, 0.05, 1000)
    """
    rest = dict(settings)
    preset = rest.pop("preset", None)
    start = (DEFAULT if preset is None else preset).trial(model, dataset)
    changes = {name: rest.pop(name) for name in settings if name in CONFIG}
    config = start.config.replace(**with_patience(changes, start.config.stop))
    return replace(start, settings={**start.settings, **schema_of(model).check(rest)}, config=config)


def with_patience(changes: Mapping[str, Any], stop: Stop) -> dict[str, Any]:
    """Patience that is asked for is meant, even where the preset never stops.

    Example:
        >>> with_patience({"patience": 20}, Stop.NEVER)["stop"].name
        'PATIENCE'
    """
    asked = "patience" in changes and "stop" not in changes and stop is Stop.NEVER
    return {**changes, "stop": Stop.PATIENCE} if asked else dict(changes)


def try_out(model: type[nn.Module], trials: Iterable[Trial]) -> None:
    """Build a small model of each of some trials, so that settings that do not fit together are found before the work.

    Only models that declare their settings are built, as others may not like small widths; of very many settings only the first.
    """
    if not hasattr(model, "schema"):
        return
    distinct = {str(trial): trial for trial in trials}
    for trial in list(distinct.values())[:_TRIED]:
        try:
            trial.build(4, 2)
        except (ValueError, TypeError) as problem:
            told = ", ".join(f"{name}={trial.shown(name)}" for name in trial.settings)
            raise ValueError(f"{model.__name__}({told}) cannot be built: {problem}") from problem
