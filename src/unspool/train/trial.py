"""One trial: a model with its settings, how it is trained, and a seed. The only unit of training."""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any

import numpy as np
import torch
from torch import nn

from unspool import identity
from unspool.errors import IncompatibleError, InputError
from unspool.models import registry
from unspool.settings import REQUIRED, Schema, schema_of
from unspool.settings.kinds import Anything, Mismatch, Whole
from unspool.train.config import LowerLevel, TrainConfig
from unspool.train.seeding import seeded

#: What torch and files take as a seed.
_SEEDS = Whole(0, 2**63 - 1)
#: Raised when the meaning of a stored trial changes.
FORMAT = 3


@dataclass(frozen=True, eq=False)
class Trial:
    """A model class with settings, a training configuration and a seed: everything that decides a result but the data.

    The seed decides the starting weights, the dropout and, where splits are drawn, the split.

    Args:
        model: built as ``model(in_features, out_features, **settings)``.
        settings: keyword arguments of the model.
        config: rates, epochs, which epoch counts, when to stop.
        seed: of the weights and masks.
        normalise_rows: whether rows of the features are scaled to sum 1.
        preset: the name of the preset that it came from.

    Example:
        >>> import unspool as us
        >>> trial = Trial(us.models.GCN, {"hidden": 8}, us.train.TrainConfig(lr=0.02), seed=3)
        >>> print(trial)
        GCN(hidden=8), lr 0.02, weight decay 0.0005, seed 3
        >>> type(trial.build(5, 2)).__name__
        'GCN'
    """

    model: type[nn.Module]
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])
    config: TrainConfig = field(default_factory=TrainConfig)
    seed: int = 0
    normalise_rows: bool = False
    preset: str = "default"

    def __post_init__(self) -> None:
        given: Any = self  # of any type, as Python allows
        if not (isinstance(given.model, type) and issubclass(given.model, nn.Module)):
            raise InputError(
                "model", given.model, "a class such as us.models.GPRGNN", "us.models.find_model finds one by its name"
            )
        if not isinstance(given.settings, Mapping):
            raise InputError("settings", given.settings, "settings of the model by name, such as {'hidden': 8}")
        if not isinstance(given.config, TrainConfig):
            raise InputError("config", given.config, "a TrainConfig, such as TrainConfig(lr=0.02)")
        try:
            object.__setattr__(self, "seed", _SEEDS.accept(given.seed))
        except Mismatch:
            raise InputError("seed", given.seed, _SEEDS.expected) from None

    @property
    def name(self) -> str:
        """The name of the class."""
        return self.model.__name__

    @property
    def schema(self) -> Schema:
        """What is known about the settings of the model."""
        return schema_of(self.model)

    def build(self, in_features: int, out_features: int) -> nn.Module:
        """A fresh model, with the weights that this seed gives it anywhere; torch's own generator is left as it was."""
        with seeded(self.seed):
            return self.make(in_features, out_features)

    def make(self, in_features: int, out_features: int) -> nn.Module:
        """A fresh model, with weights drawn from torch's generator as it stands."""
        made: Any = self.model(in_features, out_features, **self.settings)
        if self.config.lower_level is LowerLevel.UNROLLED:
            return made
        if not hasattr(made, "solve_exactly"):
            raise IncompatibleError(
                f"{self.name} cannot be solved exactly: it is not an unspool.models.Model; keep lower_level=LowerLevel.UNROLLED"
            )
        made.solve_exactly()
        return made

    def with_seed(self, seed: int) -> Trial:
        """The same with another seed; what is known of its code is not looked up again."""
        other = replace(self, seed=seed)
        other.__dict__["_marks"] = self._marks
        return other

    @property
    def code(self) -> str:
        """The mark of all code that decides the result (:func:`~unspool.identity.code_of`), as it was when first asked for.

        Example:
            >>> import unspool as us
            >>> Trial(us.models.GCN).code == str(identity.NUMERICS)
            True
        """
        return self._marks[0]

    @property
    def model_code(self) -> str | None:
        """The mark of the user's own code of the model alone (:func:`~unspool.identity.own_code`), as it was at the same time.

        Example:
            >>> import unspool as us
            >>> Trial(us.models.GCN).model_code is None
            True
        """
        return self._marks[1]

    @functools.cached_property
    def _marks(self) -> tuple[str, str | None]:
        things = {f"setting {name}": value for name, value in self.settings.items()}
        things |= {self.model.__qualname__: self.model, "optimiser": self.config.optimiser}
        upper = self.config.upper
        things |= {f"upper {place}": one for place, one in enumerate(() if upper is None else upper.objects)}
        return identity.code_of(things, lambda: self.make(4, 2)), identity.own_code(self.model)

    def to_plain(self) -> dict[str, Any]:
        """Everything in plain values, for files, settings that were not said included; an object that cannot be stored is named.

        Example:
            >>> import unspool as us
            >>> Trial(us.models.GCN, seed=3).to_plain()["model"]
            'GCN'
        """
        return {
            "model": registry.name_of(self.model),
            "settings": self._stored_settings(),
            "config": self.config.to_plain(),
            "seed": int(self.seed),
            "normalise_rows": bool(self.normalise_rows),
            "preset": self.preset,
            "code": self.code,
        }

    def _stored_settings(self) -> dict[str, Any]:
        """All settings; a default that cannot be stored is left out, as the class has it."""
        every = {name: stored(self.schema, name, value) for name, value in self.schema.complete(self.settings).items()}
        return {name: value for name, value in every.items() if name in self.settings or not _is_named(value)}

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any], model: type[nn.Module] | None = None) -> Trial:
        """Back from plain values; a class that is not of this package is imported only if it is named or registered.

        Args:
            plain: what :meth:`to_plain` gave.
            model: the class, where it is not of this package.

        Example:
            >>> import unspool as us
            >>> trial = Trial(us.models.GCN, {"hidden": 8}, seed=3)
            >>> Trial.from_plain(trial.to_plain()).key("cora") == trial.key("cora")
            True
        """
        kind = registry.find_stored(plain["model"], model)
        unknown = [name for name, value in plain["settings"].items() if _is_named(value)]
        if unknown:
            raise IncompatibleError(
                f"the setting {unknown[0]} of this trial is an object that files know by name only "
                f"({plain['settings'][unknown[0]]['object']}); train it from the program that made it"
            )
        settings = schema_of(kind).from_plain(plain["settings"])
        try:
            config = TrainConfig.from_plain(plain["config"])
        except InputError as problem:
            raise IncompatibleError(
                f"this trial cannot be built again from a file ({problem}); train it from the program that made it"
            ) from None
        made = cls(kind, settings, config, plain["seed"], plain["normalise_rows"], plain["preset"])
        made.check_code(plain["code"])
        return made

    def check_code(self, known: str) -> None:
        """Refuse where the code, as it is now, is not that of a stored trial.

        Args:
            known: the mark of the stored one.

        Example:
            >>> import unspool as us
            >>> Trial(us.models.GCN).check_code("0.5e1f")
            Traceback (most recent call last):
                ...
            unspool.errors.IncompatibleError: the code of GCN has changed since this trial was trained (or a value that it reads), ...
        """
        if replace(self).code != known:
            raise IncompatibleError(
                f"the code of {self.name} has changed since this trial was trained (or a value that it reads), so it would be another "
                "one; restore the code, or train it again"
            )

    def key(self, data: str) -> str:
        """The name of this trial on data with this fingerprint: the same trial has the same key in any process.

        Example:
            >>> import unspool as us
            >>> one, other = Trial(us.models.GCN, seed=0), Trial(us.models.GCN, seed=1)
            >>> one.key("cora") == one.key("cora"), one.key("cora") == other.key("cora")
            (True, False)
        """
        # How one came by the settings (the preset) changes nothing, and nothing that is written for people is hashed.
        held = {
            "model": self.model.__qualname__,
            "settings": _marked(self.schema, self.schema.complete(self.settings)),
            "config": _marked(self.config.schema, self.config.settings),
            "seed": int(self.seed),
            "normalise_rows": bool(self.normalise_rows),
            "code": self.code,
        }
        text = json.dumps([FORMAT, data, held], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:24]

    def __str__(self) -> str:
        settings = ", ".join(f"{name}={self.shown(name)}" for name in self.settings)
        decay = self.config.schema["weight_decay"].shown(self.config.weight_decay)
        return f"{self.name}({settings}), lr {self.config.lr:g}, weight decay {decay}, seed {self.seed}"

    def shown(self, name: str) -> str:
        """A setting of the model for people.

        Example:
            >>> import unspool as us
            >>> Trial(us.models.APPNP, {"masks": us.models.Masks.EACH_HOP}).shown("masks")
            'each_hop'
        """
        held = stored(self.schema, name, self.settings[name])
        if _is_named(held):
            return str(held["object"])
        one = self.schema.of(name)
        return one.shown(one.accept(self.settings[name]))


