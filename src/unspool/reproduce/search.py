"""Settings that are searched for: all of them on a few seeds, the best on all seeds, chosen on validation alone."""

from __future__ import annotations

import hashlib
import inspect
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

from torch import nn

from unspool import study
from unspool.datasets import Dataset
from unspool.models import Channels, Masks, Model
from unspool.reproduce.bench import Bench, Item
from unspool.reproduce.cells import Cell, ranked
from unspool.reproduce.results import Record, Search
from unspool.study import Trial
from unspool.study.search.words import PLAN, signature
from unspool.study.trial import spelt_out
from unspool.train import Precision, Select, Stop

_SCALED = {"normalised": True, "as they are": False}
_CHOICES: dict[str, dict[str, Any]] = {
    "select": {"loss": Select.VALIDATION_LOSS, "accuracy": Select.VALIDATION_ACCURACY, "last": Select.LAST},
    "stop": {choice.name.lower(): choice for choice in Stop},
}


@dataclass(frozen=True, eq=False)
class Candidates:
    """The settings that are tried for one cell, as trials with seed 0.

    Attributes:
        model: the class.
        preset: under which name the cell stands in the results.
        trials: one for each setting.
        space: the values of each setting, for people.
        known: of the trials those that go through to the last stage, whatever comes of the first ones.

    Example:
        >>> import unspool as us
        >>> few = candidates(us.models.SGC, "cora", "tuned", {"rate": [0.01, 0.05], "teleport": [0.1]}, {"epochs": 20})
        >>> len(few.trials), dict(few.space)
        (2, {'rate': [0.01, 0.05]})
    """

    model: type[Model]
    preset: str
    trials: tuple[Trial, ...]
    space: Mapping[str, Sequence[Any]]
    known: tuple[Trial, ...] = ()

    def fewer(self, most: int | None) -> Candidates:
        """At most so many of them, drawn by lot: the same ones each time."""
        if most is None or len(self.trials) <= most:
            return self
        drawn = sorted(self.trials, key=lot)[:most]
        left = {lot(trial) for trial in drawn}
        return replace(self, trials=tuple(drawn), known=tuple(t for t in self.known if lot(t) in left))


#: Choices of a plan in the words that the published searches were drawn by.
_LOTS = {
    Select.VALIDATION_LOSS: "lowest validation loss", Select.VALIDATION_ACCURACY: "highest validation score, then lowest loss",
    Select.LAST: "the last epoch", Stop.NEVER: "never", Stop.PATIENCE: "no improvement for `patience` epochs",
    Stop.ABOVE_MEAN: "validation loss above the mean of the last `patience` epochs, not before epoch `earliest`",
    Precision.FULL: "as the parameters", Precision.BFLOAT16: "bfloat16 activations",
}  # fmt: skip


def lot(trial: Trial) -> str:
    """The lot of a setting in draws of a few among many.

    Trap: it looks like a key and is none. Keys change with what is stored under them; which settings were drawn must not, or the
    published searches could not be run again. So nothing here ever changes, words and numbers included.

    Example:
        >>> import unspool as us
        >>> lot(Trial(us.models.GCN, plan=us.train.Plan(rate=0.01, decay=5e-4, epochs=200, patience=100)))
        'a164a4e994ee48ec41ff2fc2'
    """
    plan = trial.plan
    # One number was written out group by group when the published searches were drawn.
    groups = ("first", "linear", "convolution", "gate")
    decay = dict(plan.decay) if isinstance(plan.decay, Mapping) else dict.fromkeys(groups, plan.decay)
    words = {name: _LOTS[getattr(plan, name)] for name in ("select", "stop", "precision")}
    numbers = {name: getattr(plan, name) for name in ("rate", "epochs", "patience", "earliest")}
    told = {
        "model": trial.name, "settings": spelt_out(trial.model, trial.settings), "seed": int(trial.seed), "code": "e3b0c44298fc",
        "normalise_rows": trial.normalise_rows, "plan": {**numbers, **words, "decay": decay, "optimiser": plan.describe()["optimiser"]},
    }  # fmt: skip
    return hashlib.sha256(json.dumps([1, "draw", told], sort_keys=True).encode()).hexdigest()[:24]


def candidates(
    model: type[Model], dataset: str, preset: str, space: Mapping[str, Any], fixed: Mapping[str, Any] | None = None,
    start: str = "paper",
) -> Candidates:  # fmt: skip
    """Every combination of a space, as far as the model knows its words.

    Args:
        model: the class.
        dataset: its name; ``start`` is the preset that everything else comes from.
        preset: under which name results are kept.
        space: lists of values by name; choices of the model as words (``channels = ["classes", "hidden"]``); ``rows`` says how
            the features are scaled.
        fixed: what is the same in all settings.
    """
    known = {name: list(values) for name, values in space.items() if name in PLAN or name in signature(model).names}
    rows = [_SCALED[word] for word in space.get("rows", ())]
    words = {name: [meant(model, name, value) for value in values] for name, values in known.items()}
    same = {name: meant(model, name, value) for name, value in ({} if fixed is None else fixed).items()}
    trials = study.grid(model, seed=0, preset=start, **{**same, **words}).trials(dataset)
    trials = [trial for trial in trials if not _left_out(trial)]
    if rows:
        trials = [replace(trial, normalise_rows=scaled) for trial in trials for scaled in rows]
        known["rows"] = list(space["rows"])
    return Candidates(model, preset, tuple(trials), known)


