"""The space that is searched, and the trials that are drawn from it: structures first, then numbers that train in one stack."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from unspool.models import StableGNN
from unspool.reproduce.lead.plan import Plan
from unspool.settings import schema_of
from unspool.train import TrainConfig, Trial

#: Settings of the model among the words of the space; the others belong to training, to the upper level or to the data.
_MODEL = ("steps", "signal", "depth", "hidden", "batch_norm", "dropout", "head_dropout", "teleport")


@dataclass(frozen=True)
class Space:
    """What is searched for one entry on one data set.

    Attributes:
        entry: ``StableGNN``, or ``GRAND``, which is a part of the same space.
        dataset: its name.
        structure: values by name of what decides the shape of a network.
        numbers: values by name of everything else.
        structures, each: how many structures there are, and how many times numbers for each.
        known: settings that others have published or a probe has found, tried before anything is drawn; where an entry has no such value, its
            first in that place.
        together: how many structures train beside each other.
        common: every so many structures are drawn from ``shared``; 0 for none.
        shared: values by name that all entries have, of what decides the shape of a network.
        shares: of the time, for the first look at all settings and for every later stage.
        stages: seeds, and how many settings go on.
        last: how many seeds the last of them have.
        members: how many settings are chosen.
        epochs, patience, first_seed: of every trial of the search.
        digest: of the plan.

    Example:
        >>> space = Space.of("GRAND", "cora")
        >>> space.structure["steps"], space.structure["labels"], len(space.rounds()), len(space.trials())
        (['uniform'], ['ce'], 12, 288)
    """

    entry: str
    dataset: str
    structure: Mapping[str, Sequence[Any]]
    numbers: Mapping[str, Sequence[Any]]
    structures: int
    each: int
    stages: tuple[tuple[int, int], ...]
    last: int
    together: int
    common: int
    shared: Mapping[str, Sequence[Any]]
    shares: tuple[float, ...]
    epochs: int
    patience: int
    first_seed: int
    members: int
    digest: str
    known: tuple[Mapping[str, Any], ...] = ()

    @staticmethod
    def of(entry: str, dataset: str, plan: Plan | None = None) -> Space:
        """As a plan says; as ``lead.toml`` does when it is omitted."""
        plan = Plan.read() if plan is None else plan
        how = plan.how
        held = [how["entries"][entry], how["sets"][dataset]]

        def left(name: str, values: list[Any]) -> list[Any]:
            return [value for value in values if all(value in part.get(name, values) for part in held)]

        structure, numbers = (
            {name: left(name, values) for name, values in how[part].items()} for part in ("structure", "numbers")
        )
        budget = how["budget"][dataset]
        stages = tuple((int(seeds), int(best)) for seeds, best in budget["stages"])
        known = tuple(_allowed(one, how["entries"][entry]) for one in how.get("known", {}).get(dataset, []))
        shared = {name: _common(name, values, how["entries"].values()) for name, values in structure.items()}
        many = (budget["structures"], budget["numbers"], stages, budget["last"], how["together"], how["common"], shared)
        each = (tuple(how["shares"]), how["epochs"], how["patience"], how["search_seed"], plan.members, plan.digest)
        return Space(entry, dataset, structure, numbers, *many, *each, known)

    @property
    def seeds(self) -> range:
        """Those of the search; final evaluations have others."""
        return range(self.first_seed, self.first_seed + max(self.last, *(many for many, _ in self.stages), 1))

    def trials(self) -> list[Trial]:
        """All settings, round by round."""
        return [trial for one in self.rounds() for trial in one]

    def rounds(self) -> list[list[Trial]]:
        """The settings that are tried, under the first seed of the search, structure by structure; the same ones each time.

        A structure that is known comes with the numbers that are known for it, before others are drawn. Each word of a draw has random
        numbers of its own, which its place decides and not the entry: two entries have the same value wherever they have the same values.
        """
        seen, found = set[str](), list[list[Trial]]()
        for place in range(self.structures):
            known = self.known[place] if place < len(self.known) else None
            own = self.shared if self.common and place % self.common == self.common - 1 else self.structure
            structure = (
                self._drawn(own, f"{place}") if known is None else {name: known[name] for name in self.structure}
            )
            made: dict[str, Trial] = {}
            # A structure of few settings that was drawn before may have fewer that are new.
            for many in range(100 * self.each):
                if len(made) == self.each:
                    break
                numbers = known if known is not None and many == 0 else self._drawn(self.numbers, f"{place} {many}")
                trial = trial_of({**structure, **numbers}, self.epochs, self.patience, self.first_seed)
                key = trial.key("")
                if key not in seen:
                    made[key] = trial
                    seen.add(key)
            found.append(list(made.values()))
        return found

    def _drawn(self, values: Mapping[str, Sequence[Any]], place: str) -> dict[str, Any]:
        return {
            name: random.Random(f"{self.dataset} {place} {name}").choice(list(each)) for name, each in values.items()
        }


def _common(name: str, values: Sequence[Any], entries: Iterable[Mapping[str, Any]]) -> list[Any]:
    """Those of the values of a word that all entries have."""
    return [value for value in values if all(value in entry.get(name, values) for entry in entries)]


def _allowed(known: Mapping[str, Any], entry: Mapping[str, Any]) -> dict[str, Any]:
    """A known setting with an entry's first value wherever it does not have that of the setting.

    Example:
        >>> _allowed({"steps": "ppr", "lr": 0.01}, {"steps": ["uniform"]})
        {'steps': 'uniform', 'lr': 0.01}
    """
    return {name: value if value in entry.get(name, [value]) else entry[name][0] for name, value in known.items()}


def trial_of(words: Mapping[str, Any], epochs: int, patience: int, seed: int) -> Trial:
    """The trial that a word for everything makes.

    Example:
        >>> how = Plan.read().how
        >>> one = {name: values[0] for part in ("structure", "numbers") for name, values in how[part].items()}
        >>> print(trial_of(one, 100, 10, 0).config.upper)
        CE(Y, pʳ)  +  0.5 ‖pʳ − sharpen(p̄, 0.2)‖²   (mean over nodes and 2 views r, each under DropNodes(0.3))
    """
    schema = schema_of(StableGNN)
    settings = {name: schema.of(name).from_plain(words[name]) for name in _MODEL}
    upper = "ce" if words["labels"] == "ce" else f"class_mass(strength={words['strength']})"
    if words["weight"]:
        growing = f"warm_up({words['warm_up']})*" if words["warm_up"] else ""
        sure = f", confidence={words['confidence']}" if words["confidence"] else ""
        upper += f" + {words['weight']}*{growing}consistency(views={words['views']}, temperature={words['temperature']}{sure})"
    upper += f" under drop_nodes({words['drop_nodes']})" if words["drop_nodes"] else ""
    monitor = TrainConfig.schema.of("monitor").from_plain(words["monitor"])
    config = TrainConfig(
        lr=words["lr"],
        weight_decay=words["weight_decay"],
        epochs=epochs,
        patience=patience,
        monitor=monitor,
        upper=upper,
    )
    return Trial(StableGNN, settings, config, seed, words["normalise_rows"], "lead")
