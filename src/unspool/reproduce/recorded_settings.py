"""Settings that an earlier run has found: what ``searches.csv`` records is not searched again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from unspool.datasets import Dataset
from unspool.models import Model
from unspool.reproduce.records import Search, plain_settings
from unspool.reproduce.results import read_searches
from unspool.reproduce.runner import ExperimentRunner
from unspool.reproduce.search import Candidates, SearchOutcome, chosen_values
from unspool.reproduce.table2 import as_printed, chosen_settings, to_be_searched
from unspool.train import Trial


def table2_settings(
    runner: ExperimentRunner,
    experiment: str,
    data: Dataset,
    kinds: Sequence[type[Model]],
    seeds: int,
    known_as: str | None = None,
) -> SearchOutcome:
    """The settings of Table 2 by model, for experiments that change something else: printed, recorded, or searched now.

    A search is taken from ``searches.csv`` if it tried the same settings on at least as many seeds, whichever experiment made it: Table 2
    and `robust` search the same space. Its row is given back under this experiment.

    Args:
        runner: where the results are.
        experiment: whose searches these are.
        data: what is learnt from.
        kinds: the models.
        seeds: of a search that has to be made.
        known_as: the dataset whose settings are meant, where it is another one, as for attacked graphs; it must be recorded then.
    """
    name = data.name if known_as is None else known_as
    folder = runner.workspace.results
    past = [one for one in read_searches(folder) if (one.dataset, one.preset) == (name, "paper")]
    found = SearchOutcome([], [], {})
    left: list[type[Model]] = []
    for kind in kinds:
        printed, sought = as_printed(kind, name, "paper"), to_be_searched(kind, name, "paper")
        recorded = None if sought is None else _recorded(runner, sought, past, seeds)
        if printed is not None:
            found.chosen[kind.__name__] = printed
        elif recorded is not None:
            found.chosen[kind.__name__] = recorded[0]
            found.searches.append(replace(recorded[1], experiment=experiment))
        else:
            left.append(kind)
    if left and known_as is not None:
        raise FileNotFoundError(
            f"{folder} records no settings of {left[0].__name__} on {name}; "
            f"run `unspool reproduce robust --datasets {name}` into the same folder first"
        )
    more = SearchOutcome([], [], {})
    if left:
        more = chosen_settings(runner, experiment, data, left, "paper", seeds)
    every = {**found.chosen, **more.chosen}
    chosen = {kind.__name__: every[kind.__name__] for kind in kinds if kind.__name__ in every}
    return SearchOutcome(more.records, [*found.searches, *more.searches], chosen)


def _recorded(
    runner: ExperimentRunner, sought: Candidates, past: Sequence[Search], seeds: int
) -> tuple[Trial, Search] | None:
    few = sought.fewer(runner.options.settings_per_search)
    for one in past:
        if one.model == few.model.__name__ and one.settings == len(few.trials) and one.seeds >= seeds:
            for trial in few.trials:
                if chosen_values(plain_settings(runner.shortened(trial)), few.space) == dict(one.chosen):
                    return trial, one
    return None
