"""What results are made of: trials, searches, single numbers, and all of them together."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, NamedTuple

from unspool.reproduce.conditions import CLEAN, Condition, Factor, Nodes
from unspool.train import Ending, Result, Trial

#: The experiments that train, in the order of the paper and of what goes past it.
EXPERIMENTS = ("table2", "interpretations", "depth", "robust", "attacked", "grid", "heterophily")
#: The experiments whose results are single numbers.
MEASURED = ("signals", "damage", "nonlinearity", "identity")
#: Settings that have columns of their own, in their order.
_OWN = ("depth", "lr", "weight_decay", "dropout")
#: What results keep of a configuration; the last ones where something stops early.
_STOPPING = ("patience", "min_epochs")
_CONFIG = ("lr", "weight_decay", "epochs", "monitor", "stop", *_STOPPING)


@dataclass(frozen=True)
class Record:
    """One trial of an experiment: a row of its file.

    Attributes:
        experiment: which one: ``table2``, ``interpretations``, ``depth``, ``robust``, ``attacked``, ``grid`` or ``heterophily``.
        dataset: its name, in lower case.
        condition: what was done to the data.
        model: the name of the class.
        preset: ``paper``, ``official``, ``tuned``, ``grid`` or ``default``.
        interpretation: the name of an interpretation of what the paper leaves open (``interpretations.toml``); empty elsewhere.
        depth: number of layers; None for models that have none.
        lr, weight_decay, dropout: as in the configuration and the model; decay by name where groups of parameters differ.
        settings: everything else that decides the trial, by name.
        seed: of weights and masks, and of the split where splits are drawn.
        result: the numbers of the epoch that validation chose; scores are shares, not per cent.

    Example:
        >>> example_record(seed=2).settings["hidden"], example_record().result.epochs
        (64, 1000)
    """

    experiment: str
    dataset: str
    condition: Condition
    model: str
    preset: str
    interpretation: str
    depth: int | None
    lr: float
    weight_decay: float | Mapping[str, float]
    dropout: float | None
    settings: Mapping[str, Any]
    seed: int
    result: Result

    @staticmethod
    def of(experiment: str, dataset: str, trial: Trial, result: Result, condition: Condition = CLEAN) -> Record:
        """A trial and what came of it.

        Example:
            >>> import unspool as us
            >>> trial = Trial(us.models.GCN, {"dropout": 0.2}, seed=3, normalise_rows=True)
            >>> made = Record.of("table2", "cora", trial, example_record().result)
            >>> made.dropout, made.weight_decay, made.settings["normalise_rows"], made.settings["monitor"]
            (0.2, 0.0005, True, 'valid_loss')
        """
        plain = plain_settings(trial)
        own: dict[str, Any] = {name: plain.pop(name, None) for name in _OWN}
        about = (experiment, dataset, condition, trial.name, trial.preset, "")
        return Record(*about, **own, settings=plain, seed=trial.seed, result=result)

    @property
    def plain_settings(self) -> dict[str, Any]:
        """Everything that decided it but model and seed, by name, as :func:`plain_settings` gives it of a trial."""
        own = {name: getattr(self, name) for name in _OWN}
        return {**self.settings, **{name: value for name, value in own.items() if value is not None}}

    @property
    def setting(self) -> tuple[str, ...]:
        """Equal for trials that differ in nothing but the seed."""
        return (self.model, self.preset, self.interpretation, json.dumps(self.plain_settings, sort_keys=True))


def plain_settings(trial: Trial) -> dict[str, Any]:
    """Everything that is said about a trial but its model and seed, as plain values.

    Example:
        >>> import unspool as us
        >>> plain_settings(Trial(us.models.GCN, {"depth": 3}))["depth"]
        3
    """
    plain = trial.config.to_plain()
    config = {name: plain[name] for name in _CONFIG if plain["stop"] != "never" or name not in _STOPPING}
    return {**trial.schema.to_plain(trial.settings), **config, "normalise_rows": trial.normalise_rows}


@dataclass(frozen=True)
class Search:
    """How the setting of one entry was found: a row of ``searches.csv``. Validation alone decides.

    Attributes:
        experiment, dataset, model, preset: the entry.
        settings: how many settings were tried, and ``trials`` how many trials that took, all stages together.
        space: the values of each setting, by name.
        chosen: what was chosen, by name.
        valid_score: its mean validation score over ``seeds`` seeds.

    Example:
        >>> Search("grid", "cora", "SGC", "grid", 9, 90, {"lr": [0.01]}, {"lr": 0.01}, 0.8, 10).settings
        9
    """

    experiment: str
    dataset: str
    model: str
    preset: str
    settings: int
    trials: int
    space: Mapping[str, Sequence[Any]]
    chosen: Mapping[str, Any]
    valid_score: float
    seeds: int


class Quantity(Enum):
    """What was measured; the value is its name in tables."""

    ERROR = "relative error"
    ACCURACY = "test accuracy (%)"
    LOST = "accuracy lost"
    TRAIN_ACCURACY = "training accuracy (%)"
    GAP = "training less test accuracy (points)"
    WEIGHT_NORM = "norm of W"
    HOP_NORM = "norm of γ(ζI + ξW), or W"
    ENERGY = "Dirichlet energy over size of H"
    INPUT_ENERGY = "Dirichlet energy over size of X"


class Group(NamedTuple):
    """What is measured as a whole: the seeds of one model on one dataset under one condition."""

    dataset: str
    model: str
    condition: Condition


@dataclass(frozen=True)
class Measurement:
    """One number that is not the score of a trial: an error, an accuracy of some nodes, a norm, an energy.

    Attributes:
        experiment: which one: ``signals``, ``damage``, ``nonlinearity`` or ``identity``.
        dataset: the dataset, or the graph, in lower case.
        model: the network, or the fidelity.
        condition: what was varied.
        seed: of the damage and of the network.
        quantity: what was measured, on which ``nodes``.
        value: the number; accuracies are shares, not per cent.
        settings: what decided it, by name.

    Example:
        >>> example_measurement(3).value
        0.14
    """

    experiment: str
    dataset: str
    model: str
    condition: Condition
    seed: int
    quantity: Quantity
    nodes: Nodes
    value: float
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])

    @property
    def group(self) -> Group:
        """What is replaced as a whole when it is measured again."""
        return Group(self.dataset, self.model, self.condition)


def by_group(
    measurements: Iterable[Measurement], quantity: Quantity, nodes: Nodes = Nodes.ALL
) -> dict[Group, dict[int, float]]:
    """One quantity by group and seed.

    Example:
        >>> {group.model: values for group, values in by_group([example_measurement(s) for s in (0, 1)], Quantity.ERROR).items()}
        {'rows': {0: 0.11, 1: 0.12}}
    """
    made: dict[Group, dict[int, float]] = {}
    for one in measurements:
        if one.quantity is quantity and one.nodes is nodes:
            made.setdefault(one.group, {})[one.seed] = one.value
    return made


@dataclass(frozen=True)
class Results:
    """Everything in a folder of results.

    Attributes:
        records: all trials, experiment by experiment.
        searches: how settings were found, where they were searched for.
        machine: hardware, versions, date, and for each experiment its seconds, trials and command.
        measurements: single numbers: of signals, of damaged and clean nodes apart, of norms and energies.

    Example:
        >>> Results([example_record()]).of("table2")[0].dataset
        'cora'
    """

    records: list[Record]
    searches: list[Search] = field(default_factory=list[Search])
    machine: dict[str, Any] = field(default_factory=dict[str, Any])
    measurements: list[Measurement] = field(default_factory=list[Measurement])

    @property
    def experiments(self) -> tuple[str, ...]:
        """Those that have records, in the order of :data:`EXPERIMENTS`."""
        have = {record.experiment for record in self.records}
        return tuple(name for name in EXPERIMENTS if name in have)

    def of(self, experiment: str) -> list[Record]:
        """The records of an experiment."""
        return [record for record in self.records if record.experiment == experiment]

    def measured(self, experiment: str) -> list[Measurement]:
        """The measurements of an experiment."""
        return [one for one in self.measurements if one.experiment == experiment]

    def only(self, models: Collection[str], datasets: Collection[str], presets: Collection[str] = ()) -> Results:
        """The part about some models, datasets and, where some are named, presets; signals are of no network, and stay.

        Example:
            >>> len(Results([example_record()]).only(["SGC"], ["cora"]).records)
            0
        """

        def wanted(one: Record | Search | Measurement) -> bool:
            return one.model in models and one.dataset in datasets

        def named(one: Record | Search) -> bool:
            return not presets or one.preset in presets

        return Results(
            [one for one in self.records if wanted(one) and named(one)],
            [one for one in self.searches if wanted(one) and named(one)],
            self.machine,
            [one for one in self.measurements if one.experiment == "signals" or wanted(one)],
        )


def example_record(seed: int = 0, **changes: Any) -> Record:
    """A made-up trial, to try things on; changes may name fields of the result, too.

    Example:
        >>> made = example_record(seed=1, model="SGC", test_score=0.5)
        >>> made.model, made.result.test_score
        ('SGC', 0.5)
    """
    score = round(0.83 + 0.002 * (seed % 5 - 2), 4)
    result = Result(180, 1000, 0.41, 0.93, round(score - 0.02, 4), score, Ending.ALL_EPOCHS, 0.25)
    of_result = {f.name for f in dataclasses.fields(Result)} & set(changes)
    result = dataclasses.replace(result, **{name: changes.pop(name) for name in of_result})
    settings = {"hidden": 64, "monitor": "valid_loss"}
    made = Record("table2", "cora", CLEAN, "GCN", "paper", "", 2, 0.01, 5e-4, 0.8, settings, seed, result)
    return dataclasses.replace(made, **changes)


def example_measurement(seed: int = 0, **changes: Any) -> Measurement:
    """A made-up number, to try things on.

    Example:
        >>> example_measurement(model="squares").model
        'squares'
    """
    value = round(0.11 + 0.01 * seed, 4)
    condition = Condition(Factor.OUTLIERS, 10.0)
    made = Measurement("signals", "sensor", "rows", condition, seed, Quantity.ERROR, Nodes.ALL, value, {"weight": 3.0})
    return dataclasses.replace(made, **changes)
