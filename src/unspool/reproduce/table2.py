"""Table 2 of the paper: accuracy of every model on every dataset, under one or several presets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from unspool import models, study
from unspool.datasets import Dataset
from unspool.errors import IncompatibleError
from unspool.models import Model
from unspool.models.preset_tables import DATASETS
from unspool.reproduce.bench import Bench, Item
from unspool.reproduce.results import Record
from unspool.reproduce.search import Candidates, Found, candidates, search
from unspool.reproduce.settings import model_named, read_settings
from unspool.study import Trial

PRESETS = ("paper", "official", "tuned")


def run_table2(bench: Bench, presets: Sequence[str] = ("paper",)) -> list[Record]:
    """Run the cells of Table 2 and keep them in ``table2.csv``.

    Args:
        bench: where they are run.
        presets: ``paper``: the settings that the paper prints. ``official``: those of each model's authors; models
            that have none are left out. ``tuned``: the search of ``tuned.toml``.

    Returns:
        The records, those of finalists too where settings were searched.
    """
    unknown = next((name for name in presets if name not in PRESETS), None)
    if unknown is not None:
        raise ValueError(f"no preset {unknown!r} for Table 2; there are {', '.join(PRESETS)}")
    how, kinds = bench.scope.asked("table2"), bench.scope.kinds("table2")
    check_sets(how["datasets"])
    kept: list[Record] = []
    with bench.timed("table2"):
        for name in how["datasets"]:
            data = bench.data(name)
            for preset in presets if data is not None else ():
                found = cells(bench, "table2", data, kinds, preset, how["seeds"])  # pyright: ignore[reportArgumentType]
                bench.keep("table2", found.rows, found.searches)
                kept += found.rows
    return kept


def check_sets(names: Sequence[str]) -> None:
    """Refuse sets for which the paper prints no settings, before the work.

    Example:
        >>> check_sets(["cora", "texas"])
        Traceback (most recent call last):
            ...
        ValueError: the paper has no settings for texas; it has them for cora, ..., arxiv; heterophily and grid take any set
    """
    strange = next((name for name in names if not models.has_preset(name)), None)
    if strange is not None:
        raise ValueError(
            f"the paper has no settings for {strange}; it has them for {', '.join(DATASETS)}; heterophily and grid take any set"
        )


def cells(bench: Bench, experiment: str, data: Dataset, kinds: Sequence[type[Model]], preset: str, seeds: int) -> Found:
    """The cells of some models on one dataset under one preset: run as printed, or searched where nothing is printed.

    Example:
        >>> import pathlib, tempfile
        >>> from unspool import datasets
        >>> from unspool.reproduce.settings import Place, Scope
        >>> with Bench(Place(pathlib.Path(tempfile.mkdtemp())), Scope(epochs=3, most=2)) as bench:
        ...     found = cells(bench, "table2", bench.data("citeseer"), [models.SGC, models.MLP], "paper", seeds=1)
        >>> found.chosen["SGC"].plan.rate, [search.settings for search in found.searches]
        (0.05, [2])
    """
    found = chosen_settings(bench, experiment, data, kinds, preset, seeds)
    printed = [trial for name, trial in found.chosen.items() if name not in {row.model for row in found.rows}]
    items = [Item(replace(trial, seed=seed), preset) for trial in printed for seed in range(seeds)]
    rows = [done.record for done in bench.train(experiment, data, items)]
    return replace(found, rows=[*rows, *found.rows])


def chosen_settings(
    bench: Bench, experiment: str, data: Dataset, kinds: Sequence[type[Model]], preset: str, seeds: int
) -> Found:
    """The settings of Table 2 by model: those of the preset, and searched ones where it says only what to search.

    Searches that were made before are in the store, and cost nothing the second time.
    """
    how = read_settings("tuned") if preset == "tuned" else read_settings("table2")["search"]
    printed = [trial for kind in kinds if (trial := as_printed(kind, data.name, preset)) is not None]
    sought = [one for kind in kinds if (one := to_be_searched(kind, data.name, preset)) is not None]
    found = search(bench, experiment, data, sought, seeds=seeds, stages=how["stages"]) if sought else Found([], [], {})
    return replace(found, chosen={**{trial.name: trial for trial in printed}, **found.chosen})


def as_printed(kind: type[Model], dataset: str, preset: str) -> Trial | None:
    """The trial of a preset that says everything, with seed 0; None where there is none or it must be searched.

    Example:
        >>> as_printed(models.UGDGNN, "cora", "official") is None, as_printed(models.GCN, "cora", "paper").plan.rate
        (True, 0.01)
    """
    if preset == "tuned":
        return None
    if not _says_all(kind, dataset, preset):
        return None
    return study.grid(kind, seed=0, preset=preset).trials(dataset)[0]


def to_be_searched(kind: type[Model], dataset: str, preset: str) -> Candidates | None:
    """What is searched for a cell; None where the preset says everything.

    Example:
        >>> len(to_be_searched(models.MLP, "cora", "paper").trials), to_be_searched(models.GCN, "cora", "paper")
        (27, None)
    """
    if preset == "tuned":
        return _tuned(kind, dataset)
    if preset != "paper":
        return None
    how = models.preset(kind, dataset, "paper")
    return candidates(kind, dataset, "paper", how.search) if how.search else None


def unpublished(model: str, dataset: str, preset: str) -> bool:
    """Whether a cell cannot be run because the model's authors publish no settings for the set.

    Example:
        >>> unpublished("UGDGNN", "cora", "official"), unpublished("GCN", "cora", "official"), unpublished("UGDGNN", "cora", "paper")
        (True, False, False)
    """
    return preset == "official" and not _says_all(model_named(model), dataset, preset)


def _tuned(kind: type[Model], dataset: str) -> Candidates:
    """Settings drawn from the wide space, and beside them those of the paper and of the model's authors."""
    how = read_settings("tuned")
    drawn = candidates(kind, dataset, "tuned", tuned_space(kind, dataset), how["fixed"])
    drawn = drawn.fewer(how["most"].get(dataset, how["most"]["others"]))
    starts = [name for name in ("paper", "official") if _says_all(kind, dataset, name)]
    known = [candidates(kind, dataset, "tuned", {}, how["fixed"], start).trials[0] for start in starts]
    unique = {trial.key(""): trial for trial in (*known, *drawn.trials)}
    return replace(drawn, trials=tuple(unique.values()), known=tuple(known) if dataset in how["through"] else ())


def _says_all(kind: type[Model], dataset: str, preset: str) -> bool:
    """Whether there is such a preset and nothing of it is left to a search."""
    try:
        return not models.preset(kind, dataset, preset).search
    except IncompatibleError:
        return False  # its authors publish nothing for this set


def tuned_space(kind: type[Model], dataset: str) -> dict[str, list[Any]]:
    """The space of ``tuned.toml`` for a model on a dataset; of its exceptions those of a set and of a model hold together.

    Example:
        >>> tuned_space(models.GCN, "cora")["depth"], tuned_space(models.UGDGNN, "physics")["hidden"]
        ([2], [64])
    """
    how = read_settings("tuned")
    more: dict[str, Any] = how["exceptions"]
    of_set, of_model = more["datasets"].get(dataset, {}), more["models"].get(kind.__name__, {})
    both = {name: [v for v in of_set[name] if v in of_model[name]] for name in of_set if name in of_model}
    return {**how["space"], **of_model, **of_set, **{name: values for name, values in both.items() if values}}