def stored(schema: Schema, name: str, value: Any) -> Any:
    """A setting as JSON can hold it; of an object that it cannot hold, how it looks.

    Example:
        >>> import unspool as us
        >>> stored(us.models.GCN.schema, "depth", np.int64(3)), stored(us.models.GCN.schema, "depth", len)
        (3, {'object': 'len'})
    """
    one = schema.of(name)
    try:
        return one.to_plain(one.accept(value))  # Trap: np.int64(3) fits, and JSON does not know it
    except InputError:
        return {"object": looks(value)}


def _is_named(value: Any) -> bool:
    """Whether a stored value is an object that files know by its looks only."""
    return isinstance(value, dict) and "object" in value


def _marked(schema: Schema, values: Mapping[str, Any]) -> dict[str, Any]:
    """Settings as something that is the same in every process: what is declared by its plain value, other objects by their digest.

    Those at their defaults are left out, so that a key outlives settings that a model gains later. The defaults of user's classes are
    in the mark of their code; whoever changes one of ours raises ``NUMERICS``.
    """
    found: dict[str, Any] = {}
    for name, value in values.items():
        one = schema.of(name)
        if one.default is not REQUIRED and _is_same(name, value, one.default):
            continue
        by_content = isinstance(one.kind, Anything) or (callable(value) and not isinstance(value, Enum))
        found[name] = _digested(name, value) if by_content else one.to_plain(value)
        objects: Any = getattr(value, "objects", ())  # of an upper level, what its text does not say
        if objects:
            found[name] = [found[name], *(_digested(name, held) for held in objects)]
    return found


