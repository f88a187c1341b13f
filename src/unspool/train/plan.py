"""How a training run goes: rates, decay, epochs, which epoch counts, when to stop."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import torch

from unspool.train.record import Epoch

#: Groups of parameters (``model.parameter_groups()``) that one number for the decay leaves alone: hop coefficients and step sizes.
UNDECAYED = ("hops",)


class Select(Enum):
    """Which epoch's weights are kept."""

    VALIDATION_LOSS = "lowest validation loss"
    VALIDATION_ACCURACY = "highest validation score, then lowest loss"
    LAST = "the last epoch"


class Stop(Enum):
    """When training ends before its last epoch."""

    NEVER = "never"
    PATIENCE = "no improvement for `patience` epochs"
    ABOVE_MEAN = "validation loss above the mean of the last `patience` epochs, not before epoch `earliest`"


class Precision(Enum):
    """``FULL``: the type of the parameters. ``BFLOAT16``: activations in half the bytes, parameters and Adam in full.

    Half the bytes pay where signals are wide and graphs large, on a GPU; benchmark sets of a few thousand nodes gain nothing.
    """

    FULL = "as the parameters"
    BFLOAT16 = "bfloat16 activations"


@dataclass(frozen=True)
class Plan:
    """Everything that decides a run but the model, the data and the seed.

    What is not said is what every door takes when nothing is said: the preset ``default``, studies of any module, estimators.

    Args:
        rate: learning rate.
        decay: weight decay. One number decays weight matrices and biases and leaves hop coefficients alone (``parameter_groups()`` of
            the model tells them apart; a module without it has all its parameters decayed); a dictionary decays the groups it
            names. The same rule holds wherever a decay is given: ``--decay``, studies, estimators, presets.
        epochs: the most there are.
        select: which epoch's weights are kept.
        stop: when to end early.
        patience, earliest: of the stopping rule.
        optimiser: makes the optimiser from parameter groups and a rate (``lr=``): Adam when omitted, any class of
            ``torch.optim``, or a function.
        precision: of the activations.

    Example:
        >>> Plan(rate=0.01, epochs=200, stop=Stop.PATIENCE, patience=50).patience
        50
    """

    rate: float = 0.01
    decay: Mapping[str, float] | float = 5e-4
    epochs: int = 1000
    select: Select = Select.VALIDATION_LOSS
    stop: Stop = Stop.PATIENCE
    patience: int = 100
    earliest: int = 0
    optimiser: Callable[..., torch.optim.Optimizer] = field(default=torch.optim.Adam)
    precision: Precision = Precision.FULL

    def __post_init__(self) -> None:
        if not (math.isfinite(self.rate) and self.rate > 0):
            raise ValueError(f"rate={self.rate}: a learning rate is a positive number")
        for name, kind in (("select", Select), ("stop", Stop), ("precision", Precision)):
            if not isinstance(getattr(self, name), kind):
                choices = ", ".join(f"{kind.__name__}.{choice.name}" for choice in kind)
                raise TypeError(f"{name}={getattr(self, name)!r}: expected one of {choices}")
        if self.epochs < 1:
            raise ValueError(f"epochs={self.epochs}: training needs at least one")
        decays = list(self.decay.values()) if isinstance(self.decay, Mapping) else [self.decay]
        if any(not (math.isfinite(d) and d >= 0) for d in decays):
            raise ValueError(f"decay={self.decay}: weight decay is a number of at least 0")
        if self.patience < 1:
            raise ValueError(f"patience={self.patience}: expected at least one epoch")

    def decay_of(self, group: str) -> float:
        """The weight decay of a group of parameters.

        Example:
            >>> Plan(decay=0.1).decay_of("linear"), Plan(decay=0.1).decay_of("hops"), Plan(decay={"hops": 0.1}).decay_of("hops")
            (0.1, 0.0, 0.1)
        """
        if isinstance(self.decay, Mapping):
            return float(self.decay.get(group, 0.0))
        return 0.0 if group in UNDECAYED else float(self.decay)

    def groups(self, model: torch.nn.Module) -> list[dict[str, Any]]:
        """The trainable parameters with their decay, those of the same decay together."""
        roles: Callable[[], Mapping[str, Any]] | None = getattr(model, "parameter_groups", None)
        if roles is None:
            if isinstance(self.decay, Mapping):
                raise TypeError(
                    f"decay is given by group, but {type(model).__name__} has no parameter_groups(); give one number"
                )
            everyone = [p for p in model.parameters() if p.requires_grad]
            return [{"params": everyone, "weight_decay": float(self.decay)}]
        held: dict[float, list[Any]] = {}
        for name, parameters in roles().items():
            held.setdefault(self.decay_of(name), []).extend(parameters)
        return [{"params": parameters, "weight_decay": decay} for decay, parameters in held.items()]

    def describe(self) -> dict[str, Any]:
        """What decides the course of a run, in plain values; the number of epochs may grow without changing it.

        Example:
            >>> Plan(rate=0.01).describe()["rate"]
            0.01
        """
        decay = dict(self.decay) if isinstance(self.decay, Mapping) else self.decay
        return {
            "rate": self.rate, "decay": decay, "select": self.select.value, "stop": self.stop.value, "patience": self.patience,
            "earliest": self.earliest, "optimiser": _named(self.optimiser), "precision": self.precision.value,
        }  # fmt: skip

    def better(self, new: Epoch, best: Epoch | None) -> bool:
        """Whether an epoch takes the place of the best so far."""
        if best is None or self.select is Select.LAST:
            return True
        if self.select is Select.VALIDATION_LOSS or math.isnan(
            new.valid_score
        ):  # R² of equal numbers: the loss decides
            return new.valid_loss < best.valid_loss
        return (new.valid_score, -new.valid_loss) > (best.valid_score, -best.valid_loss)

    def ended(self, history: list[Epoch], best: Epoch) -> bool:
        """Whether training stops after the last epoch of the history."""
        now = history[-1]
        if self.stop is Stop.PATIENCE:
            return now.epoch - best.epoch >= self.patience
        if self.stop is Stop.ABOVE_MEAN and now.epoch > max(self.earliest, self.patience):
            recent = [e.valid_loss for e in history[-(self.patience + 1) : -1]]
            return now.valid_loss > sum(recent) / len(recent)
        return False


def _named(maker: Any) -> str:
    """An optimiser in words: what ``functools.partial`` fixes belongs to it."""
    if isinstance(maker, functools.partial):
        fixed = [*(repr(v) for v in maker.args), *(f"{k}={v!r}" for k, v in sorted(maker.keywords.items()))]
        return f"{_named(maker.func)}({', '.join(fixed)})"
    return str(getattr(maker, "__name__", "own"))
