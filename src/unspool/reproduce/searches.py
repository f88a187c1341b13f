"""Searches for their own sake: the paper's full grid, and graphs whose neighbours differ."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from unspool.datasets import Dataset
from unspool.models import Model
from unspool.reproduce.experiment_files import read_experiment
from unspool.reproduce.records import Record
from unspool.reproduce.runner import ExperimentRunner
from unspool.reproduce.search import Candidates, SearchOutcome, candidates, paper_candidates, search


def run_grid(runner: ExperimentRunner) -> list[Record]:
    """Run the paper's grid for each model and dataset; the best settings go into ``grid.csv``, all trials into the study."""
    how = runner.options.experiment("grid")
    stages = [[how["seeds"], how["finalists"]]]
    return _each(runner, "grid", {**how, "stages": stages}, lambda kind, data: paper_candidates(kind, data.name))


def run_heterophily(runner: ExperimentRunner) -> list[Record]:
    """Run a small grid on heterophilic graphs, on their ten recorded splits; the best settings go into ``heterophily.csv``."""
    return _each(runner, "heterophily", runner.options.experiment("heterophily"), heterophily_candidates)


def heterophily_candidates(kind: type[Model], data: Dataset) -> Candidates:
    """The small grid of ``heterophily.toml`` for a model."""
    how = read_experiment("heterophily")
    space = {**how["space"], **how["exceptions"]["models"].get(kind.__name__, {})}
    return candidates(kind, data.name, "default", space, how["fixed"], start="default")


def heterophily_search(runner: ExperimentRunner, data: Dataset, kinds: Sequence[type[Model]]) -> SearchOutcome:
    """The search on one heterophilous graph; one that was made before is in the store, and costs nothing."""
    options = runner.options
    stages, seeds = options.experiment("heterophily")["stages"], options.usual_seeds("heterophily")
    sought = [heterophily_candidates(kind, data) for kind in kinds]
    return search(runner, "heterophily", data, sought, seeds=seeds, stages=stages)


def _each(
    runner: ExperimentRunner,
    experiment: str,
    how: dict[str, Any],
    sought: Callable[[type[Model], Dataset], Candidates],
) -> list[Record]:
    kept: list[Record] = []
    kinds = runner.options.model_classes(experiment)
    with runner.timed(experiment):
        for data in runner.datasets(how["datasets"]):
            wanted = [sought(kind, data) for kind in kinds]
            found = search(runner, experiment, data, wanted, seeds=how["seeds"], stages=how["stages"])
            runner.keep(experiment, found.records, found.searches)
            kept += found.records
    return kept
