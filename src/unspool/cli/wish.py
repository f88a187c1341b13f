"""From what was typed to what is trained: model, settings, plan, loss, data."""

from __future__ import annotations

import difflib
import functools
import inspect
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

import torch

from unspool import datasets, models, train
from unspool.cli.finite import plain
from unspool.cli.source import Source, said_in_options
from unspool.models.presets import Preset, decay_words
from unspool.train.epochs import make_optimiser

#: The set that is trained on when none is named.
BUILT_IN = "citeseer"
#: Output channels where the loss compares pairs of nodes.
PAIR_CHANNELS = 64


class Kind(Enum):
    """What is predicted; the names are those of ``--loss``."""

    CLASSES = "classes"
    BINARY = "binary"
    NUMBERS = "numbers"
    RANKING = "ranking"
    LINKS = "links"


@dataclass(frozen=True)
class Wish:
    """What the user asked for, apart from data and places."""

    model: str
    preset: str | None = None
    loss: str | None = None
    epochs: int | None = None
    rate: float | None = None
    decay: float | None = None
    patience: int | None = None
    select: str | None = None
    optimiser: str | None = None
    precision: str = "full"
    adjoint: str = "unrolled"
    normalise_rows: bool | None = None
    settings: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Job:
    """Everything that is decided before the first seed."""

    how: Preset
    plan: train.Plan
    data: Any
    kind: Kind
    source: dict[str, Any]
    transforms: tuple[str, ...]
    exact: bool
    outputs: int

    @property
    def as_printed(self) -> bool:
        """Whether settings and plan are those of the paper's table."""
        if self.dataset is None or not models.has_preset(self.dataset):
            return False
        paper = models.preset(self.how.model, self.dataset, "paper")
        return self.how.settings == paper.settings and self.plan == paper.plan() and not self.exact

    @property
    def dataset(self) -> str | None:
        """The name of the set, where it has one."""
        return self.source.get("dataset", None)

    @functools.cached_property
    def task(self) -> train.Task:
        """The task of the first repetition."""
        return self.repetition(0)[1]

    @property
    def objective(self) -> str:
        """The denoising problem, as maths."""
        return str(self.build().objective)

    def build(self) -> models.Model:
        """A fresh model."""
        made = self.how.build(self.data.features.shape[1], self.outputs)
        return made.solve_exactly() if self.exact else made

    def repetition(self, seed: int) -> tuple[Any, train.Task]:
        """Data and task of one seed: random splits are drawn anew."""
        if self.kind is Kind.LINKS:
            with said_in_options():
                return self.data, train.link_task(self.data, seed=seed)
        data = self.data.with_split(datasets.splits.repetition(self.data, seed))
        return data, _task(data, self.kind)

    def lines(self) -> list[str]:
        """What a person reads before the training begins."""
        model = self.how.model.__name__
        settings = ", ".join(f"{k} {v}" for k, v in self.how.settings.items())
        exact = ", solved exactly" if self.exact else ""
        told, usual = self.plan.describe(), train.Plan().describe()
        exact += "".join(f", {name} {told[name]}" for name in ("optimiser", "precision") if told[name] != usual[name])
        return [
            f"{self.data}",
            *columns_of(self.data),
            f"{model}, preset {self.how.name}: {settings if settings else 'its defaults'}, rate {self.plan.rate:g}, decay {decay_words(self.plan.decay)}{exact}",
            f"keeps {self.plan.select.value}; stops {_numbered(self.plan)}; up to {self.plan.epochs} epochs",
        ]

    def facts(self, data: Any) -> dict[str, Any]:
        """What the folder of a trained model says beside its weights."""
        split = data.split
        task: dict[str, Any] = {"kind": self.kind.value, "score": self.task.loss.score_name}
        if self.kind is Kind.NUMBERS:
            scaling = train.Task.of(data, train.Regression()).scaling
            assert scaling is not None
            task.update(centre=scaling.centre.tolist(), scale=scaling.scale.tolist())
        return {
            "preset": {"name": self.how.name, "epochs": self.plan.epochs, **self.plan.describe()},
            "data": {
                "name": data.name, "hash": data.hash, "split": None if split is None else split.hash,
                "split_name": None if split is None else split.name, "classes": list(data.classes),
                "features": None if data.feature_names is None else list(data.feature_names),
                "targets": list(self.source.get("target_columns", [])), "transforms": list(self.transforms),
                "notes": list(data.notes), "source": self.source,
            },
            "task": task,
        }  # fmt: skip


