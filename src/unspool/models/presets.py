"""How each model is run: the paper's own last table, and the settings of each model's authors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from unspool.errors import IncompatibleError
from unspool.models import preset_tables as tables
from unspool.models.model import Model
from unspool.train.plan import Plan, Select, Stop


@dataclass(frozen=True)
class Preset:
    """Everything that decides a training run but the data and the seed.

    Attributes:
        model: the class.
        name: ``paper``, ``official`` or ``default``.
        dataset: which column it was read from.
        settings: keyword arguments of the model.
        rate: learning rate of Adam.
        decay: weight decay as in :class:`~unspool.train.Plan`: by parameter group (:meth:`~unspool.models.Model.parameter_groups`),
            or one number for weight matrices and biases.
        epochs: the most there are.
        select, stop, patience, earliest: which epoch counts and when to end.
        normalise_features: whether rows of X are scaled to sum 1.
        search: values still to be chosen on validation data, where the source gives only a grid.
        unstated: choices that the source leaves open and we made.
    """

    model: type[Model]
    name: str
    dataset: str
    settings: Mapping[str, Any]
    rate: float
    decay: Mapping[str, float] | float
    epochs: int
    select: Select = Select.VALIDATION_LOSS
    stop: Stop = Stop.NEVER
    patience: int = 100
    earliest: int = 0
    normalise_features: bool = True
    search: Mapping[str, tuple[float, ...]] = field(default_factory=dict[str, tuple[float, ...]])
    unstated: tuple[str, ...] = ()

    def __str__(self) -> str:
        settings = ", ".join(f"{k}={v}" for k, v in self.settings.items())
        lines = [f"{self.model.__name__}({settings}) on {self.dataset}, preset {self.name}"]
        lines.append(
            f"rate {self.rate:g}; decay: {self.decay_words}; {self.epochs} epochs; keeps {self.select.value}; stops {self.stop.value}"
        )
        lines += [
            f"still to be chosen: {k} from {', '.join(f'{v:g}' for v in values)}" for k, values in self.search.items()
        ]
        return "\n".join([*lines, *(f"not stated by the source: {choice}" for choice in self.unstated)])

    @property
    def decay_words(self) -> str:
        """What is decayed: a number where it is all weight matrices and biases, else group by group.

        Example:
            >>> import unspool as us
            >>> [us.models.preset(us.models.GCN, "cora", name).decay_words for name in ("paper", "official")]
            ['0.0005', 'first 0.0005']
        """
        return decay_words(self.plan().decay)

    def build(self, in_features: int, out_features: int, **changes: Any) -> Model:
        """The model with these settings."""
        return self.model(in_features, out_features, **{**self.settings, **changes})

    def plan(self, **changes: Any) -> Plan:
        """The training plan: rate, decay by group, epochs, selection and stopping.

        Example:
            >>> import unspool as us
            >>> us.models.preset(us.models.GCN, "cora", "official").plan(epochs=5).epochs
            5
        """
        how: dict[str, Any] = {
            "rate": self.rate, "decay": self.decay, "epochs": self.epochs, "select": self.select, "stop": self.stop,
            "patience": self.patience, "earliest": self.earliest,
        }  # fmt: skip
        return Plan(**{**how, **changes})

    def groups(self, model: Model) -> list[dict[str, Any]]:
        """Parameter groups for ``torch.optim.Adam``, each with its own weight decay.

        Example:
            >>> import torch, unspool as us
            >>> how = us.models.preset(us.models.GPRGNN, "cora", "official")
            >>> model = how.build(1433, 7)
            >>> [(g["name"], g["weight_decay"]) for g in how.groups(model)]
            [('first', 0.0005), ('linear', 0.0005), ('hops', 0.0)]
            >>> optimiser = torch.optim.Adam(how.groups(model), lr=how.rate)
        """
        plan = self.plan()
        return [
            {"name": role, "params": parameters, "weight_decay": plan.decay_of(role)}
            for role, parameters in model.parameter_groups().items()
        ]


def preset(model: Any, dataset: str, name: str = "paper") -> Preset:
    """The preset of a model on a dataset.

    Args:
        model: the class, such as ``us.models.GPRGNN``; one of your own gets what the model gets that it inherits from.
        dataset: ``cora``, ``citeseer``, ``pubmed``, ``cs``, ``physics``, ``photo`` or ``arxiv``.
        name: ``paper`` (Table 4; models without a column get the paper's grid in ``search``), ``official``, or ``default``
            for any data: the model's own defaults, rate 0.01, decay 5e-4 on weight matrices, and patience.

    Example:
        >>> import unspool as us
        >>> how = us.models.preset(us.models.UGDGNN, "Cora")
        >>> how.rate, how.settings["depth"], how.settings["dropout"]
        (0.005, 5, 0.8)
    """
    if not (isinstance(model, type) and issubclass(model, Model)):
        raise TypeError(f"{model!r} is no model class; give one such as models.GPRGNN")
    if name.lower() == "default":
        return _default(model, dataset)
    data = _column(dataset)
    if data not in tables.DATASETS:
        raise ValueError(
            f"no preset {name!r} for the dataset {dataset!r}; there are presets for {', '.join(tables.DATASETS)}; 'default' fits any"
        )
    if name.lower() == "paper":
        return _paper(model, data)
    if name.lower() == "official":
        return _official(model, data)
    raise ValueError(f"no preset called {name!r}: there are 'paper', 'official' and 'default'")


def decay_words(decay: Mapping[str, float] | float) -> str:
    """A plan's decay: a number where it is for all weight matrices and biases, else group by group.

    Example:
        >>> decay_words(5e-4), decay_words({"first": 5e-4, "hops": 0.0}), decay_words({"hops": 0.0})
        ('0.0005', 'first 0.0005', '0')
    """
    if not isinstance(decay, Mapping):
        return f"{decay:g}"
    return ", ".join(f"{name} {value:g}" for name, value in decay.items() if value) or "0"


def has_preset(dataset: str) -> bool:
    """Whether ``paper`` and ``official`` know a dataset.

    Example:
        >>> has_preset("Cora"), has_preset("texas")
        (True, False)
    """
    return _column(dataset) in tables.DATASETS


def _column(dataset: str) -> str:
    return dataset.lower().removeprefix("ogbn-").replace("coauthor-", "").replace("amazon-", "")


def _paper(model: type[Model], data: str) -> Preset:
    """Table 4. Decay on weight matrices, none on hop coefficients; 1000 epochs."""
    kin = _kin(model)
    row = tables.PAPER.get(kin, {}).get(data)
    search: dict[str, tuple[float, ...]] = {}
    if row is None:
        search = dict(tables.PAPER_GRID)
        if "depth" not in _arguments(model):
            del search["depth"]
        rate, decay, drop, depth, teleport = 0.01, 5e-4, 0.5, 10, None
        if kin == "PPNP":
            search["teleport"], teleport = tables.PAPER_TELEPORT, 0.1
    else:
        rate, decay, drop, depth, teleport = row
    wanted: dict[str, Any] = {"hidden": 64, "dropout": drop, "depth": depth, "teleport": teleport}
    settings: dict[str, Any] = {k: v for k, v in wanted.items() if v is not None and k in _arguments(model)}
    if kin == "GPRGNN":
        settings["propagation_dropout"] = drop
    if kin == "AirGNN":
        settings["residual"] = 0.5
    return Preset(
        model, "paper", data, settings, rate, decay, epochs=1000, normalise_features=data != "arxiv", search=search, unstated=tables.unstated(kin),
    )  # fmt: skip


def _default(model: type[Model], data: str) -> Preset:
    """For data that no one has tuned on: defaults of the model, a usual rate, and patience instead of a number of epochs."""
    plan = Plan()
    return Preset(
        model, "default", data, {}, plan.rate, plan.decay, plan.epochs, plan.select, plan.stop, plan.patience, plan.earliest,
        normalise_features=False,
    )  # fmt: skip


def _official(model: type[Model], data: str) -> Preset:
    entry = tables.official(_kin(model), data)
    if entry is None:
        raise IncompatibleError(
            f"{model.__name__} has no official setting on {data}: its authors publish none for this model that we know (for "
            "ogbn-arxiv some run a different network); use the preset 'paper'"
        )
    plan: dict[str, Any] = dict(entry)
    settings, rate, decay = plan.pop("settings"), plan.pop("rate"), plan.pop("decay")
    select, stop = Select[plan.pop("select", "VALIDATION_LOSS")], Stop[plan.pop("stop", "NEVER")]
    return Preset(
        model, "official", data, settings, rate, decay, plan.pop("epochs"), select, stop,
        normalise_features=data != "arxiv", **plan,
    )  # fmt: skip


def _kin(model: type[Model]) -> str:
    """The model of this package that a class is or inherits from; the name of a class of the user's says nothing."""
    ours = (kind for kind in model.__mro__ if kind.__module__.startswith("unspool.models."))
    return next(kind.__name__ for kind in ours)


def _arguments(model: type[Model]) -> set[str]:
    import inspect

    return set(inspect.signature(model.__init__).parameters)
