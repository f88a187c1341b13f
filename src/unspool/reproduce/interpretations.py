"""What the paper leaves open, one interpretation at a time, on the entries of Table 2 that miss the printed number."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from unspool.datasets import Dataset, splits
from unspool.models import Model
from unspool.reproduce.entries import Entry, choose
from unspool.reproduce.experiment_files import read_experiment
from unspool.reproduce.records import Record, Results
from unspool.reproduce.results import read_records
from unspool.reproduce.runner import ExperimentRunner
from unspool.reproduce.search import from_plain
from unspool.reproduce.table2 import as_printed, check_datasets
from unspool.train import Stop, Trial


@dataclass(frozen=True)
class Interpretation:
    """One meaning of what the paper does not say; ``interpretations.toml`` explains the fields.

    Example:
        >>> import unspool as us
        >>> other = Interpretation("valid_score", "highest validation accuracy", monitor="valid_score")
        >>> other.of(as_printed(us.models.GCN, "cora", "paper")).config.monitor.name, other.changes
        ('VALID_SCORE', 1)
    """

    name: str
    text: str
    monitor: str | None = None
    normalise_rows: bool | None = None
    split: str | None = None
    weight_decay: Mapping[str, float] | None = None
    decay_first_layer_only: bool = False
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])
    patience: int | None = None
    seed_factor: int = 1
    models: Sequence[str] = ()
    datasets: Sequence[str] = ()

    @property
    def changes(self) -> int:
        """How many things it changes; more seeds change nothing that the paper says."""
        said = (self.monitor, self.normalise_rows, self.split, self.weight_decay, self.patience)
        return sum(one is not None for one in said) + self.decay_first_layer_only + len(self.settings)

    def concerns(self, model: type[Model], dataset: str) -> bool:
        """Whether an entry can be read so."""
        pairs = ((self.models, model.__name__), (self.datasets, dataset))
        listed = all(not names or name in names for names, name in pairs)
        return listed and all(name in model.schema for name in self.settings)

    def of(self, trial: Trial) -> Trial:
        """A trial of the preset ``paper``, interpreted so."""
        config = trial.config
        if self.monitor is not None:
            config = config.replace(monitor=from_plain(trial.model, "monitor", self.monitor))
        if self.patience is not None:
            config = config.replace(stop=Stop.PATIENCE, patience=self.patience)
        if self.decay_first_layer_only:
            config = config.replace(weight_decay={"first": config.decay_of("first")})
        if self.weight_decay is not None:
            config = config.replace(weight_decay=self.weight_decay)
        changed = {name: from_plain(trial.model, name, value) for name, value in self.settings.items()}
        rows = trial.normalise_rows if self.normalise_rows is None else self.normalise_rows
        return replace(trial, config=config, settings={**trial.settings, **changed}, normalise_rows=rows)

    def differs(self, trial: Trial) -> bool:
        """Whether it is another trial at all: a decay of nothing is nothing on the first layer too.

        Example:
            >>> import unspool as us
            >>> first = Interpretation("first", "decay on the first layer alone", decay_first_layer_only=True)
            >>> [first.differs(as_printed(us.models.GCN, name, "paper")) for name in ("cora", "photo")]
            [True, False]
        """
        other = self.of(trial)
        if _no_decay(other) and _no_decay(trial):
            other = replace(other, config=other.config.replace(weight_decay=trial.config.weight_decay))
        return self.split is not None or self.seed_factor > 1 or other.key("") != trial.key("")

    def of_data(self, data: Dataset) -> Dataset:
        """The dataset, with another split where the interpretation has one."""
        return data if self.split is None else data.with_split(splits.by_name(data, self.split))


@cache
def all_interpretations() -> tuple[Interpretation, ...]:
    """Every interpretation, in the order of the file.

    Example:
        >>> all_interpretations()[0].text
        'highest validation accuracy'
    """
    return tuple(Interpretation(**one) for one in read_experiment("interpretations")["interpretation"])


def interpretation_named(name: str) -> Interpretation:
    """One of them by its name; one that this version does not know is called as its name is."""
    return next((one for one in all_interpretations() if one.name == name), Interpretation(name, name))


def run_interpretations(runner: ExperimentRunner) -> list[Record]:
    """Run the interpretations of entries that miss, and keep them in ``interpretations.csv``.

    Which entries miss is read from ``table2.csv``, so Table 2 is run first.
    """
    how = runner.options.experiment("interpretations")
    check_datasets(how["datasets"])
    missed = missing_entries(printed_records(runner.workspace.results))
    kinds = {kind.__name__: kind for kind in runner.options.model_classes("interpretations")}
    some = all_interpretations()[: runner.options.settings_per_search]
    kept: list[Record] = []
    with runner.timed("interpretations"):
        for name in how["datasets"]:
            here = [entry.first.model for entry in missed if entry.first.dataset == name]
            wanted = [kinds[model] for model in here if model in kinds]
            if not wanted:
                runner.say(f"interpretations on {name}: none of these models has an entry of Table 2 here that misses")
            data = runner.dataset(name) if wanted else None
            if data is not None:
                records = _on(runner, data, wanted, some, how["seeds"])
                runner.keep("interpretations", records)
                kept += records
    return kept


def printed_records(folder: Path) -> list[Record]:
    """The trials of Table 2 under the preset ``paper``; refuses where there are none.

    Example:
        >>> printed_records(Path("nowhere"))
        Traceback (most recent call last):
            ...
        FileNotFoundError: no entries of preset paper in nowhere; run `unspool reproduce table2 --preset paper` first
    """
    records = [one for one in read_records(folder, "table2") if one.preset == "paper"]
    if not records:
        raise FileNotFoundError(
            f"no entries of preset paper in {folder}; run `unspool reproduce table2 --preset paper` first"
        )
    return records


def missing_entries(records: Sequence[Record]) -> list[Entry]:
    """The entries of the preset ``paper`` that miss the printed mean by more than one printed standard deviation.

    Example:
        >>> from unspool.reproduce.records import example_record
        >>> [entry.text for entry in missing_entries([example_record(seed, test_score=0.8) for seed in range(3)])]
        ['80.00 ± 0.00']
    """
    return [entry for entry in choose(one for one in records if one.preset == "paper") if entry.met is False]


def _on(
    runner: ExperimentRunner, data: Dataset, kinds: Sequence[type[Model]], some: Sequence[Interpretation], seeds: int
) -> list[Record]:
    """All interpretations of some entries on one dataset; those with the same split together."""
    records: list[Record] = []
    for split in dict.fromkeys(one.split for one in some):
        trials: list[Trial] = []
        for kind in kinds:
            printed = as_printed(kind, data.name, "paper")
            mine = [one for one in some if one.split == split and one.concerns(kind, data.name)]
            for one in mine:
                if printed is not None and affordable(one, kind.__name__, data.name) and one.differs(printed):
                    trial = replace(one.of(printed), preset=one.name)
                    trials += [trial.with_seed(seed) for seed in range(seeds * one.seed_factor)]
        if trials:
            changed = next(one for one in some if one.split == split).of_data(data)
            trained = runner.train("interpretations", changed, trials).values()
            records += [replace(record, preset="paper", interpretation=record.preset) for record in trained]
    return records


def affordable(one: Interpretation, model: str, dataset: str) -> bool:
    """Whether an interpretation is run on an entry whose trials are slow; ``interpretations.toml`` says which are.

    Example:
        >>> import unspool as us
        >>> some = [one for one in all_interpretations() if one.concerns(us.models.GCNII, "physics")]
        >>> len(some), len([one for one in some if affordable(one, "GCNII", "physics")])
        (10, 3)
    """
    listed = read_experiment("interpretations")["slow"]
    slow = [entry for entry in listed if entry["model"] == model and dataset in entry["datasets"]]
    return all(one.name in entry["interpretations"] for entry in slow)


def _no_decay(trial: Trial) -> bool:
    decay = trial.config.weight_decay
    return not any(decay.values()) if isinstance(decay, Mapping) else not decay


@dataclass(frozen=True)
class Explained:
    """An entry that misses under the preset ``paper``, and what was tried on it, the nearest to the print first.

    Attributes:
        entry: as printed.
        tried: entries of ``interpretations.csv``, and that of the preset ``official`` where there is one.

    Example:
        >>> from unspool.reproduce.records import Results, example_record
        >>> low = [example_record(seed, test_score=0.8) for seed in range(3)]
        >>> other = [example_record(seed, experiment="interpretations", interpretation="last_epoch") for seed in range(3)]
        >>> found = explain_misses(Results([*low, *other]))[0]
        >>> found.entry.text, found.by.first.interpretation
        ('80.00 ± 0.00', 'last_epoch')
    """

    entry: Entry
    tried: tuple[Entry, ...]

    @property
    def by(self) -> Entry | None:
        """Of those within one printed standard deviation or above the one that comes nearest to the printed mean.

        One change comes before two, then more repetitions, which change nothing that the paper says; the settings of a model's authors
        differ from the printed ones in several ways at once, so they come last.
        """
        return min((one for one in self.tried if one.met), key=_distance, default=None)

    @property
    def interpreted(self) -> tuple[Entry, ...]:
        """What was tried but for the settings of the model's authors."""
        return tuple(one for one in self.tried if one.first.interpretation)


def _distance(entry: Entry) -> tuple[int, int]:
    """How far from a single change an entry is."""
    if not entry.first.interpretation:
        return (2, 0)
    one = interpretation_named(entry.first.interpretation)
    return (int(one.seed_factor > 1), one.changes)


def explain_misses(results: Results) -> list[Explained]:
    """The entries that miss, in the order of the results, with what was tried on them."""
    table2 = results.of("table2")
    official = choose(one for one in table2 if one.preset == "official")
    others = [*choose(results.of("interpretations")), *official]
    found: list[Explained] = []
    for entry in missing_entries(table2):
        about = (entry.first.model, entry.first.dataset)
        mine = [one for one in others if (one.first.model, one.first.dataset) == about]
        found.append(Explained(entry, tuple(sorted(mine, key=_gap))))
    return found


def _gap(entry: Entry) -> float:
    return float("inf") if entry.difference is None else abs(entry.difference)
