"""Settings that are searched for: all of them on a few seeds, the best on all seeds, chosen on validation alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from torch import nn

from unspool import study
from unspool.datasets import Dataset
from unspool.models import Channels, Masks, Model
from unspool.reproduce.draws import draw_hash
from unspool.reproduce.entries import Entry, ranked
from unspool.reproduce.presets import PRESETS
from unspool.reproduce.records import Record, Search
from unspool.reproduce.runner import ExperimentRunner
from unspool.reproduce.search_grid import paper_grid
from unspool.settings import schema_of
from unspool.study.search.resolve import takes
from unspool.train import TrainConfig, Trial


@dataclass(frozen=True, eq=False)
class Candidates:
    """The settings that are tried for one entry, as trials with seed 0.

    Attributes:
        model: the class.
        preset: under which name the entry stands in the results.
        trials: one for each setting.
        space: the values of each setting, for people.
        known: of the trials those that go through to the last stage, whatever comes of the first ones.

    Example:
        >>> import unspool as us
        >>> few = candidates(us.models.SGC, "cora", "tuned", {"lr": [0.01, 0.05], "teleport": [0.1]}, {"epochs": 20})
        >>> len(few.trials), dict(few.space)
        (2, {'lr': [0.01, 0.05]})
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
        drawn = sorted(self.trials, key=draw_hash)[:most]
        left = {draw_hash(trial) for trial in drawn}
        return replace(self, trials=tuple(drawn), known=tuple(t for t in self.known if draw_hash(t) in left))


def candidates(
    model: type[Model],
    dataset: str,
    preset: str,
    space: Mapping[str, Any],
    fixed: Mapping[str, Any] | None = None,
    start: str = "paper",
) -> Candidates:
    """Every combination of a space, as far as the model knows its words.

    Args:
        model: the class.
        dataset: its name; ``start`` is the preset that everything else comes from.
        preset: under which name results are kept.
        space: lists of plain values by name, enums by their names (``channels = ["classes", "hidden"]``); ``normalise_rows`` says whether
            rows of the features are scaled.
        fixed: what is the same in all settings.
    """
    known = {name: list(values) for name, values in space.items() if takes(model, name)}
    words = {name: [from_plain(model, name, value) for value in values] for name, values in known.items()}
    same = {name: from_plain(model, name, value) for name, value in ({} if fixed is None else fixed).items()}
    found = study.grid(model, seed=0, preset=PRESETS[start], **{**same, **words}).trials(dataset)
    trials = [replace(trial, preset=preset) for trial in found if not _left_out(trial)]
    rows = space.get("normalise_rows", ())
    if rows:
        trials = [replace(trial, normalise_rows=scaled) for trial in trials for scaled in rows]
        known["normalise_rows"] = list(rows)
    return Candidates(model, preset, tuple(trials), known)


def _left_out(trial: Trial) -> bool:
    """Settings that are not tried: masks of every hop that drop nothing, and more than 64 hidden channels that travel.

    The former are the same network as with one mask, the latter have K + 1 matrices of that width.
    """
    every = trial.schema.complete(trial.settings)
    idle = every.get("propagation_dropout") == 0 and every.get("masks") is Masks.EACH_HOP
    return idle or (every.get("channels") is Channels.HIDDEN and every["hidden"] > 64)


def from_plain(model: type[nn.Module], name: str, value: Any) -> Any:
    """A plain value of a data file as the setting of a model, or of training, that it means.

    Example:
        >>> import unspool as us
        >>> from_plain(us.models.UGDGNN, "channels", "hidden").name, from_plain(us.models.UGDGNN, "monitor", "valid_score").name
        ('HIDDEN', 'VALID_SCORE')
    """
    return (TrainConfig.schema if name in TrainConfig.schema else schema_of(model)).of(name).from_plain(value)


