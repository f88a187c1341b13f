"""What the words of a space mean to a model: which go to the plan, which to the constructor, what a preset adds."""

from __future__ import annotations

import functools
import inspect
import operator
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any

from torch import nn

from unspool.models.gprgnn import GPRGNN
from unspool.models.model import Model
from unspool.models.presets import has_preset, preset
from unspool.study import identity
from unspool.study.search.ranges import Choice, Range
from unspool.study.trial import Trial, plain
from unspool.train.plan import Plan, Stop

#: A setting as it was said: by name, with nothing from presets yet.
Words = Mapping[str, Any]

#: Words that change the plan.
PLAN = frozenset(f.name for f in fields(Plan))
_PRESETS = ("paper", "official", "default")
#: How many models are built to see whether their settings fit. One takes a millisecond or two.
_TRIED = 100


@dataclass(frozen=True)
class Signature:
    """What a model class takes beside its two widths.

    Attributes:
        names: the keywords it knows.
        needed: those of them that have no default.
        anything: whether it takes keywords that it does not name.
        ours: whether it is a model of this package or inherits from one, so that presets fit it.
    """

    names: tuple[str, ...]
    needed: tuple[str, ...]
    anything: bool
    ours: bool

    def takes(self, word: str) -> bool:
        """Whether a word that is not of the plan means something to the model."""
        if word == "preset":
            return self.ours
        return word in self.names or self.anything


@functools.lru_cache(maxsize=256)
def signature(model: type[nn.Module]) -> Signature:
    """Read the constructor of a model.

    Example:
        >>> import unspool as us
        >>> signature(us.models.SGC).names
        ('depth', 'bias', 'weights')
    """
    kinds = inspect.Parameter
    found = list(inspect.signature(model).parameters.values())
    anything = any(p.kind is kinds.VAR_KEYWORD for p in found)
    places = [p for p in found if p.kind in (kinds.POSITIONAL_ONLY, kinds.POSITIONAL_OR_KEYWORD)]
    if len(places) < 2 and not any(p.kind is kinds.VAR_POSITIONAL for p in found):
        raise TypeError(
            f"{model.__name__}{inspect.signature(model)} is not built as model(in_features, out_features, ...); wrap it in a class that is"
        )
    rest = [p for p in found if p not in places[:2] and p.kind in (kinds.POSITIONAL_OR_KEYWORD, kinds.KEYWORD_ONLY)]
    needed = tuple(p.name for p in rest if p.default is kinds.empty)
    return Signature(tuple(p.name for p in rest), needed, anything, issubclass(model, Model))


def check_models(models: tuple[Any, ...], said: Mapping[str, tuple[Any, ...]]) -> None:
    """Refuse what is no model class, words that no model knows, and values that no plan takes."""
    if not models:
        raise ValueError("no model is given; begin with a class such as models.GPRGNN")
    for model in models:
        if not (isinstance(model, type) and issubclass(model, nn.Module)):
            kind = type(model).__name__
            hint = f"give the class {kind}, not one that is built" if isinstance(model, nn.Module) else "give a class"
            raise TypeError(f"{kind if isinstance(model, nn.Module) else repr(model)} is no model class; {hint}")
        missing = [n for n in signature(model).needed if n not in said]
        if missing:
            raise ValueError(f"{model.__name__} cannot be built without {', '.join(missing)}; say what they are")
    for name, values in said.items():
        _check_word(models, name, values)
        for value in _samples(values):
            if name in PLAN:
                _check_plan(name, value)
            elif name == "preset":
                _check_preset(value)


def _check_word(models: tuple[type[nn.Module], ...], name: str, values: tuple[Any, ...]) -> None:
    if name in PLAN or any(signature(m).takes(name) for m in models) or (name == "preset" and values == (None,)):
        return
    if name == "preset":
        names = ", ".join(m.__name__ for m in models)
        raise ValueError(f"preset: there are none for {names}; say rate, decay and epochs instead")
    each = [f"{m.__name__} takes {', '.join(signature(m).names) or 'no settings'}" for m in models]
    raise ValueError(f"{name!r} is no setting: {'; '.join(each)}; the plan takes {', '.join(sorted(PLAN))}")


def _samples(values: tuple[Any, ...]) -> Iterable[Any]:
    """The values themselves, and both ends of ranges."""
    for value in values:
        if isinstance(value, Choice):
            yield from value.values
        elif isinstance(value, Range):
            yield from (value.at(0.0), value.at(1 - 2**-53))
        else:
            yield value