def columns_of(data: Any) -> list[str]:
    """Which columns are features, and a remark where their sizes are far apart."""
    names, x = data.feature_names, data.features
    if names is None:
        return []
    shown = ", ".join(names[:12]) + (f", ... ({len(names)})" if len(names) > 12 else "")
    lines = [f"features: {shown}"]
    if not isinstance(x, torch.Tensor):
        return lines
    spread = x.double().std(0)
    moving = spread[spread > 0]
    if moving.numel() > 1 and float(moving.max() / moving.min()) > 100:
        wide, thin = int(spread.argmax()), int(torch.where(spread > 0, spread, torch.inf).argmin())
        lines.append(
            f"note: features differ in size ({names[wide]} varies by {float(spread[wide]):.3g}, {names[thin]} by "
            f"{float(spread[thin]):.3g}), which makes training slow; bring them to one scale first"
        )
    return lines


def _numbered(plan: train.Plan) -> str:
    """When the plan stops, with its numbers."""
    rule = plan.stop.value.replace("`patience`", str(plan.patience)).replace("`earliest`", str(plan.earliest))
    return rule if plan.stop is train.Stop.NEVER else f"at {rule}"


def prepare(wish: Wish, source: Source) -> Job:
    """Settle everything, and refuse what cannot be, before any work."""
    kind = model_called(wish.model)
    how = _preset(kind, wish, source)
    data = source.load(BUILT_IN)
    normalise = how.normalise_features if wish.normalise_rows is None else wish.normalise_rows
    data = data.row_normalised() if normalise else data
    what = _kind(wish, data)
    plan = _plan(how, wish)
    job = Job(
        how, plan, data, what, source.record(BUILT_IN), ("row_normalised",) if normalise else (),
        wish.adjoint == "implicit", _outputs(what, data),
    )  # fmt: skip
    _check_optimiser(job, wish)
    job.repetition(0)
    return job


def model_called(name: str) -> type[models.Model]:
    """A model class by its name in any case."""
    known = {m.__name__.lower(): m for m in models.MODELS}
    if name.lower() not in known:
        close = difflib.get_close_matches(name.lower(), known, n=2, cutoff=0.5)
        hint = f"did you mean {' or '.join(known[c].__name__ for c in close)}? There" if close else "there"
        raise ValueError(f"no model called {name!r}; {hint} are {', '.join(m.__name__ for m in models.MODELS)}")
    return known[name.lower()]


def _preset(kind: type[models.Model], wish: Wish, source: Source) -> Preset:
    name = BUILT_IN if source.dataset is None else source.dataset
    wanted = wish.preset
    if wanted is None:
        wanted = "paper" if not source.own and models.has_preset(name) else "default"
    if source.own and wanted != "default":
        raise ValueError(
            f"the preset {wanted!r} belongs to a named set; your own files are trained with --preset default"
        )
    how = models.preset(kind, name if not source.own else "own data", wanted)
    return replace(how, settings={**how.settings, **_settings(kind, wish.settings)})


def _settings(kind: type[models.Model], pairs: tuple[str, ...]) -> dict[str, Any]:
    """``name=value`` pairs as keyword arguments of the model."""
    known = {
        name: p.default
        for name, p in inspect.signature(kind).parameters.items()
        if name not in ("in_features", "out_features")
    }
    found: dict[str, Any] = {}
    for pair in pairs:
        name, sign, text = pair.partition("=")
        name = name.strip().replace("-", "_")
        if not sign or name not in known:
            have = ", ".join(known)
            raise ValueError(f"--set {pair}: {kind.__name__} takes {have}; write --set NAME=VALUE")
        found[name] = _value(name, text.strip(), known[name])
    return found


