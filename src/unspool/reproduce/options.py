"""What is to be run, where it differs from the data files of the experiments, and where."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

from unspool import models
from unspool.datasets.sources import key_of
from unspool.errors import InputError
from unspool.models import Model
from unspool.reproduce import experiment_files
from unspool.reproduce.ablations import LearntRows, LearntSquares, WithNonNegative, WithoutNonNegative

#: Models of experiments, which the library does not offer.
EXPERIMENT_MODELS: tuple[type[Model], ...] = (LearntSquares, LearntRows, WithNonNegative, WithoutNonNegative)

#: How the names of attacked sets end.
ATTACKED = "_metattack"


class Budget(Enum):
    """``FULL``: as the data files say. ``QUICK``: what ``quick.toml`` says, minutes on a laptop; numbers mean little."""

    FULL = "full"
    QUICK = "quick"


@dataclass(frozen=True)
class RunOptions:
    """What is to be run, where it differs from the data files.

    Attributes:
        seeds: how many, counted from 0.
        epochs: the most there are; a shorter preset stays as it is.
        models, datasets: names; all of the experiment when empty.
        max_settings: so many settings of each search, drawn from all of them.
        budget: full or quick.
        depths: numbers of layers, where depth is what changes.
        parts: parts of an experiment that has several; all of them when empty.

    Example:
        >>> RunOptions(budget=Budget.QUICK).experiment("depth")["datasets"]
        ['citeseer']
        >>> [kind.__name__ for kind in RunOptions(models=("gcn", "SGC")).model_classes("table2")]
        ['GCN', 'SGC']
    """

    seeds: int | None = None
    epochs: int | None = None
    models: tuple[str, ...] = ()
    datasets: tuple[str, ...] = ()
    max_settings: int | None = None
    budget: Budget = Budget.FULL
    depths: tuple[int, ...] = ()
    parts: tuple[str, ...] = ()

    def experiment(self, name: str) -> dict[str, Any]:
        """The data file of an experiment, with what was asked for in its place."""
        held = self._file(name)
        if self.seeds is not None:
            held["seeds"] = self.seeds
        if self.datasets:
            held["datasets"] = [key_of(one) for one in self.datasets]
        if name == "attacked":  # cora means the attacked Cora
            held["datasets"] = [one if one.endswith(ATTACKED) else f"{one}{ATTACKED}" for one in held["datasets"]]
        if self.depths:
            held["depths"] = list(self.depths)
        if self.parts and "parts" in held:
            unknown = next((part for part in self.parts if part not in held["parts"]), None)
            if unknown is not None:
                raise InputError("parts", unknown, f"parts of {name}: {', '.join(held['parts'])}")
            held["parts"] = list(self.parts)
        return held

    def _file(self, name: str) -> dict[str, Any]:
        quick = experiment_files.read_experiment("quick") if self.budget is Budget.QUICK else {}
        return experiment_files.read_experiment(name) | quick

    def usual_seeds(self, experiment: str) -> int:
        """How many seeds an experiment has by itself, whatever number was asked for here."""
        return int(self._file(experiment)["seeds"])

    def model_classes(self, experiment: str) -> list[type[Model]]:
        """The models of an experiment, or those that were asked for."""
        listed: list[str] = experiment_files.read_experiment(experiment)["models"]
        return [model_named(name) for name in (self.models if self.models else listed)]

    @property
    def max_epochs(self) -> int | None:
        """The most epochs; None where presets decide."""
        return self.epochs if self.epochs is not None else self._quick("epochs")

    @property
    def settings_per_search(self) -> int | None:
        """The most settings of a search; None for all."""
        return self.max_settings if self.max_settings is not None else self._quick("max_settings")

    def _quick(self, name: str) -> int | None:
        return int(experiment_files.read_experiment("quick")[name]) if self.budget is Budget.QUICK else None


def model_named(name: str) -> type[Model]:
    """A model by its name, in any case.

    Example:
        >>> model_named("ugdgnn").__name__
        'UGDGNN'
        >>> model_named("gat")
        Traceback (most recent call last):
            ...
        unspool.errors.InputError: models='gat': expected models of the experiments: SGC, PPNP, ..., MLP, ..., LearntSquares, ...
    """
    known = {kind.__name__.lower(): kind for kind in (*models.MODELS, *EXPERIMENT_MODELS)}
    if name.lower() not in known:
        every = ", ".join(kind.__name__ for kind in known.values())
        raise InputError("models", name, f"models of the experiments: {every}")
    return known[name.lower()]


@dataclass(frozen=True)
class Workspace:
    """Where and how trials are trained.

    Attributes:
        out: the folder of ``study.db`` and ``results/``.
        device: a GPU where there is one when omitted.
        jobs: processes on a CPU; as many as pay when omitted.
        root: the folder of raw data, else ``UNSPOOL_DATA``.
        command: what was typed, for ``machine.json``.
        stored: train nothing, and take what the study holds.

    Example:
        >>> Workspace(Path("out")).results
        PosixPath('out/results')
    """

    out: Path
    device: str | None = None
    jobs: int | None = None
    root: Path | None = None
    command: str = ""
    stored: bool = False

    @property
    def results(self) -> Path:
        """The folder of the CSV files."""
        return self.out / "results"

    @property
    def store(self) -> Path:
        """The file of the study."""
        return self.out / "study.db"
