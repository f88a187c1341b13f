"""What Table 2 comes to: entries against the printed ones, how many are met, and the best against published numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from unspool.reproduce.causes import Cause, causes_of
from unspool.reproduce.conditions import CLEAN
from unspool.reproduce.entries import Entry, choose
from unspool.reproduce.experiment_files import read_experiment
from unspool.reproduce.options import model_named
from unspool.reproduce.presets import PRESETS, knows
from unspool.reproduce.records import Record
from unspool.reproduce.table2 import unpublished
from unspool.theory.printed_tables import ACCURACY, DATASETS, printed_accuracy


def entries_of(records: Sequence[Record], preset: str) -> list[Entry]:
    """The entries of one preset, dataset by dataset in the order of the paper.

    Example:
        >>> from unspool.reproduce.records import example_record
        >>> [entry.met for entry in entries_of([example_record(seed, test_score=0.8) for seed in range(3)], "paper")]
        [False]
    """
    entries = choose(one for one in records if one.preset == preset and one.condition == CLEAN)
    places = {name: place for place, name in enumerate(DATASETS)}
    return sorted(entries, key=lambda entry: places.get(entry.first.dataset, len(places)))


def causes_for(entry: Entry) -> tuple[Cause, ...]:
    """What may explain a miss; a run that was cut short explains itself.

    Example:
        >>> from unspool.reproduce.records import example_record
        >>> low = [example_record(seed, model="GCNII", test_score=0.80) for seed in range(3)]
        >>> causes_for(choose(low)[0])[0].model
        'GCNII'
    """
    one = entry.first
    if is_cut(one):
        cut = f"cut at {one.settings['epochs']} epochs of {preset_epochs(one)}"
        return (Cause(one.model, one.dataset, one.preset, cut, "run it without --epochs and --quick"),)
    return causes_of(one.model, one.dataset, one.preset)


def is_cut(record: Record) -> bool:
    """Whether a trial was given fewer epochs than its preset says.

    Example:
        >>> from unspool.reproduce.records import example_record
        >>> is_cut(example_record()), is_cut(example_record(settings={"epochs": 50}))
        (False, True)
    """
    most = record.settings.get("epochs")
    return most is not None and int(most) < preset_epochs(record)


def preset_epochs(record: Record) -> int:
    """How many epochs the preset of a trial has; on sets without one, those of the searches."""
    if record.preset not in ("paper", "official") or not knows(record.dataset):
        return int(read_experiment("tuned")["fixed"]["epochs"])
    return PRESETS[record.preset].trial(model_named(record.model), record.dataset).config.epochs


@dataclass(frozen=True)
class Tally:
    """How many of the printed entries are met: within one printed standard deviation, or above.

    Attributes:
        met: so many of those that were ``run``.
        arxiv: how many of those that were run are ArXiv's.
        silent: how many entries have no settings that anybody published.

    Example:
        >>> print(Tally(44, 48))
        44 of the 56 cells of Table 2 within one printed standard deviation of the paper's mean, or above. 48 were run;
        ArXiv's 8 need features that are not at hand
        >>> Tally(50, 56, arxiv=8).absent
        'All were run'
    """

    met: int
    run: int
    arxiv: int = 0
    silent: int = 0

    @staticmethod
    def of(entries: Sequence[Entry], preset: str) -> Tally:
        """Count the entries of a preset that are met.

        Example:
            >>> from unspool.reproduce.records import example_record
            >>> Tally.of(choose([example_record(seed) for seed in range(5)]), "paper")
            Tally(met=1, run=1, arxiv=0, silent=0)
        """
        known = [entry for entry in entries if entry.met is not None]
        there = {(entry.first.model, entry.first.dataset) for entry in known}
        arxiv = sum(dataset == "arxiv" for _, dataset in there)
        sets = [name for name in DATASETS if arxiv or name != "arxiv"]
        silent = sum((m, d) not in there and unpublished(m, d, preset) for m in ACCURACY for d in sets)
        return Tally(sum(entry.met is True for entry in known), len(known), arxiv, silent)

    @property
    def printed(self) -> int:
        """How many entries the paper prints."""
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
            f"{self.met} of the {self.printed} cells of Table 2 within one printed standard deviation of the paper's mean, "
            f"or above. {self.absent}"
        )


@dataclass(frozen=True)
class Published:
    """The best model of ours on a dataset, by validation, against the paper's best and the highest published number.

    Attributes:
        entry: ours; ``models``: of how many it is the best; ``paper``: the highest mean that the paper prints; ``best``, ``who``: the
            highest published; ``family``, ``family_who``: the highest of the same family of networks; ``protocol``: the splits of both.
    """

    entry: Entry
    models: int
    paper: float
    best: float
    who: str
    family: float
    family_who: str
    protocol: str


def against_published(records: Sequence[Record], preset: str = "tuned") -> list[Published]:
    """For each dataset the model that validation chooses, and published numbers.

    Example:
        >>> from unspool.reproduce.records import example_record
        >>> found = against_published([example_record(seed, preset="tuned") for seed in range(3)])[0]
        >>> found.paper, found.best, found.who
        (84.15, 85.8, 'GRAND+, from memory; GCNII 85.5, GRAND 85.4')
    """
    published = read_experiment("published")
    entries = entries_of(records, preset)
    found: list[Published] = []
    for name in DATASETS:
        mine = [entry for entry in entries if entry.first.dataset == name]
        if mine:
            best = max(mine, key=lambda entry: -math.inf if math.isnan(entry.valid.mean) else entry.valid.mean)
            printed = [pair[0] for model in ACCURACY if (pair := printed_accuracy(model, name)) is not None]
            found.append(Published(best, len(mine), max(printed), **published[name]))
    return found