def paper_candidates(model: type[Model], dataset: str) -> Candidates:
    """The grid that the paper searched.

    Example:
        >>> import unspool as us
        >>> few = paper_candidates(us.models.UGDGNN, "cora")
        >>> len(few.trials), list(few.space)
        (81, ['lr', 'dropout', 'weight_decay', 'depth'])
    """
    grid = paper_grid(model, seed=0)
    words = [dict(words) for part in grid.parts for words in part.settings]
    told = {
        name: list(dict.fromkeys(one[name] for one in words)) for name in words[0] if name not in ("preset", "stop")
    }
    varied = {name: values for name, values in told.items() if len(values) > 1}
    return Candidates(model, "grid", tuple(replace(t, preset="grid") for t in grid.trials(dataset)), varied)


@dataclass(frozen=True, eq=False)
class SearchOutcome:
    """What searches on one dataset found: the records of the finalists, the searches, and the chosen trials by model."""

    records: list[Record]
    searches: list[Search]
    chosen: dict[str, Trial]


def search(
    runner: ExperimentRunner,
    experiment: str,
    data: Dataset,
    sought: Sequence[Candidates],
    *,
    seeds: int,
    stages: Sequence[Sequence[int]],
) -> SearchOutcome:
    """Search for the settings of several entries on one dataset at once.

    A stage is a number of seeds and how many of the settings go on to the next one, the best by mean validation score over those
    seeds, and with them those that are known. After the last stage all seeds are run, and the best by mean validation score over all of
    them is chosen. Records of the settings that were in the final are kept.
    """
    few = [one.fewer(runner.options.settings_per_search) for one in sought]
    runner.searched = True
    left = [trial for one in few for trial in one.trials]
    trials: dict[tuple[Any, ...], Trial] = {}
    records: list[Record] = []
    seen: set[tuple[Any, ...]] = set()
    for many, going_on in [*((min(many, seeds), best) for many, best in stages), (seeds, None)]:
        seeded = [trial.with_seed(seed) for trial in left for seed in range(many)]
        tried = runner.train(experiment, data, seeded)
        trials |= {record.setting: trial.with_seed(0) for trial, record in tried.items()}
        records = list(tried.values())
        seen |= {(record.model, record.preset, record.setting, record.seed) for record in records}
        if going_on is not None:
            left = []
            for one in few:
                known = {runner.shortened(trial).key("") for trial in one.known}
                own = [trials[entry.first.setting] for entry in _finalists(records, one)]
                left += [t for place, t in enumerate(own) if place < going_on or t.key("") in known]
    found = SearchOutcome(records, [], {})
    for one in few:
        final = _finalists(records, one)
        if final:  # else every trial failed, and the runner says why
            found.chosen[one.model.__name__] = trials[final[0].first.setting]
            own = [trial for trial in seen if trial[:2] == (one.model.__name__, one.preset)]
            found.searches.append(_search(final[0], one, len({setting for _, _, setting, _ in own}), len(own)))
    return found


def _finalists(records: Sequence[Record], one: Candidates) -> list[Entry]:
    return ranked([record for record in records if (record.model, record.preset) == (one.model.__name__, one.preset)])


def _search(entry: Entry, one: Candidates, settings: int, trials: int) -> Search:
    record, mean, seeds = entry.first, entry.valid.mean, len(entry.records)
    space = {name: list(values) for name, values in one.space.items()}
    chosen = chosen_values(record.plain_settings, space)
    about = (record.experiment, record.dataset, record.model, record.preset)
    return Search(*about, settings, trials, space, chosen, mean, seeds)


def chosen_values(settings: Mapping[str, Any], space: Mapping[str, Any]) -> dict[str, Any]:
    """The values that a setting has of a space, by name.

    Example:
        >>> chosen_values({"lr": 0.01, "hidden": 64, "depth": 2}, {"lr": [0.01, 0.05], "hidden": [64]})
        {'lr': 0.01, 'hidden': 64}
    """
    return {name: settings[name] for name in space if name in settings}