def _left_out(trial: Trial) -> bool:
    """Settings that are not tried: masks of every hop that drop nothing, and more than 64 hidden channels that travel.

    The former are the same network as with one mask, the latter have K + 1 matrices of that width.
    """
    unsaid = {name: one.default for name, one in inspect.signature(trial.model).parameters.items()}
    how = {**unsaid, **trial.settings}
    idle = how.get("propagation_dropout") == 0 and how.get("masks") is Masks.EACH_HOP
    return idle or (how.get("channels") is Channels.HIDDEN and how["hidden"] > 64)


def paper_candidates(model: type[Model], dataset: str) -> Candidates:
    """The grid that the paper searched.

    Example:
        >>> import unspool as us
        >>> len(paper_candidates(us.models.UGDGNN, "cora").trials)
        81
    """
    space = study.paper_grid(model, seed=0)
    words = [dict(words) for part in space.parts for words in part.settings]
    told = {
        name: list(dict.fromkeys(one[name] for one in words)) for name in words[0] if name not in ("preset", "stop")
    }
    varied = {name: values for name, values in told.items() if len(values) > 1}
    return Candidates(model, "grid", tuple(space.trials(dataset)), varied)


@dataclass(frozen=True, eq=False)
class Found:
    """What searches on one dataset found: the records of the finalists, the searches, and the chosen trials by model."""

    rows: list[Record]
    searches: list[Search]
    chosen: dict[str, Trial]


def search(
    bench: Bench, experiment: str, data: Dataset, sought: Sequence[Candidates], *, seeds: int, stages: Sequence[Sequence[int]]
) -> Found:  # fmt: skip
    """Search for the settings of several cells on one dataset at once.

    A stage is a number of seeds and how many of the settings go on to the next one, the best by mean validation score over those
    seeds, and beside them those that are known. After the last stage all seeds are run, and the best by mean validation score over all of them is chosen. Rows of the
    settings that were in the final are kept.
    """
    few = [one.fewer(bench.scope.settings) for one in sought]
    bench.searched = True
    items = [_item(trial, one.preset) for one in few for trial in one.trials]
    trials: dict[tuple[Any, ...], Trial] = {}
    rows: list[Record] = []
    seen: set[tuple[Any, ...]] = set()
    for many, going_on in [*((min(many, seeds), best) for many, best in stages), (seeds, None)]:
        tried = bench.train(experiment, data, [_seeded(item, seed) for item in items for seed in range(many)])
        trials |= {done.record.setting: done.item.trial for done in tried}
        rows = [done.record for done in tried]
        seen |= {(row.model, row.preset, row.setting, row.seed) for row in rows}
        if going_on is not None:
            items = []
            for one in few:
                known = {bench.shortened(replace(trial, seed=0)).key("") for trial in one.known}
                own = [_item(trials[cell.first.setting], one.preset) for cell in _finalists(rows, one)]
                items += [i for place, i in enumerate(own) if place < going_on or i.trial.key("") in known]
    found = Found(rows, [], {})
    for one in few:
        final = _finalists(rows, one)
        if final:  # else every trial failed, and the bench says why
            found.chosen[one.model.__name__] = trials[final[0].first.setting]
            own = [trial for trial in seen if trial[:2] == (one.model.__name__, one.preset)]
            found.searches.append(_search(final[0], one, len({setting for _, _, setting, _ in own}), len(own)))
    return found


def _finalists(rows: Sequence[Record], one: Candidates) -> list[Cell]:
    return ranked([row for row in rows if row.model == one.model.__name__ and row.preset == one.preset])


def _item(trial: Trial, preset: str) -> Item:
    return Item(replace(trial, seed=0), preset)


def _seeded(item: Item, seed: int) -> Item:
    return replace(item, trial=replace(item.trial, seed=seed))


def _search(cell: Cell, one: Candidates, settings: int, trials: int) -> Search:
    row = cell.first
    chosen = chosen_values(row, one.space)
    space = {name: list(values) for name, values in one.space.items()}
    return Search(
        row.experiment, row.dataset, row.variant, row.model, row.preset, settings, trials, space, chosen,
        cell.valid.mean, len(cell.rows),
    )  # fmt: skip


def chosen_values(row: Record, space: Mapping[str, Any]) -> dict[str, Any]:
    """The values of a space in one setting, by name.

    Example:
        >>> from unspool.reproduce.results import example_record
        >>> chosen_values(example_record(), {"rate": [0.01, 0.05], "hidden": [64]})
        {'rate': 0.01, 'hidden': 64}
    """
    plain = {"rate": row.rate, "decay": row.decay, "dropout": row.dropout, "depth": row.depth}
    held = {**row.settings, **{name: value for name, value in plain.items() if value is not None}}
    return {name: held[name] for name in space if name in held}


def meant(model: type[nn.Module], name: str, value: Any) -> Any:
    """A word of a data file as the choice that it means.

    Example:
        >>> import unspool as us
        >>> meant(us.models.UGDGNN, "channels", "hidden").name, meant(us.models.UGDGNN, "depth", 5)
        ('HIDDEN', 5)
    """
    if name in _CHOICES and isinstance(value, str):
        return _CHOICES[name][value.lower()]
    parameter = inspect.signature(model).parameters.get(name)
    default = None if parameter is None else parameter.default
    return type(default)[value.upper()] if isinstance(default, Enum) and isinstance(value, str) else value
