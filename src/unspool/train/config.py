"""How a training run goes: rates, decay, epochs, which epoch counts, when to stop."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

import torch

from unspool.settings import Declared, choice, log_uniform, setting
from unspool.settings.kinds import Kind, Mismatch, Real
from unspool.train.record import Epoch
from unspool.train.upper.language import UpperKind
from unspool.train.upper.sum import Upper

#: Groups of parameters (``model.parameter_groups()``) that one number for the decay leaves alone: hop coefficients and step sizes.
UNDECAYED = ("hops",)


class Monitor(Enum):
    """What decides which epoch's weights are kept: the lowest validation loss, the highest validation score (then the
    lowest loss), the lowest training loss, or nothing."""

    VALID_LOSS = "lowest validation loss"
    VALID_SCORE = "highest validation score"
    TRAIN_LOSS = "lowest training loss"
    LAST_EPOCH = "the last epoch"


class Stop(Enum):
    """When training ends before its last epoch.

    ``PATIENCE``: after ``patience`` epochs without a better one. ``ABOVE_MEAN``: when the validation loss lies above the mean of the
    last ``patience`` epochs, not before epoch ``min_epochs``.
    """

    NEVER = "never"
    PATIENCE = "patience"
    ABOVE_MEAN = "above mean"


class Rates(Enum):
    """How the learning rate goes on from ``lr``: the same in all epochs, down half a cosine to a hundredth over ``lr_epochs``, or to a
    tenth after every ``lr_epochs``.
    """

    CONSTANT = "constant"
    COSINE = "cosine"
    STEP = "step"


class Precision(Enum):
    """``FULL``: the type of the parameters. ``BFLOAT16``: activations in half the bytes, parameters and Adam in full.

    Half the bytes pay where signals are wide and graphs large, on a GPU; benchmark sets of a few thousand nodes gain nothing.
    """

    FULL = "full"
    BFLOAT16 = "bfloat16"


class LowerLevel(Enum):
    """What a network does to the lower level of the bilevel problem (3): K steps, or its exact minimiser.

    ``EXACT`` trains through the optimality condition (:meth:`unspool.models.Model.solve_exactly`).
    """

    UNROLLED = "unrolled"
    EXACT = "exact"


@dataclass(frozen=True)
class Decay(Kind):
    """Weight decay: one number, or one for each of some groups of parameters."""

    @property
    def expected(self) -> str:
        """What fits, in words."""
        return "a number of at least 0, or one for each group of parameters"

    def accept(self, value: Any) -> Any:
        """A float, or floats by group."""
        if isinstance(value, Mapping):
            return {str(name): Real(0).accept(one) for name, one in value.items()}
        return Real(0).accept(value)

    def parse(self, text: str) -> Any:
        """``5e-4``, or ``first=5e-4;convolution=0.01``."""
        if "=" not in text:
            return Real(0).parse(text)
        pairs = [part.partition("=") for part in text.split(";")]
        if not all(name.strip() for name, _, _ in pairs):
            raise Mismatch
        return {name.strip(): Real(0).parse(number.strip()) for name, _, number in pairs}

    def shown(self, value: Any) -> str:
        """A number where it is for all weight matrices and biases, else group by group.

        Example:
            >>> Decay().shown(5e-4), Decay().shown({"first": 5e-4, "hops": 0.0}), Decay().shown({"hops": 0.0})
            ('0.0005', 'first=0.0005', '0')
        """
        if not isinstance(value, Mapping):
            return Real().shown(value)
        return ";".join(f"{name}={Real().shown(one)}" for name, one in value.items() if one) or "0"


@dataclass(frozen=True)
class OptimiserKind(Kind):
    """What makes an optimiser: a class of ``torch.optim``, or a function of parameter groups and ``lr=``."""

    @property
    def expected(self) -> str:
        """What fits, in words."""
        return "a class of torch.optim, such as torch.optim.AdamW"

    @property
    def typed(self) -> str:
        """What fits on a command line, in words."""
        return "the name of a class of torch.optim, such as adamw, sgd, rmsprop or lbfgs"

    def accept(self, value: Any) -> Any:
        """Anything that can be called."""
        if isinstance(value, str) and value.lower() in _optimisers():
            raise Mismatch(f"write optimiser=torch.optim.{_optimisers()[value.lower()].__name__}")
        if not callable(value):
            raise Mismatch
        return value

    def parse(self, text: str) -> Any:
        """By its name in ``torch.optim``, in any case."""
        if text.lower() not in _optimisers():
            raise Mismatch
        return _optimisers()[text.lower()]

    def to_plain(self, value: Any) -> str:
        """Its name; what ``functools.partial`` fixes belongs to it."""
        if isinstance(value, functools.partial):
            fixed = [*(repr(v) for v in value.args), *(f"{k}={v!r}" for k, v in sorted(value.keywords.items()))]
            return f"{self.to_plain(value.func)}({', '.join(fixed)})"
        return str(getattr(value, "__name__", "own"))

    def from_plain(self, plain: Any) -> Any:
        """A class of ``torch.optim``; others are known to files by name only."""
        return self.parse(str(plain))


def _optimisers() -> dict[str, type[torch.optim.Optimizer]]:
    """The classes of ``torch.optim`` by their names in small letters."""
    # Muon takes matrices alone and SparseAdam sparse gradients: no model here has only those.
    without = ("optimizer", "muon", "sparseadam")
    return {
        name.lower(): one
        for name, one in vars(torch.optim).items()
        if isinstance(one, type) and issubclass(one, torch.optim.Optimizer) and name.lower() not in without
    }


class TrainConfig(Declared):
    """Everything that decides a training run but the model, the data and the seed; a value that never changes.

    Defaults are the same everywhere: in studies, estimators and on the command line.

    Example:
        >>> config = TrainConfig(lr=0.02, epochs=200, patience=50)
        >>> config.lr, config.stop
        (0.02, <Stop.PATIENCE: 'patience'>)
        >>> config.replace(lr=0.1)
        TrainConfig(lr=0.1, epochs=200, patience=50)
    """

    lr: float = setting(0.01, "learning rate", above=0, search=log_uniform(1e-3, 1e-1))
    weight_decay: Mapping[str, float] | float = setting(
        5e-4,
        "weight decay: one number for weight matrices and biases, which leaves hop coefficients alone, or one for each group of "
        "parameters (model.parameter_groups() tells them apart; a module without it has all its parameters decayed)",
        of=Decay(), search=choice([0.0, 5e-5, 5e-4, 5e-3]),
    )  # fmt: skip
    epochs: int = setting(1000, "the most there are", at_least=1)
    monitor: Monitor = setting(Monitor.VALID_LOSS, "what decides which epoch's weights are kept")
    stop: Stop = setting(Stop.PATIENCE, "when to end early")
    patience: int = setting(100, "epochs that the stopping rule looks back", at_least=1)
    min_epochs: int = setting(0, "epochs before which the rule above_mean does not stop", at_least=0)
    optimiser: Callable[..., torch.optim.Optimizer] = setting(
        torch.optim.Adam,
        "what makes the optimiser: a class of torch.optim, or a function of parameter groups and lr=",
        of=OptimiserKind(),
    )
    precision: Precision = setting(Precision.FULL, "of the activations")
    lower_level: LowerLevel = setting(
        LowerLevel.UNROLLED, "whether the network takes its K steps or solves its problem exactly"
    )

    lr_schedule: Rates = setting(Rates.CONSTANT, "how the learning rate changes from epoch to epoch")
    lr_epochs: int = setting(200, "epochs over which the schedules cosine and step go", at_least=1)
    clip: float | None = setting(
        None,
        "largest norm of the gradient of all parameters together; longer ones are shortened to it",
        above=0,
        of=float,
    )

    upper: Upper | None = setting(
        None,
        "what training makes small, as a sum of terms over views of perturbed data (unspool.train.upper); the loss of the task when omitted",
        of=UpperKind(),
    )
    batch_size: int | None = setting(
        None, "the most training nodes that a step sees; all of them when omitted", at_least=1, of=int
    )

    def __init__(self, **settings: Any) -> None:
        object.__setattr__(self, "settings", self.schema.complete(settings))

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"a TrainConfig never changes; make another with config.replace({name}=...)")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TrainConfig) and self.settings == other.settings

    def __hash__(self) -> int:
        # Trap: decays by group are equal in any order of the groups, and optimisers need have no hash.
        return hash((self.lr, self.epochs, self.monitor, self.stop, self.patience))

    def __repr__(self) -> str:
        said = ", ".join(
            f"{name}={value!r}" for name, value in self.settings.items() if value != self.schema[name].default
        )
        return f"{type(self).__name__}({said})"

    def replace(self, **changes: Any) -> TrainConfig:
        """The same with some settings changed."""
        return type(self)(**{**self.settings, **changes})

    def to_plain(self) -> dict[str, Any]:
        """All settings as JSON can hold them.

        Example:
            >>> TrainConfig(lr=0.02).to_plain()["monitor"]
            'valid_loss'
        """
        return self.schema.to_plain(self.settings)

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> TrainConfig:
        """Back from that; refused where a file knows an optimiser by name only."""
        return cls(**cls.schema.from_plain(plain))

    def rate(self, epoch: int) -> float:
        """The learning rate of an epoch, counted from 1.

        Example:
            >>> steps = TrainConfig(lr=1.0, lr_schedule=Rates.STEP, lr_epochs=10)
            >>> [steps.rate(1), steps.rate(10), steps.rate(11), round(steps.rate(21), 6)]
            [1.0, 1.0, 0.1, 0.01]
            >>> falling = TrainConfig(lr=1.0, lr_schedule=Rates.COSINE, lr_epochs=10)
            >>> [falling.rate(1), round(falling.rate(6), 6), round(falling.rate(99), 6)]
            [1.0, 0.505, 0.01]
        """
        done = epoch - 1
        if self.lr_schedule is Rates.STEP:
            return self.lr * 0.1 ** (done // self.lr_epochs)
        if self.lr_schedule is Rates.COSINE:
            share = min(done / self.lr_epochs, 1.0)
            return self.lr * (0.01 + 0.99 * (1 + math.cos(math.pi * share)) / 2)
        return self.lr

    @property
    def alone(self) -> str | None:
        """Why trials with it train one by one; None where they may share a stack: Adam at one rate, full precision, gradients as they are, no batches.

        Example:
            >>> TrainConfig().alone, TrainConfig(clip=1.0).alone
            (None, 'its gradients are clipped')
        """
        maker = getattr(self.optimiser, "__name__", type(self.optimiser).__name__)
        kinds = {
            f"its optimiser is {maker}, not Adam": self.optimiser is not torch.optim.Adam,
            f"its precision is {self.precision.value}": self.precision is not Precision.FULL,
            "its learning rate has a schedule": self.lr_schedule is not Rates.CONSTANT,
            "its gradients are clipped": self.clip is not None,
            "it trains in batches of nodes": self.batch_size is not None,
        }
        return next((reason for reason, holds in kinds.items() if holds), None)

    def decay_of(self, group: str) -> float:
        """The weight decay of a group of parameters.

        Example:
            >>> numbers = TrainConfig(weight_decay=0.1), TrainConfig(weight_decay={"hops": 0.1})
            >>> [config.decay_of("hops") for config in numbers], numbers[0].decay_of("linear")
            ([0.0, 0.1], 0.1)
        """
        if isinstance(self.weight_decay, Mapping):
            return float(self.weight_decay.get(group, 0.0))
        return 0.0 if group in UNDECAYED else float(self.weight_decay)

    def parameter_groups(self, model: torch.nn.Module) -> list[dict[str, Any]]:
        """The trainable parameters with their decay, those of the same decay together, for any optimiser of torch.

        Example:
            >>> import unspool as us
            >>> model = us.models.GPRGNN(5, 2)
            >>> [(len(g["params"]), g["weight_decay"]) for g in TrainConfig().parameter_groups(model)]
            [(4, 0.0005), (1, 0.0)]
        """
        roles: Callable[[], Mapping[str, Any]] | None = getattr(model, "parameter_groups", None)
        if roles is None:
            if isinstance(self.weight_decay, Mapping):
                raise TypeError(
                    f"weight_decay is given by group, but {type(model).__name__} has no parameter_groups(); give one number"
                )
            everyone = [p for p in model.parameters() if p.requires_grad]
            return [{"params": everyone, "weight_decay": float(self.weight_decay)}]
        held: dict[float, list[Any]] = {}
        for name, parameters in roles().items():
            held.setdefault(self.decay_of(name), []).extend(parameters)
        return [{"params": parameters, "weight_decay": decay} for decay, parameters in held.items()]

    def better(self, new: Epoch, best: Epoch | None) -> bool:
        """Whether an epoch takes the place of the best so far."""
        if best is None or self.monitor is Monitor.LAST_EPOCH:
            return True
        if self.monitor is Monitor.TRAIN_LOSS:
            return new.train_loss < best.train_loss
        # R² of equal numbers is NaN: the loss decides.
        if self.monitor is Monitor.VALID_LOSS or math.isnan(new.valid_score):
            return new.valid_loss < best.valid_loss
        return (new.valid_score, -new.valid_loss) > (best.valid_score, -best.valid_loss)

    def ended(self, history: list[Epoch], best: Epoch) -> bool:
        """Whether training stops after the last epoch of the history."""
        now = history[-1]
        if self.stop is Stop.PATIENCE:
            return now.epoch - best.epoch >= self.patience
        if self.stop is Stop.ABOVE_MEAN and now.epoch > max(self.min_epochs, self.patience):
            recent = [e.valid_loss for e in history[-(self.patience + 1) : -1]]
            return now.valid_loss > sum(recent) / len(recent)
        return False

    def stop_words(self) -> str:
        """When training ends, for people.

        Example:
            >>> TrainConfig().stop_words(), TrainConfig(stop=Stop.NEVER).stop_words()
            ('after 100 epochs without a better one', 'never')
        """
        if self.stop is Stop.NEVER:
            return "never"
        if self.stop is Stop.PATIENCE:
            return f"after {self.patience} epochs without a better one"
        from_epoch = f", not before epoch {self.min_epochs}" if self.min_epochs else ""
        return f"when the validation loss lies above the mean of the last {self.patience} epochs{from_epoch}"
