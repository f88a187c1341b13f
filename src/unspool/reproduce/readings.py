"""What the paper leaves open, one reading at a time, on the cells of Table 2 that miss the printed number."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from unspool.datasets import Dataset, splits
from unspool.models import Model
from unspool.reproduce.bench import Bench, Item
from unspool.reproduce.cells import Cell, choose
from unspool.reproduce.results import Record, Results, read_rows
from unspool.reproduce.search import meant
from unspool.reproduce.settings import read_settings
from unspool.reproduce.table2 import as_printed, check_sets
from unspool.study import Trial
from unspool.study.search.words import signature
from unspool.train import Stop


@dataclass(frozen=True)
class Reading:
    """One way to read what the paper does not say; see ``readings.toml``.

    Example:
        >>> import unspool as us
        >>> other = Reading("highest validation accuracy", select="accuracy")
        >>> other.of(as_printed(us.models.GCN, "cora", "paper")).plan.select.name
        'VALIDATION_ACCURACY'
    """

    name: str
    select: str | None = None
    rows: str | None = None
    split: str | None = None
    decay: Mapping[str, float] | str | None = None
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])
    times: int = 1
    patience: int | None = None
    models: Sequence[str] = ()
    datasets: Sequence[str] = ()

    def concerns(self, model: str, dataset: str) -> bool:
        """Whether a cell can be read so."""
        pairs = ((self.models, model), (self.datasets, dataset))
        return all(not names or name in names for names, name in pairs)

    def of(self, trial: Trial) -> Trial:
        """A trial of the preset ``paper``, read so."""
        plan = trial.plan
        if self.select is not None:
            plan = replace(plan, select=meant(trial.model, "select", self.select))
        if self.patience is not None:
            plan = replace(plan, stop=Stop.PATIENCE, patience=self.patience)
        if self.decay == "first":
            own = plan.decay["first"] if isinstance(plan.decay, Mapping) else plan.decay
            plan = replace(plan, decay={"first": own})
        elif self.decay is not None:
            plan = replace(plan, decay=self.decay)
        changed = {name: meant(trial.model, name, value) for name, value in self.settings.items()}
        normalise = trial.normalise_rows if self.rows is None else self.rows == "normalised"
        return replace(trial, plan=plan, settings={**trial.settings, **changed}, normalise_rows=normalise)

    def changes(self, trial: Trial) -> bool:
        """Whether it is another trial at all: a decay of nothing is nothing on the first layer too.

        Example:
            >>> import unspool as us
            >>> first = Reading("decay on the first layer alone", decay="first")
            >>> [first.changes(as_printed(us.models.GCN, name, "paper")) for name in ("cora", "photo")]
            [True, False]
        """
        other = self.of(trial)
        if _nothing(other.plan.decay) and _nothing(trial.plan.decay):
            other = replace(other, plan=replace(other.plan, decay=trial.plan.decay))
        return self.split is not None or self.times > 1 or other.key("") != trial.key("")

    def of_data(self, data: Dataset) -> Dataset:
        """The dataset, with another split where the reading has one."""
        return data if self.split is None else data.with_split(splits.by_name(data, self.split))


def all_readings() -> list[Reading]:
    """Every reading, in the order of the file.

    Example:
        >>> all_readings()[0].name
        'highest validation accuracy'
    """
    return [Reading(**one) for one in read_settings("readings")["reading"]]


def run_readings(bench: Bench) -> list[Record]:
    """Run the readings of cells that miss, and keep them in ``readings.csv``; ``preset`` says which reading a row is of.

    Which cells miss is read from ``table2.csv``, so Table 2 is run first.
    """
    how = bench.scope.asked("readings")
    check_sets(how["datasets"])
    missed = missing_cells(printed_rows(bench.place.results))
    kinds = {kind.__name__: kind for kind in bench.scope.kinds("readings")}
    readings = all_readings()[: bench.scope.settings]
    kept: list[Record] = []
    with bench.timed("readings"):
        for name in how["datasets"]:
            wanted = [
                kinds[cell.first.model] for cell in missed if cell.first.dataset == name and cell.first.model in kinds
            ]
            if not wanted:
                bench.say(f"readings on {name}: none of these models has a cell of Table 2 here that misses")
            data = bench.data(name) if wanted else None
            if data is not None:
                rows = _on(bench, data, wanted, readings, how["seeds"])
                bench.keep("readings", rows)
                kept += rows
    return kept


def printed_rows(folder: Path) -> list[Record]:
    """The trials of Table 2 under the preset ``paper``; refuses where there are none.

    Example:
        >>> printed_rows(Path("nowhere"))
        Traceback (most recent call last):
            ...
        FileNotFoundError: no cells of preset paper in nowhere; run `unspool reproduce table2 --preset paper` first
    """
    rows = [row for row in read_rows(folder, "table2") if row.preset == "paper"]
    if not rows:
        raise FileNotFoundError(
            f"no cells of preset paper in {folder}; run `unspool reproduce table2 --preset paper` first"
        )
    return rows


def missing_cells(rows: Sequence[Record]) -> list[Cell]:
    """The cells of the preset ``paper`` that miss the printed mean by more than one printed standard deviation.

    Example:
        >>> from unspool.reproduce.results import example_record
        >>> [cell.text for cell in missing_cells([example_record(seed, test_score=0.8) for seed in range(3)])]
        ['80.00 ± 0.00']
    """
    return [cell for cell in choose(row for row in rows if row.preset == "paper") if cell.met is False]


def _on(
    bench: Bench, data: Dataset, kinds: Sequence[type[Model]], readings: Sequence[Reading], seeds: int
) -> list[Record]:
    """All readings of some cells on one dataset; those with the same split together."""
    rows: list[Record] = []
    for split in dict.fromkeys(reading.split for reading in readings):
        items: list[Item] = []
        for kind in kinds:
            printed = as_printed(kind, data.name, "paper")
            mine = [r for r in readings if r.split == split and _known(r, kind)]
            fitting = [
                r for r in mine if r.concerns(kind.__name__, data.name) and affordable(r, kind.__name__, data.name)
            ]
            items += [
                Item(replace(reading.of(printed), seed=seed), reading.name)
                for reading in fitting
                if printed is not None and reading.changes(printed)
                for seed in range(seeds * reading.times)
            ]
        if items:
            changed = next(reading for reading in readings if reading.split == split).of_data(data)
            rows += [done.record for done in bench.train("readings", changed, items)]
    return rows


def affordable(reading: Reading, model: str, dataset: str) -> bool:
    """Whether a reading is run on a cell whose trials are slow; ``readings.toml`` says which are.

    Example:
        >>> some = [reading for reading in all_readings() if reading.concerns("GCNII", "physics")]
        >>> len(some), len([reading for reading in some if affordable(reading, "GCNII", "physics")])
        (10, 3)
    """
    slow = [one for one in read_settings("readings")["slow"] if one["model"] == model and dataset in one["datasets"]]
    return all(reading.name in one["readings"] for one in slow)


def _nothing(decay: Mapping[str, float] | float) -> bool:
    return not any(decay.values()) if isinstance(decay, Mapping) else not decay


def _known(reading: Reading, kind: type[Model]) -> bool:
    return all(name in signature(kind).names for name in reading.settings)


@dataclass(frozen=True)
class Explained:
    """A cell that misses under the preset ``paper``, and the readings that were tried on it, the nearest to the print first.

    Attributes:
        cell: as printed.
        readings: cells of ``readings.csv``, and that of the preset ``official`` where there is one.

    Example:
        >>> from unspool.reproduce.results import Results, example_record
        >>> low = [example_record(seed, test_score=0.8) for seed in range(3)]
        >>> other = [example_record(seed, experiment="readings", preset="last epoch") for seed in range(3)]
        >>> found = explained(Results([*low, *other]))[0]
        >>> found.cell.text, found.by.first.preset
        ('80.00 ± 0.00', 'last epoch')
    """

    cell: Cell
    readings: tuple[Cell, ...]

    @property
    def by(self) -> Cell | None:
        """The reading that comes nearest to the printed mean among those within one printed standard deviation or above.

        One change comes before two, then more repetitions, which read nothing in the paper; the settings of a model's authors differ
        from the printed ones in several ways at once, so they come last.
        """
        met = [reading for reading in self.readings if reading.met]
        return min(met, key=lambda reading: _changes(reading.first.preset), default=None)


def _changes(name: str) -> int:
    """How far from a single change a reading is.

    Example:
        >>> [_changes(name) for name in ("last epoch", "no bias, last epoch", "twice as many repetitions", "official")]
        [0, 1, 2, 3]
    """
    return {"twice as many repetitions": 2, "official": 3}.get(name, int(", " in name))


def explained(results: Results) -> list[Explained]:
    """The cells that miss, in the order of the results, with what was tried on them."""
    table2 = results.of("table2")
    official = choose(row for row in table2 if row.preset == "official")
    others = [*choose(results.of("readings")), *official]
    found: list[Explained] = []
    for cell in missing_cells(table2):
        mine = [c for c in others if (c.first.model, c.first.dataset) == (cell.first.model, cell.first.dataset)]
        found.append(Explained(cell, tuple(sorted(mine, key=lambda c: abs(c.difference)))))
    return found
