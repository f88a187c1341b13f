"""One trial: a model with its settings, a plan and a seed; and what came of it."""

from __future__ import annotations

import functools
import hashlib
import inspect
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from enum import Enum
from typing import Any

import numpy as np
import torch
from torch import nn

from unspool.study import identity
from unspool.train.plan import Plan
from unspool.train.seeded import seeded

#: Raised when the meaning of a stored trial changes.
FORMAT = 2
_PLAIN = (type(None), bool, int, float, str)


@dataclass(frozen=True, eq=False)
class Trial:
    """A model class with settings, a plan and a seed: everything that decides a result but the data.

    The seed decides the starting weights, the dropout and, where splits are drawn, the split.

    Args:
        model: built as ``model(in_features, out_features, **settings)``.
        settings: keyword arguments of the model.
        plan: rates, epochs, selection, stopping.
        seed: of the weights and masks.
        normalise_rows: whether rows of the features are scaled to sum 1.
        preset: which preset it came from.

    Example:
        >>> import unspool as us
        >>> trial = Trial(us.models.GCN, {"hidden": 8}, us.train.Plan(rate=0.01), seed=3)
        >>> print(trial)
        GCN(hidden=8), rate 0.01, decay 0.0005, seed 3
        >>> type(trial.build(5, 2)).__name__
        'GCN'
    """

    model: type[nn.Module]
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])
    plan: Plan = field(default_factory=Plan)
    seed: int = 0
    normalise_rows: bool = False
    preset: str = "default"

    @property
    def name(self) -> str:
        """The name of the model."""
        return self.model.__name__

    def build(self, in_features: int, out_features: int) -> nn.Module:
        """A fresh model, with the weights that this seed gives it anywhere; torch's own generator is left as it was."""
        with seeded(self.seed):
            return self.model(in_features, out_features, **self.settings)

    def with_seed(self, seed: int) -> Trial:
        """The same with another seed; what is known of its code is not looked up again."""
        other = replace(self, seed=seed)
        other.__dict__["code"] = self.code
        return other

    @functools.cached_property
    def code(self) -> str:
        """The mark of all code that decides the result (:func:`~unspool.study.identity.code_of`), as it was when first asked for.

        Example:
            >>> import unspool as us
            >>> Trial(us.models.GCN).code == str(identity.NUMERICS)
            True
        """
        things = {f"setting {name}": value for name, value in self.settings.items()}
        things |= {self.model.__qualname__: self.model, "optimiser": self.plan.optimiser}
        return identity.code_of(things, lambda: self.model(4, 2, **self.settings))

    def describe(self) -> dict[str, Any]:
        """Everything in plain values, for files.

        Example:
            >>> import unspool as us
            >>> Trial(us.models.GCN, seed=3).describe()["seed"]
            3
        """
        module = self.model.__module__
        ours = identity.foreign(module) == "unspool"
        return {
            "model": self.name if ours else f"{identity.named(module)}.{self.model.__qualname__}",
            "settings": {k: plain(v) for k, v in sorted(self.settings.items())},
            "plan": {**self.plan.describe(), "epochs": self.plan.epochs},
            "seed": int(self.seed), "normalise_rows": self.normalise_rows, "preset": self.preset, "code": self.code,
        }  # fmt: skip

    def key(self, data: str) -> str:
        """The name of this trial on data with this mark: the same trial has the same key in any process.

        Example:
            >>> import unspool as us
            >>> one, other = Trial(us.models.GCN, seed=0), Trial(us.models.GCN, seed=1)
            >>> one.key("cora") == one.key("cora"), one.key("cora") == other.key("cora")
            (True, False)
        """
        # How one came by the settings (the preset) changes nothing, and nothing that is written for people is hashed.
        told = {
            "model": self.model.__qualname__, "settings": spelt_out(self.model, self.settings), "plan": _marked_plan(self.plan),
            "seed": int(self.seed), "normalise_rows": bool(self.normalise_rows), "code": self.code,
        }  # fmt: skip
        text = json.dumps([FORMAT, data, told], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:24]

    def __str__(self) -> str:
        settings = ", ".join(f"{k}={plain(v)}" for k, v in self.settings.items())
        decay = self.plan.decay
        held = sorted({v for v in decay.values() if v}) if isinstance(decay, Mapping) else [decay]
        shown = "/".join(f"{v:g}" for v in held) if held else "0"
        return f"{self.name}({settings}), rate {self.plan.rate:g}, decay {shown}, seed {self.seed}"


