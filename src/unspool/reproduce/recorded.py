"""Settings that an earlier run has found: what ``searches.csv`` records is not searched again."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

from unspool.datasets import Dataset
from unspool.models import Model
from unspool.reproduce.alone import as_record
from unspool.reproduce.bench import Bench
from unspool.reproduce.results import Search, read_searches
from unspool.reproduce.search import Candidates, Found, chosen_values
from unspool.reproduce.table2 import as_printed, chosen_settings, to_be_searched
from unspool.study import Trial


def settled(
    bench: Bench, experiment: str, data: Dataset, kinds: Sequence[type[Model]], seeds: int, known_as: str | None = None
) -> Found:
    """The settings of Table 2 by model, for experiments that change something else: printed, recorded, or searched now.

    A search is taken from ``searches.csv`` if it tried the same settings on at least as many seeds, whichever experiment made it: Table 2
    and `robust` search the same space. Its row is given back under this experiment.

    Args:
        bench: where the results are.
        experiment: whose searches these are.
        data: what is learnt from.
        kinds: the models.
        seeds: of a search that has to be made.
        known_as: the data set whose settings are meant, where it is another one, as for attacked graphs; it must be recorded then.
    """
    name = data.name if known_as is None else known_as
    past = [
        s for s in read_searches(bench.place.results) if s.dataset == name and not s.variant and s.preset == "paper"
    ]
    found = Found([], [], {})
    left: list[type[Model]] = []
    for kind in kinds:
        printed = as_printed(kind, name, "paper")
        sought = to_be_searched(kind, name, "paper")
        told = None if sought is None else _recorded(bench, sought, data, past, seeds)
        if printed is not None:
            found.chosen[kind.__name__] = printed
        elif told is not None:
            found.chosen[kind.__name__] = told[0]
            found.searches.append(replace(told[1], experiment=experiment))
        else:
            left.append(kind)
    if left and known_as is not None:
        raise FileNotFoundError(
            f"{bench.place.results} records no settings of {left[0].__name__} on {name}; "
            f"run `unspool reproduce robust --datasets {name}` into the same folder first"
        )
    more = chosen_settings(bench, experiment, data, left, "paper", seeds) if left else Found([], [], {})
    names = [kind.__name__ for kind in kinds]
    every = {**found.chosen, **more.chosen}
    return Found(more.rows, [*found.searches, *more.searches], {n: every[n] for n in names if n in every})


def _recorded(
    bench: Bench, sought: Candidates, data: Dataset, past: Sequence[Search], seeds: int
) -> tuple[Trial, Search] | None:
    few = sought.fewer(bench.scope.settings)
    for one in past:
        if one.model != few.model.__name__ or one.settings != len(few.trials) or one.seeds < seeds:
            continue
        for trial in few.trials:
            told = chosen_values(as_record("table2", bench.shortened(trial), data, "", None), few.space)
            if _plain(told) == _plain(dict(one.chosen)):
                return trial, one
    return None


def _plain(values: dict[str, object]) -> str:
    return json.dumps(values, sort_keys=True)
