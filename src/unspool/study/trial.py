"""One trial: a model with its settings, a plan and a seed; and what came of it."""

from __future__ import annotations

import functools
import hashlib
import inspect
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import numpy as np
import torch
from torch import nn

from unspool.train.plan import Plan

#: Raised when the meaning of a stored trial changes.
FORMAT = 1


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
        GCN(hidden=8), rate 0.01, decay 0, seed 3
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
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.seed)
            return self.model(in_features, out_features, **self.settings)

    def describe(self) -> dict[str, Any]:
        """Everything in plain values, for files.

        Example:
            >>> import unspool as us
            >>> Trial(us.models.GCN, seed=3).describe()["seed"]
            3
        """
        module = self.model.__module__
        return {
            "model": self.name if module.startswith("unspool.") else f"{module}.{self.model.__qualname__}",
            "settings": {k: plain(v) for k, v in sorted(self.settings.items())},
            "plan": {**self.plan.describe(), "epochs": self.plan.epochs},
            "seed": int(self.seed), "normalise_rows": self.normalise_rows, "preset": self.preset,
        }  # fmt: skip

    def key(self, data: str) -> str:
        """The name of this trial on data with this mark: the same trial has the same key in any process.

        Example:
            >>> import unspool as us
            >>> one, other = Trial(us.models.GCN, seed=0), Trial(us.models.GCN, seed=1)
            >>> one.key("cora") == one.key("cora"), one.key("cora") == other.key("cora")
            (True, False)
        """
        told = self.describe()
        del told["preset"]  # how one came by the settings changes nothing
        told["settings"], told["code"] = _spelt_out(self.model, told["settings"]), _code(self.model)
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


def _spelt_out(model: type[nn.Module], settings: dict[str, Any]) -> dict[str, Any]:
    """Settings with what a model takes for those that are not said, and whole numbers as fractions where it takes fractions."""
    found = dict(settings)
    for name, default in _defaults(model).items():
        found.setdefault(name, plain(default))
        if isinstance(default, float) and isinstance(found[name], int):
            found[name] = float(found[name])
        if name in _gained(model) and found[name] == plain(default):
            del found[name]
    return found


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


@functools.cache
def _code(model: type[nn.Module]) -> str:
    """A mark of the code of a class that is not ours: who changes a model of their own has another model."""
    held = hashlib.sha256()
    for part in model.__mro__:
        if part.__module__.partition(".")[0] in ("unspool", "torch", "builtins"):
            continue
        try:
            held.update(inspect.getsource(part).encode())
        except (OSError, TypeError):  # typed into a prompt
            for name, value in sorted(vars(part).items()):
                code = getattr(value, "__code__", None)
                held.update(
                    repr((name, None if code is None else (code.co_code, code.co_names, str(code.co_consts)))).encode()
                )
    return held.hexdigest()[:12]


def plain(value: Any) -> Any:
    """A setting as something that JSON can hold."""
    if isinstance(value, Enum):
        return value.name.lower()
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    if isinstance(value, torch.Tensor | np.ndarray | np.generic):
        return value.tolist()  # written out: a long one is cut where it is printed
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return repr(value)