def _value(name: str, text: str, default: Any) -> Any:
    if isinstance(default, Enum):
        choices = {choice.name.lower(): choice for choice in type(default)}
        if text.lower() not in choices:
            raise ValueError(f"--set {name}={text}: choose one of {', '.join(choices)}")
        return choices[text.lower()]
    if isinstance(default, bool):
        if text.lower() not in ("true", "false", "yes", "no"):
            raise ValueError(f"--set {name}={text}: expected true or false")
        return text.lower() in ("true", "yes")
    try:
        return int(plain(text)) if isinstance(default, int) else float(plain(text))
    except ValueError:
        raise ValueError(f"--set {name}={text}: expected a number") from None


def _plan(how: Preset, wish: Wish) -> train.Plan:
    changes: dict[str, Any] = {
        name: getattr(wish, name) for name in ("epochs", "rate", "decay") if getattr(wish, name) is not None
    }
    if wish.select is not None:
        changes["select"] = train.Select.VALIDATION_LOSS if wish.select == "loss" else train.Select.VALIDATION_ACCURACY
    if wish.patience is not None:
        changes.update(stop=train.Stop.PATIENCE, patience=wish.patience)
    if wish.optimiser is not None:
        changes["optimiser"] = _optimiser(wish.optimiser)
    if wish.precision == "bfloat16":
        changes["precision"] = train.Precision.BFLOAT16
    with said_in_options():
        return how.plan(**changes)


def _optimiser(name: str) -> Any:
    # Muon takes matrices alone and SparseAdam sparse gradients: no model here has only those.
    without = ("optimizer", "muon", "sparseadam")
    known = {
        k.lower(): v
        for k, v in vars(torch.optim).items()
        if isinstance(v, type) and issubclass(v, torch.optim.Optimizer) and k.lower() not in without
    }
    if name.lower() not in known:
        raise ValueError(
            f"--optimiser {name}: torch.optim has none of that name for these models; adam, adamw, sgd, rmsprop and lbfgs are some"
        )
    return known[name.lower()]


def _check_optimiser(job: Job, wish: Wish) -> None:
    """Find out before the work whether the optimiser takes this model and its decay."""
    model = job.build()
    with said_in_options():
        try:
            make_optimiser(job.plan, model)
        except ValueError as problem:
            if len(job.plan.groups(model)) == 1:
                raise
            raise ValueError(
                f"--optimiser {wish.optimiser} cannot decay some parameters and not others; add --decay 0"
            ) from problem


def _kind(wish: Wish, data: datasets.Dataset) -> Kind:
    seen = Kind.CLASSES if data.targets is None else Kind.NUMBERS
    kind = seen if wish.loss is None else Kind(wish.loss)
    if kind in (Kind.NUMBERS, Kind.RANKING) and data.targets is None:
        raise ValueError(f"--loss {kind.value} learns from numbers; name their column with --target-column")
    if kind in (Kind.CLASSES, Kind.BINARY) and not data.classes:
        raise ValueError(f"{data.name} has no labels to learn from; give --labels FILE or --label-column NAME")
    if kind is Kind.BINARY and len(data.classes) != 2:
        raise ValueError(f"--loss binary tells two classes apart, and {data.name} has {len(data.classes)}")
    if kind is Kind.RANKING and data.targets is not None and data.targets.shape[1] != 1:
        raise ValueError("--loss ranking orders nodes by one number; give one --target-column")
    return kind


def _outputs(kind: Kind, data: Any) -> int:
    if kind is Kind.CLASSES:
        return len(data.classes)
    if kind is Kind.NUMBERS:
        return int(data.targets.shape[1])
    return PAIR_CHANNELS if kind is Kind.LINKS else 1


def _task(data: Any, kind: Kind) -> train.Task:
    if kind is Kind.CLASSES:
        return train.Task.of(data, train.CrossEntropy())
    if kind is Kind.NUMBERS:
        return train.Task.of(data, train.Regression())
    return train.Task.of(data, train.Binary() if kind is Kind.BINARY else train.Ranking())