@dataclass(frozen=True)
class Result:
    """What came of a trial: the numbers of the epoch that validation chose.

    Attributes:
        epoch: the selected epoch; ``epochs``: how many were run.
        train_loss, valid_loss, valid_score, test_score: at the selected epoch.
        reason: why it ended: ``all epochs``, the stopping rule, or ``diverged``.
        seconds: its share of the time of its pack.

    Example:
        >>> Result(12, 50, 0.1, 0.9, 0.7, 0.71, "all epochs", 0.4).test_score
        0.71
    """

    epoch: int
    epochs: int
    train_loss: float
    valid_loss: float
    valid_score: float
    test_score: float
    reason: str
    seconds: float


def spelt_out(model: type[nn.Module], settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings with what a model takes for those that are not said, and whole numbers as fractions where it takes fractions.

    Example:
        >>> import unspool as us
        >>> spelt_out(us.models.MLP, {"dropout": 0})
        {'dropout': 0.0, 'hidden': 64, 'bias': True}
    """
    found = {name: _marked(name, value) for name, value in settings.items()}
    for name, default in _defaults(model).items():
        usual = _marked(name, default)
        found.setdefault(name, usual)
        if isinstance(default, float) and isinstance(found[name], int):
            found[name] = float(found[name])
        if name in _gained(model) and found[name] == usual:
            del found[name]
    return found


def _marked_plan(plan: Plan) -> dict[str, Any]:
    held = {part.name: getattr(plan, part.name) for part in fields(plan)}
    decay = held.pop("decay")
    told = {name: _marked(name, value) for name, value in held.items()}
    return {**told, "decay": dict(decay) if isinstance(decay, Mapping) else decay}


def _marked(name: str, value: Any) -> Any:
    """A value as something that JSON can hold and that is the same in every process: objects by their digest."""
    if type(value) in _PLAIN:
        return value
    if isinstance(value, list | tuple):
        return [_marked(name, v) for v in value]
    package = identity.foreign((value if isinstance(value, type) else type(value)).__module__)
    if isinstance(value, type) and package is not None:
        return {"class": f"{package} {value.__module__}.{value.__qualname__}"}
    simple = isinstance(value, bool | int | float | str | np.generic) or (
        isinstance(value, Enum) and package is not None
    )
    return plain(value) if simple else {"object": identity.digest(value, name)}


@functools.cache
def _gained(model: type[nn.Module]) -> tuple[str, ...]:
    """Settings that were added after results were stored: at their defaults they are left out of keys, so that results stay found.

    They are those of the class whose constructor is called: a subclass with one of its own may mean other defaults.
    """
    maker = next(part for part in model.__mro__ if "__init__" in vars(part))
    return vars(maker).get("gained", ())


@functools.cache
def _defaults(model: type[nn.Module]) -> dict[str, Any]:
    parameters = inspect.signature(model.__init__).parameters.values()
    return {p.name: p.default for p in parameters if p.default is not inspect.Parameter.empty}


def plain(value: Any) -> Any:
    """A setting as something that JSON can hold."""
    if type(value) in _PLAIN:
        return value
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    if isinstance(value, torch.Tensor | np.ndarray | np.generic):
        held = value.detach().to_dense() if isinstance(value, torch.Tensor) else value
        return held.tolist()  # written out: a long one is cut where it is printed
    if isinstance(value, Enum | bool | int | float | str):
        return value.name.lower() if isinstance(value, Enum) else value
    told = repr(value)
    if " at 0x" not in told:
        return told
    # An address says nothing to other processes.
    return f"{getattr(value, '__qualname__', type(value).__qualname__)} {identity.digest(value, 'it')[:8]}"