def _is_same(name: str, value: Any, default: Any) -> bool:
    if value is default:
        return True
    try:
        equal = value == default
    except Exception:  # shapes that do not fit, lists of arrays
        equal = None
    # Arrays answer with arrays.
    return bool(equal) if isinstance(equal, bool | np.bool_) else _digested(name, value) == _digested(name, default)


def _digested(name: str, value: Any) -> Any:
    if value is None or type(value) in (bool, int, float, str):
        return value
    if isinstance(value, list | tuple):
        return [_digested(name, one) for one in value]
    package = identity.foreign((value if isinstance(value, type) else type(value)).__module__)
    if isinstance(value, type) and package is not None:
        return {"class": f"{package} {value.__module__}.{value.__qualname__}"}
    if isinstance(value, np.generic | bool | int | float | str) and not isinstance(value, Enum):
        return value.item() if isinstance(value, np.generic) else value
    if isinstance(value, Enum) and package is not None:
        return value.name.lower()
    return {"object": identity.digest(value, name)}


def looks(value: Any) -> str:
    """An object for people, the same in every process.

    Example:
        >>> looks(torch.ones(2)), looks(len)
        ('[1.0, 1.0]', 'len')
    """
    if isinstance(value, torch.Tensor | np.ndarray):
        dense = value.detach().to_dense() if isinstance(value, torch.Tensor) else value
        return str(dense.tolist())
    if isinstance(value, Enum):
        return value.name.lower()
    told = repr(value)
    if " at 0x" not in told and not told.startswith("<"):
        return told
    # An address says nothing to other processes.
    name = getattr(value, "__qualname__", type(value).__qualname__)
    return str(name) if callable(value) else f"{name} {identity.digest(value, 'it')[:8]}"
