"""What results are made of: trials, searches, and all of them together."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from unspool.reproduce.measured import Measured

#: The experiments that train, in the order of the paper and of what goes past it.
EXPERIMENTS = ("table2", "readings", "depth", "robust", "attacked", "grid", "heterophily")


@dataclass(frozen=True)
class Record:
    """One trial of an experiment: a row of its file.

    Attributes:
        experiment: which one: ``table2``, ``readings``, ``depth``, ``robust``, ``attacked``, ``grid`` or ``heterophily``.
        dataset: its name, in lower case.
        variant: what was done to the data: nothing, ``features 30 %``, ``edges 20 %``, ``attacked 5 %``, ...
        model: the name of the class.
        preset: ``paper``, ``official``, ``tuned``, ``grid`` or ``default``; in ``readings`` the reading.
        depth: number of layers; None for models that have none.
        rate, decay, dropout: as in the plan and the model; decay in words where groups of parameters differ.
        settings: everything else that decides the trial, by name.
        seed: of weights and masks, and of the split where splits are drawn.
        epoch, epochs: the one that validation chose, and how many were run.
        train_loss, valid_loss, valid_score, test_score: at the chosen epoch; scores are shares, not per cent.
        reason: why training ended.
        seconds: the trial's share of the time of its pack.

    Example:
        >>> example_record(seed=2).settings["hidden"]
        64
    """

    experiment: str
    dataset: str
    variant: str
    model: str
    preset: str
    depth: int | None
    rate: float
    decay: float | str
    dropout: float | None
    settings: Mapping[str, Any]
    seed: int
    epoch: int
    epochs: int
    train_loss: float
    valid_loss: float
    valid_score: float
    test_score: float
    reason: str
    seconds: float

    @property
    def setting(self) -> tuple[Any, ...]:
        """Equal for trials that differ in nothing but the seed."""
        told = json.dumps(self.settings, sort_keys=True)
        return (self.model, self.preset, self.depth, self.rate, self.decay, self.dropout, told)


@dataclass(frozen=True)
class Search:
    """How the setting of one cell was found: a row of ``searches.csv``. Validation alone decides.

    Attributes:
        experiment, dataset, variant, model, preset: the cell.
        settings: how many settings were tried, and ``trials`` how many trials that took, all stages together.
        space: the values of each setting, by name.
        chosen: what was chosen, by name.
        valid_score: its mean validation score over ``seeds`` seeds.

    Example:
        >>> Search("grid", "cora", "", "SGC", "grid", 9, 90, {"rate": [0.01]}, {"rate": 0.01}, 0.8, 10).settings
        9
    """

    experiment: str
    dataset: str
    variant: str
    model: str
    preset: str
    settings: int
    trials: int
    space: Mapping[str, Sequence[Any]]
    chosen: Mapping[str, Any]
    valid_score: float
    seeds: int


@dataclass(frozen=True)
class Results:
    """Everything in a folder of results.

    Attributes:
        rows: all trials, experiment by experiment.
        searches: how settings were found, where they were searched for.
        machine: hardware, versions, date, and for each experiment its seconds, trials and command.
        measured: numbers that are not trials: of signals, of damaged and clean nodes apart, of norms and energies.

    Example:
        >>> Results([example_record()]).of("table2")[0].dataset
        'cora'
    """

    rows: list[Record]
    searches: list[Search] = field(default_factory=list[Search])
    machine: dict[str, Any] = field(default_factory=dict[str, Any])
    measured: list[Measured] = field(default_factory=list[Measured])

    @property
    def experiments(self) -> tuple[str, ...]:
        """Those that have rows, in the order of :data:`EXPERIMENTS`."""
        have = {row.experiment for row in self.rows}
        return tuple(name for name in EXPERIMENTS if name in have)

    def of(self, experiment: str, **values: Any) -> list[Record]:
        """The rows of an experiment, or those of them with these values.

        Example:
            >>> found = Results([example_record(seed) for seed in range(3)])
            >>> [row.seed for row in found.of("table2", model="GCN", seed=1)]
            [1]
        """
        rows = (row for row in self.rows if row.experiment == experiment)
        return [row for row in rows if all(getattr(row, name) == value for name, value in values.items())]


def example_record(seed: int = 0, **changes: Any) -> Record:
    """A made-up trial, to try things on.

    Example:
        >>> example_record(seed=1, model="SGC").model
        'SGC'
    """
    score = round(0.83 + 0.002 * (seed % 5 - 2), 4)
    made = Record(
        "table2", "cora", "", "GCN", "paper", 2, 0.01, 5e-4, 0.8, {"hidden": 64, "select": "lowest validation loss"}, seed,
        180, 1000, 0.41, 0.93, round(score - 0.02, 4), score, "all epochs", 0.25,
    )  # fmt: skip
    return dataclasses.replace(made, **changes)
