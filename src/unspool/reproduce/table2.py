"""Table 2 of the paper: accuracy of every model on every dataset, under one or several presets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from unspool.datasets import Dataset
from unspool.errors import IncompatibleError, InputError
from unspool.models import Model
from unspool.reproduce.experiment_files import read_experiment
from unspool.reproduce.options import model_named
from unspool.reproduce.presets import OFFICIAL, PAPER, PRESETS, knows
from unspool.reproduce.records import Record
from unspool.reproduce.runner import ExperimentRunner
from unspool.reproduce.search import Candidates, SearchOutcome, candidates, search
from unspool.theory.printed_tables import DATASETS
from unspool.train import Trial

#: The presets of the table, in the order in which they are shown.
TABLE2_PRESETS = ("paper", "official", "tuned")


def run_table2(runner: ExperimentRunner, presets: Sequence[str] = ("paper",)) -> list[Record]:
    """Run the entries of Table 2 and keep them in ``table2.csv``.

    Args:
        runner: where they are run.
        presets: ``paper``: the settings that the paper prints. ``official``: those of each model's authors; models
            that have none are left out. ``tuned``: the search of ``tuned.toml``.

    Returns:
        The records, those of finalists too where settings were searched.
    """
    unknown = next((name for name in presets if name not in TABLE2_PRESETS), None)
    if unknown is not None:
        raise InputError("preset", unknown, f"one of {', '.join(TABLE2_PRESETS)}")
    how, kinds = runner.options.experiment("table2"), runner.options.model_classes("table2")
    check_datasets(how["datasets"])
    kept: list[Record] = []
    with runner.timed("table2"):
        for data in runner.datasets(how["datasets"]):
            for preset in presets:
                found = run_entries(runner, "table2", data, kinds, preset, how["seeds"])
                runner.keep("table2", found.records, found.searches)
                kept += found.records
    return kept


def check_datasets(names: Sequence[str]) -> None:
    """Refuse sets for which the paper prints no settings, before the work.

    Example:
        >>> check_datasets(["cora", "texas"])
        Traceback (most recent call last):
            ...
        unspool.errors.InputError: datasets='texas': expected sets that the paper has settings for: cora, ...; heterophily and grid take any
    """
    unknown = next((name for name in names if not knows(name)), None)
    if unknown is not None:
        wanted = f"sets that the paper has settings for: {', '.join(DATASETS)}"
        raise InputError("datasets", unknown, wanted, "heterophily and grid take any")


def run_entries(
    runner: ExperimentRunner, experiment: str, data: Dataset, kinds: Sequence[type[Model]], preset: str, seeds: int
) -> SearchOutcome:
    """The entries of some models on one dataset under one preset: run as printed, or searched where nothing is printed.

    Example:
        >>> import pathlib, tempfile, unspool as us
        >>> from unspool.reproduce.options import RunOptions, Workspace
        >>> options = RunOptions(epochs=3, max_settings=2)
        >>> with ExperimentRunner(Workspace(pathlib.Path(tempfile.mkdtemp())), options) as runner:
        ...     data = runner.dataset("citeseer")
        ...     found = run_entries(runner, "table2", data, [us.models.SGC, us.models.MLP], "paper", seeds=1)
        >>> found.chosen["SGC"].config.lr, [search.settings for search in found.searches]
        (0.05, [2])
    """
    found = chosen_settings(runner, experiment, data, kinds, preset, seeds)
    searched = {record.model for record in found.records}
    printed = [trial for name, trial in found.chosen.items() if name not in searched]
    trained = runner.train(experiment, data, [trial.with_seed(s) for trial in printed for s in range(seeds)])
    return replace(found, records=[*trained.values(), *found.records])


def chosen_settings(
    runner: ExperimentRunner, experiment: str, data: Dataset, kinds: Sequence[type[Model]], preset: str, seeds: int
) -> SearchOutcome:
    """The settings of Table 2 by model: those of the preset, and searched ones where it says only what to search.

    Searches that were made before are in the store, and cost nothing the second time.
    """
    how = read_experiment("tuned") if preset == "tuned" else read_experiment("table2")["search"]
    printed = [trial for kind in kinds if (trial := as_printed(kind, data.name, preset)) is not None]
    sought = [one for kind in kinds if (one := to_be_searched(kind, data.name, preset)) is not None]
    found = SearchOutcome([], [], {})
    if sought:
        found = search(runner, experiment, data, sought, seeds=seeds, stages=how["stages"])
    return replace(found, chosen={**{trial.name: trial for trial in printed}, **found.chosen})


def as_printed(kind: type[Model], dataset: str, preset: str) -> Trial | None:
    """The trial of a preset that says everything, with seed 0; None where there is none or it must be searched.

    Example:
        >>> import unspool as us
        >>> as_printed(us.models.UGDGNN, "cora", "official") is None, as_printed(us.models.GCN, "cora", "paper").config.lr
        (True, 0.01)
    """
    if preset == "tuned" or not _says_all(kind, dataset, preset):
        return None
    return PRESETS[preset].trial(kind, dataset)


def to_be_searched(kind: type[Model], dataset: str, preset: str) -> Candidates | None:
    """What is searched for an entry; None where the preset says everything.

    Example:
        >>> import unspool as us
        >>> len(to_be_searched(us.models.MLP, "cora", "paper").trials), to_be_searched(us.models.GCN, "cora", "paper")
        (27, None)
    """
    if preset == "tuned":
        return _tuned(kind, dataset)
    space = PAPER.search(kind, dataset) if preset == "paper" else {}
    return candidates(kind, dataset, "paper", space) if space else None


def unpublished(model: str, dataset: str, preset: str) -> bool:
    """Whether an entry cannot be run because the model's authors publish no settings for the set.

    Example:
        >>> unpublished("UGDGNN", "cora", "official"), unpublished("GCN", "cora", "official"), unpublished("UGDGNN", "cora", "paper")
        (True, False, False)
    """
    return preset == "official" and not _says_all(model_named(model), dataset, preset)


def _tuned(kind: type[Model], dataset: str) -> Candidates:
    """Settings drawn from the wide space, and with them those of the paper and of the model's authors."""
    how = read_experiment("tuned")
    drawn = candidates(kind, dataset, "tuned", tuned_space(kind, dataset), how["fixed"])
    drawn = drawn.fewer(how["max_settings"].get(dataset, how["max_settings"]["others"]))
    starts = [name for name in ("paper", "official") if _says_all(kind, dataset, name)]
    known = [candidates(kind, dataset, "tuned", {}, how["fixed"], start).trials[0] for start in starts]
    unique = {trial.key(""): trial for trial in (*known, *drawn.trials)}
    return replace(drawn, trials=tuple(unique.values()), known=tuple(known) if dataset in how["through"] else ())


def _says_all(kind: type[Model], dataset: str, preset: str) -> bool:
    """Whether there is such a preset and nothing of it is left to a search."""
    if preset == "paper":
        return not PAPER.search(kind, dataset)
    try:
        OFFICIAL.trial(kind, dataset)
    except IncompatibleError:
        return False  # its authors publish nothing for this set
    return True


def tuned_space(kind: type[Model], dataset: str) -> dict[str, list[Any]]:
    """The space of ``tuned.toml`` for a model on a dataset; of its exceptions those of a set and of a model hold together.

    Example:
        >>> import unspool as us
        >>> tuned_space(us.models.GCN, "cora")["depth"], tuned_space(us.models.UGDGNN, "physics")["hidden"]
        ([2], [64])
    """
    how = read_experiment("tuned")
    more: dict[str, Any] = how["exceptions"]
    of_set, of_model = more["datasets"].get(dataset, {}), more["models"].get(kind.__name__, {})
    both = {name: [v for v in of_set[name] if v in of_model[name]] for name in of_set if name in of_model}
    return {**how["space"], **of_model, **of_set, **{name: values for name, values in both.items() if values}}