def _check_plan(name: str, value: Any) -> None:
    """Each field of a plan is right or wrong by itself."""
    if name in ("epochs", "patience", "earliest"):
        try:
            wrong = isinstance(value, bool) or operator.index(value) < 0
        except TypeError:
            wrong = True
        if wrong:
            raise ValueError(f"{name}={value!r}: expected a whole number of epochs")
    if name == "optimiser" and not callable(value):
        raise TypeError(f"optimiser={value!r}: expected a class such as torch.optim.AdamW")
    numbers = value.values() if name == "decay" and isinstance(value, Mapping) else (value,)
    if name in ("rate", "decay") and any(isinstance(v, bool) or not isinstance(v, int | float) for v in numbers):
        raise TypeError(f"{name}={value!r}: expected a number")
    alone: dict[str, Any] = {name: value}
    Plan(**alone)


def _check_preset(value: Any) -> None:
    if value is not None and (not isinstance(value, str) or value.lower() not in _PRESETS):
        raise ValueError(f"preset={value!r}: there are {', '.join(repr(p) for p in _PRESETS)}")


@dataclass(frozen=True, eq=False)
class Settled:
    """A trial but for its seed."""

    model: type[nn.Module]
    settings: dict[str, Any]
    plan: Plan
    normalise_rows: bool
    preset: str

    def trial(self, seed: int) -> Trial:
        """The trial with a seed."""
        return Trial(self.model, self.settings, self.plan, seed, self.normalise_rows, self.preset)


def resolve(model: type[nn.Module], words: Words, dataset: str) -> Settled:
    """Add to words what a preset says on a dataset.

    Example:
        >>> import unspool as us
        >>> how = resolve(us.models.GPRGNN, {"dropout": 0.2, "decay": 0.0}, "cora")
        >>> how.settings["propagation_dropout"], how.plan.decay, how.plan.epochs
        (0.2, 0.0, 1000)
    """
    said = dict(words)
    name = said.pop("preset", None)
    changes = {k: said.pop(k) for k in words if k in PLAN}
    if not issubclass(model, Model):
        return Settled(model, said, Plan(**changes), normalise_rows=False, preset="default")
    how = preset(model, dataset, _preset_name(model, name, dataset))
    # GPRGNN's authors have one rate for both places; other models drop nothing before the hops unless they are told to.
    if issubclass(model, GPRGNN) and "dropout" in said and "propagation_dropout" in how.settings:
        said.setdefault("propagation_dropout", said["dropout"])
    plan = how.plan(**_stopping(changes, how.stop))
    return Settled(model, {**how.settings, **said}, plan, how.normalise_features, how.name)


def _preset_name(model: type[nn.Module], said: str | None, dataset: str) -> str:
    if said is None:
        # A class of the user's has defaults of its own, and the paper has nothing to say about it.
        return "paper" if has_preset(dataset) and is_ours(model) else "default"
    return said


def is_ours(model: type[nn.Module]) -> bool:
    """Whether a class is one of this package, and not one of the user's that inherits from it.

    Example:
        >>> import unspool as us
        >>> Mine = type("Mine", (us.models.GCN,), {"__module__": "my_models"})
        >>> is_ours(us.models.GCN), is_ours(Mine)
        (True, False)
    """
    return identity.foreign(model.__module__) == "unspool"


def _stopping(changes: dict[str, Any], stop: Stop) -> dict[str, Any]:
    """Patience that is asked for is meant, even where the preset never stops."""
    if "patience" in changes and "stop" not in changes and stop is Stop.NEVER:
        return {**changes, "stop": Stop.PATIENCE}
    return changes


def try_out(model: type[nn.Module], settings: Iterable[Mapping[str, Any]]) -> None:
    """Build a small model with each of some settings, so that a value that does not fit is found before the work.

    Only models of this package are built, as others may not like small widths; of very many settings only the first.
    """
    if not issubclass(model, Model):
        return
    distinct = {repr(sorted((k, repr(plain(v))) for k, v in s.items())): s for s in settings}
    for chosen in list(distinct.values())[:_TRIED]:
        try:
            Trial(model, chosen).build(4, 2)
        except (ValueError, TypeError) as problem:
            told = ", ".join(f"{k}={plain(v)}" for k, v in chosen.items())
            problem.args = (f"{model.__name__}({told}) cannot be built: {problem}",)
            raise
