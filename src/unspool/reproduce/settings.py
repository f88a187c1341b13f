"""The settings of the experiments: data files that ship with the package, and what the user asked for instead."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from enum import Enum
from importlib import resources
from pathlib import Path
from typing import Any

from unspool import models
from unspool.datasets.sources import key_of
from unspool.models import Model
from unspool.reproduce.rectified import WithNonNegative, WithoutNonNegative
from unspool.reproduce.twins import LearntRows, LearntSquares

#: Models of experiments, which the library does not offer.
OURS: tuple[type[Model], ...] = (LearntSquares, LearntRows, WithNonNegative, WithoutNonNegative)


#: How the names of attacked sets end.
ATTACKED = "_metattack"


def read_settings(name: str) -> dict[str, Any]:
    """One of the data files under ``reproduce/experiments``.

    Example:
        >>> read_settings("depth")["enough"]
        [4, 10]
    """
    file = resources.files("unspool.reproduce") / "experiments" / f"{name}.toml"
    return tomllib.loads(file.read_text(encoding="utf-8"))


class Pace(Enum):
    """``FULL``: as the data files say. ``QUICK``: what ``quick.toml`` says, minutes on a laptop; numbers mean little."""

    FULL = "full"
    QUICK = "quick"


@dataclass(frozen=True)
class Scope:
    """What is to be run, where it differs from the data files.

    Attributes:
        seeds: how many, counted from 0.
        epochs: the most there are; a shorter preset stays as it is.
        models, datasets: names; all of the experiment when empty.
        most: so many settings of each search, drawn from all of them.
        pace: full or quick.
        depths: numbers of layers, where depth is what changes.
        parts: parts of an experiment that has several; all of them when empty.

    Example:
        >>> Scope(pace=Pace.QUICK).asked("depth")["datasets"]
        ['citeseer']
        >>> [kind.__name__ for kind in Scope(models=("gcn", "SGC")).kinds("table2")]
        ['GCN', 'SGC']
    """

    seeds: int | None = None
    epochs: int | None = None
    models: tuple[str, ...] = ()
    datasets: tuple[str, ...] = ()
    most: int | None = None
    pace: Pace = Pace.FULL
    depths: tuple[int, ...] = ()
    parts: tuple[str, ...] = ()

    def asked(self, experiment: str) -> dict[str, Any]:
        """The settings of an experiment, with what was asked for in their place."""
        held = read_settings(experiment)
        if self.pace is Pace.QUICK:
            held |= read_settings("quick")
        if self.seeds is not None:
            held["seeds"] = self.seeds
        if self.datasets:
            held["datasets"] = [key_of(name) for name in self.datasets]
        if experiment == "attacked":  # cora means the attacked Cora
            held["datasets"] = [name if name.endswith(ATTACKED) else f"{name}{ATTACKED}" for name in held["datasets"]]
        if self.depths:
            held["depths"] = list(self.depths)
        if self.parts and "parts" in held:
            unknown = next((part for part in self.parts if part not in held["parts"]), None)
            if unknown is not None:
                raise ValueError(f"{experiment} has no part {unknown!r}; there are {', '.join(held['parts'])}")
            held["parts"] = list(self.parts)
        return held

    def usual_seeds(self, experiment: str) -> int:
        """How many seeds an experiment has by itself, whatever number was asked for here."""
        held = read_settings(experiment) | (read_settings("quick") if self.pace is Pace.QUICK else {})
        return int(held["seeds"])

    def kinds(self, experiment: str) -> list[type[Model]]:
        """The models of an experiment, or those that were asked for."""
        listed: list[str] = read_settings(experiment)["models"]
        return [model_named(name) for name in (self.models if self.models else listed)]

    @property
    def longest(self) -> int | None:
        """The most epochs; None where presets decide."""
        if self.epochs is not None:
            return self.epochs
        return int(read_settings("quick")["epochs"]) if self.pace is Pace.QUICK else None

    @property
    def settings(self) -> int | None:
        """The most settings of a search; None for all."""
        if self.most is not None:
            return self.most
        return int(read_settings("quick")["most"]) if self.pace is Pace.QUICK else None


def model_named(name: str) -> type[Model]:
    """A model by its name, in any case.

    Example:
        >>> model_named("ugdgnn").__name__
        'UGDGNN'
        >>> model_named("gat")
        Traceback (most recent call last):
            ...
        ValueError: no model 'gat'; there are SGC, PPNP, APPNP, JKNet, GPRGNN, GCN, ..., MLP, LearntSquares, ...
    """
    known = {kind.__name__.lower(): kind for kind in (*models.MODELS, *OURS)}
    if name.lower() not in known:
        raise ValueError(f"no model {name!r}; there are {', '.join(kind.__name__ for kind in known.values())}")
    return known[name.lower()]


@dataclass(frozen=True)
class Place:
    """Where and how trials are trained.

    Attributes:
        out: the folder of ``study.db`` and ``results/``.
        device: a GPU where there is one when omitted.
        jobs: processes on a CPU; as many as pay when omitted.
        root: the folder of raw data, else ``UNSPOOL_DATA``.
        command: what was typed, for ``machine.json``.
        stored: train nothing, and take what the study holds.

    Example:
        >>> Place(Path("out")).results
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
