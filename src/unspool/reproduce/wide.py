"""Searches for their own sake: the paper's full grid, and graphs whose neighbours differ."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from unspool.datasets import Dataset
from unspool.models import Model
from unspool.reproduce.bench import Bench
from unspool.reproduce.results import Record
from unspool.reproduce.search import Candidates, Found, candidates, paper_candidates, search
from unspool.reproduce.settings import read_settings


def run_grid(bench: Bench) -> list[Record]:
    """Run the paper's grid for each model and dataset; the best settings go into ``grid.csv``, all trials into the study."""
    how = bench.scope.asked("grid")
    return _each(
        bench,
        "grid",
        {**how, "stages": [[how["seeds"], how["finalists"]]]},
        lambda kind, data: paper_candidates(kind, data.name),
    )


def run_heterophily(bench: Bench) -> list[Record]:
    """Run a small grid on heterophilic graphs, on their ten recorded splits; the best settings go into ``heterophily.csv``."""
    return _each(bench, "heterophily", bench.scope.asked("heterophily"), _heterophilous)


def _heterophilous(kind: type[Model], data: Dataset) -> Candidates:
    how = read_settings("heterophily")
    space = {**how["space"], **how["exceptions"]["models"].get(kind.__name__, {})}
    return candidates(kind, data.name, "default", space, how["fixed"], start="default")


def heterophily_search(bench: Bench, data: Dataset, kinds: Sequence[type[Model]]) -> Found:
    """The search on one heterophilous graph; one that was made before is in the store, and costs nothing."""
    stages, seeds = bench.scope.asked("heterophily")["stages"], bench.scope.usual_seeds("heterophily")
    sought = [_heterophilous(kind, data) for kind in kinds]
    return search(bench, "heterophily", data, sought, seeds=seeds, stages=stages)


def _each(
    bench: Bench, experiment: str, how: dict[str, Any], sought: Callable[[type[Model], Dataset], Candidates]
) -> list[Record]:
    kept: list[Record] = []
    kinds: Sequence[type[Model]] = bench.scope.kinds(experiment)
    with bench.timed(experiment):
        for name in how["datasets"]:
            data = bench.data(name)
            if data is None:
                continue
            found = search(
                bench, experiment, data, [sought(kind, data) for kind in kinds],
                seeds=how["seeds"], stages=how["stages"],
            )  # fmt: skip
            bench.keep(experiment, found.rows, found.searches)
            kept += found.rows
    return kept
