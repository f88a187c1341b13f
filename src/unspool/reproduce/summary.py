"""The tables as plain records, for terminals, JSON lines and reports alike: ours, printed, difference, within?"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from unspool.models import has_preset
from unspool.models import preset as preset_of
from unspool.models.preset_tables import ACCURACY, DATASETS, printed_accuracy
from unspool.reproduce.causes import Cause, causes_of
from unspool.reproduce.cells import Cell, choose
from unspool.reproduce.results import Record
from unspool.reproduce.settings import model_named, read_settings
from unspool.reproduce.table2 import unpublished


@dataclass(frozen=True)
class Compared:
    """A cell beside what the paper prints.

    Attributes:
        cell: ours.
        causes: what is known about a deviation; empty where the cell meets the printed one or none is printed.
    """

    cell: Cell
    causes: tuple[Cause, ...]


def compared(rows: Sequence[Record], preset: str) -> list[Compared]:
    """The cells of one preset, dataset by dataset in the order of the paper.

    Example:
        >>> from unspool.reproduce.results import example_record
        >>> low = [example_record(seed, model="GCNII", test_score=0.80) for seed in range(3)]
        >>> found = compared(low, "paper")[0]
        >>> found.cell.met, found.causes[0].model
        (False, 'GCNII')
    """
    cells = choose(row for row in rows if row.preset == preset and not row.variant)
    places = {name: place for place, name in enumerate(DATASETS)}
    ordered = sorted(cells, key=lambda cell: places.get(cell.first.dataset, len(places)))
    return [Compared(c, causes_for(c) if c.met is False else ()) for c in ordered]


def causes_for(cell: Cell) -> tuple[Cause, ...]:
    """What may explain a miss; a run that was cut short explains itself."""
    row = cell.first
    if is_cut(row):
        cut = f"cut at {row.settings['epochs']} epochs of {whole(row)}"
        return (Cause(row.model, row.dataset, row.preset, cut, "run it without --epochs and --quick"),)
    return causes_of(row.model, row.dataset, row.preset)


def is_cut(row: Record) -> bool:
    """Whether a trial was given fewer epochs than its preset says.

    Example:
        >>> from unspool.reproduce.results import example_record
        >>> is_cut(example_record()), is_cut(example_record(settings={"epochs": 50}))
        (False, True)
    """
    most = row.settings.get("epochs")
    return most is not None and int(most) < whole(row)


def whole(row: Record) -> int:
    """How many epochs the preset of a trial has; on sets without one, those of the searches."""
    if row.preset not in ("paper", "official") or not has_preset(row.dataset):
        return int(read_settings("tuned")["fixed"]["epochs"])
    return preset_of(model_named(row.model), row.dataset, row.preset).epochs


@dataclass(frozen=True)
class Tally:
    """How many of the printed cells are met: within one printed standard deviation, or above.

    Attributes:
        preset: whose settings.
        met: so many of those that were ``run``.
        arxiv: how many of those that were run are ArXiv's.
        silent: how many cells have no settings that anybody published.

    Example:
        >>> print(Tally("paper", 44, 48))
        paper: 44 of the 56 cells of Table 2 within one printed standard deviation of the paper's mean, or above. 48 were run;
        ArXiv's 8 need features that are not at hand
        >>> print(Tally("paper", 50, 56, arxiv=8))
        paper: 50 of the 56 cells of Table 2 within one printed standard deviation of the paper's mean, or above. All were run
    """

    preset: str
    met: int
    run: int
    arxiv: int = 0
    silent: int = 0

    @property
    def printed(self) -> int:
        """How many cells the paper prints."""
        return len(ACCURACY) * len(DATASETS)

    @property
    def absent(self) -> str:
        """What was not run, and why."""
        if self.run == self.printed:
            return "All were run"
        away = 0 if self.arxiv else len(ACCURACY)
        parts = [f"{self.run} were run"]
        parts += [f"ArXiv's {away} need features that are not at hand"] if away else []
        parts += [f"for {self.silent} the authors of the models publish no settings"] if self.silent else []
        left = self.printed - self.run - away - self.silent
        return "; ".join([*parts, f"{left} were not run"] if left else parts)

    def __str__(self) -> str:
        return (
            f"{self.preset}: {self.met} of the {self.printed} cells of Table 2 within one printed standard deviation of the paper's mean, "
            f"or above. {self.absent}"
        )


def tally(rows: Sequence[Record], preset: str) -> Tally:
    """Count the cells of a preset that are met.

    Example:
        >>> from unspool.reproduce.results import example_record
        >>> found = tally([example_record(seed) for seed in range(5)], "paper")
        >>> found.met, found.run, found.printed
        (1, 1, 56)
    """
    return tallied([one.cell for one in compared(rows, preset)], preset)


def tallied(cells: Sequence[Cell], preset: str) -> Tally:
    """The same for cells that were chosen already."""
    known = [cell for cell in cells if cell.met is not None]
    there = {(cell.first.model, cell.first.dataset) for cell in known}
    arxiv = sum(dataset == "arxiv" for _, dataset in there)
    sets = [name for name in DATASETS if arxiv or name != "arxiv"]
    silent = sum((m, d) not in there and unpublished(m, d, preset) for m in ACCURACY for d in sets)
    return Tally(preset, sum(cell.met is True for cell in known), len(known), arxiv, silent)


@dataclass(frozen=True)
class Against:
    """The best model of ours on a dataset, by validation, against the paper's best and the highest published number.

    Attributes:
        cell: ours; ``models``: of how many it is the best; ``paper``: the highest mean that the paper prints; ``best``, ``who``: the highest published; ``family``,
            ``family_who``: the highest of the same family of networks.
    """

    cell: Cell
    models: int
    paper: float
    best: float
    who: str
    family: float
    family_who: str


def surpassed(rows: Sequence[Record], preset: str = "tuned") -> list[Against]:
    """For each dataset the model that validation chooses, beside published numbers.

    Example:
        >>> from unspool.reproduce.results import example_record
        >>> found = surpassed([example_record(seed, preset="tuned") for seed in range(3)])[0]
        >>> found.paper, found.best, found.who
        (84.15, 85.8, 'GRAND+, from memory; GCNII 85.5, GRAND 85.4')
    """
    published = read_settings("published")
    found: list[Against] = []
    for name in DATASETS:
        cells = choose(row for row in rows if row.preset == preset and row.dataset == name and not row.variant)
        if cells:
            best = max(cells, key=lambda cell: -math.inf if math.isnan(cell.valid.mean) else cell.valid.mean)
            printed = [pair[0] for model in ACCURACY if (pair := printed_accuracy(model, name)) is not None]
            held = published[name]
            found.append(
                Against(best, len(cells), max(printed), held["best"], held["who"], held["family"], held["family_who"])
            )
    return found
