"""The space that is searched, and the trials that are drawn from it: structures first, then numbers that train in one stack."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
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
        known: settings that others have published or a probe has found, tried before anything is drawn.
        stages: seeds, and how many settings go on.
        last: how many seeds the last of them have.
        epochs, patience, first_seed: of every trial of the search.
        digest: of the plan.

    Example:
        >>> space = Space.of("GRAND", "cora")
        >>> space.structure["steps"], space.structure["labels"], len(space.rounds()), len(space.trials())
        (['uniform'], ['ce'], 14, 336)
    """

    entry: str
    dataset: str
    structure: Mapping[str, Sequence[Any]]
    numbers: Mapping[str, Sequence[Any]]
    structures: int
    each: int
    stages: tuple[tuple[int, int], ...]
    last: int
    epochs: int
    patience: int
    first_seed: int
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
        allowed = how["entries"][entry]
        known = tuple(
            one
            for one in how.get("known", {}).get(dataset, [])
            if all(one[name] in values for name, values in allowed.items())
        )
        many = (budget["structures"], budget["numbers"], stages, budget["last"])
        each = (how["epochs"], how["patience"], how["search_seed"], plan.digest)
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

        A structure that is known comes with the numbers that are known for it, before others are drawn.
        """
        draw, seen = random.Random(f"{self.entry} {self.dataset}"), set[str]()

        def drawn(values: Mapping[str, Sequence[Any]]) -> dict[str, Any]:
            return {name: draw.choice(list(each)) for name, each in values.items()}

        found: list[list[Trial]] = []
        for place in range(self.structures):
            known = self.known[place] if place < len(self.known) else None
            structure = drawn(self.structure) if known is None else {name: known[name] for name in self.structure}
            made: dict[str, Trial] = {}
            # A structure of few settings that was drawn before may have fewer that are new.
            for many in range(100 * self.each):
                if len(made) == self.each:
                    break
                numbers = known if known is not None and many == 0 else drawn(self.numbers)
                trial = trial_of({**structure, **numbers}, self.epochs, self.patience, self.first_seed)
                key = trial.key("")
                if key not in seen:
                    made[key] = trial
                    seen.add(key)
            found.append(list(made.values()))
        return found


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
