"""The search: all settings under one seed, the best under several, and the one that is best on labelled nodes that were held out."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from unspool import study
from unspool.errors import DataError
from unspool.files import write_whole
from unspool.reproduce.lead.clock import Clock
from unspool.reproduce.lead.labelled import LabelledLoader
from unspool.reproduce.lead.space import Space
from unspool.study import Store
from unspool.study.store import Status
from unspool.train import Trial

#: Slices of a later stage where time is limited: as many chances to stop in time.
SLICES = 4


#: Settings that are still in, with their scores on the held-out labelled nodes, seed by seed.
_Left = list[tuple[Trial, tuple[float, ...]]]


def ranked(left: Sequence[tuple[Trial, tuple[float, ...]]]) -> list[tuple[Trial, tuple[float, ...]]]:
    """Settings by mean score on held-out labelled nodes, the best first; of equal ones that which was tried first.

    Trap: the score at the epoch that was chosen by it is the highest of all epochs, the more too high the more it jumps about, and lower where the lowest loss
    chose the epoch. So other nodes choose the epoch, and settings of either kind compare.

    Example:
        >>> import unspool as us
        >>> trials = [Trial(us.models.GCN, {"dropout": rate}) for rate in (0.1, 0.3, 0.5)]
        >>> [trial.settings["dropout"] for trial, _ in ranked(list(zip(trials, [(0.8, 0.8), (0.7, 0.95), (0.8, 0.8)])))]
        [0.3, 0.1, 0.5]
    """
    return sorted(left, key=lambda one: -float(np.mean(one[1])))


@dataclass(frozen=True)
class Choice:
    """What a search chose, as it is kept before anything is evaluated.

    Attributes:
        entry, dataset: for what.
        space: the digest of the space.
        members: the best settings, the best first: trials in plain values, without their seeds.
        valid_scores: of each of them, the mean score on held-out labelled nodes.
        settings, trials: how many were tried; ``left_out`` of the settings had a trial that failed or diverged.
        seeds: over how many the scores are means.
        mass: shares of the classes among unlabelled nodes, where validation nodes were counted by them; empty otherwise.
        commit: the state of the project, and so the rule, under which it was chosen.
    """

    entry: str
    dataset: str
    space: str
    members: Sequence[Mapping[str, Any]]
    valid_scores: Sequence[float]
    settings: int
    trials: int
    left_out: int
    seeds: int
    mass: Sequence[float] = ()
    commit: str = ""

    def made(self) -> list[Trial]:
        """The trials, with seed 0."""
        return [Trial.from_plain({**one, "seed": 0}) for one in self.members]


def search(
    spaces: Sequence[Space],
    loader: LabelledLoader,
    store: Store,
    watch: Callable[[Any], None] | None = None,
    seconds: float | None = None,
    commit: str = "",
    say: Callable[[str], None] = lambda _: None,
) -> list[Choice]:
    """Search the spaces of several entries on one data set together, so that all have as many settings and trials, whenever time is up.

    The best settings of the last stage are chosen, as many as the space says.

    A round is some structures of every entry, which train beside each other. Then the best settings go on to more seeds, as many of each entry,
    best first and a slice at a time. Every stage has its share of the seconds, so that a slow round never leaves the choice to one seed. What is
    chosen follows from scores on held-out labelled nodes alone, and from how far the stages came; no test node is seen. What two entries share is trained
    once and counts as a trial of both.

    Args:
        spaces: one for each entry.
        loader: the labelled nodes of the data.
        store: keeps every trial; what it holds is not trained again.
        watch: is told how trials are getting on.
        seconds: for all of it; no end when omitted. The first round, and one slice of each stage, are never left out.
        commit: the state of the project, for the record.
        say: is told a line after every round and slice.

    Example:
        >>> from dataclasses import replace
        >>> from unspool import datasets
        >>> import unspool.reproduce.lead.search as here
        >>> small = {"structures": 1, "each": 2, "stages": ((1, 1),), "last": 2, "shares": (0.5, 0.5)}
        >>> few = [replace(Space.of(name, "citeseer"), **small) for name in ("StableGNN", "GRAND")]
        >>> ours, grand = here.search(few, LabelledLoader(datasets.contextual_sbm(nodes=60, classes=2, seed=0)), Store(None))
        >>> grand.settings, grand.trials, grand.seeds
        (2, 3, 2)
    """
    run = _Search(spaces, loader, store, watch, Clock(seconds, spaces[0].shares), say)
    settings = run.rounds()
    for (_, going_on), (many, _) in pairwise([*spaces[0].stages, (spaces[0].last, 0)]):
        run.go_on(going_on, many)
    return [run.choice(place, settings, commit) for place in range(len(spaces))]


class _Search:
    """How far a search has come.

    Attributes:
        left: of each entry, the settings that are still in, with their scores.
    """

    def __init__(
        self, spaces: Sequence[Space], loader: LabelledLoader, store: Store, watch: Callable[[Any], None] | None, clock: Clock,
        say: Callable[[str], None],
    ) -> None:  # fmt: skip
        self.spaces, self.loader, self.store, self.watch, self.clock, self.say = (
            spaces,
            loader,
            store,
            watch,
            clock,
            say,
        )
        self.left: list[_Left] = [[] for _ in spaces]
        self.seen = [set[str]() for _ in spaces]
        self.left_out = [0 for _ in spaces]

    def rounds(self) -> int:
        """Rounds until time is up; gives the number of settings that each entry has had."""
        settings, many = 0, self.spaces[0].stages[0][0]
        turns = list(zip(*(space.rounds() for space in self.spaces), strict=True))
        self.clock.begin()
        beside = self.spaces[0].together
        for first in range(0, len(turns), beside):
            if not self.clock.another():
                break
            wanted: list[list[Trial]] = [[] for _ in self.spaces]
            for turn in turns[first : first + beside]:
                fewest = min(map(len, turn))
                for mine, trials in zip(wanted, turn, strict=True):
                    mine.extend(trials[:fewest])
            for left, found in zip(self.left, self.train(wanted, many), strict=True):
                left.extend(found)
            settings += len(wanted[0])
        for place, left in enumerate(self.left):
            self._check(place, left, "")
        return settings

    def go_on(self, most: int, many: int) -> None:
        """The best of each entry have more seeds, slice after slice while there is time, and the others go."""
        self.left = [ranked(left) for left in self.left]
        most = min(most, *map(len, self.left))
        slice_ = most if self.clock.unlimited else math.ceil(most / SLICES)
        trained: list[_Left] = [[] for _ in self.spaces]
        self.clock.begin()
        for first in range(0, most, slice_):
            if not self.clock.another():
                break
            wanted = [[trial for trial, _ in left[first : min(first + slice_, most)]] for left in self.left]
            for mine, found in zip(trained, self.train(wanted, many), strict=True):
                mine.extend(found)
        for place, left in enumerate(trained):
            self._check(place, left, f" under {many} seeds")
        self.left = trained

    def train(self, wanted: Sequence[Sequence[Trial]], many: int) -> list[_Left]:
        """Settings of each entry under some seeds; those that ended under all of them, each with its scores."""
        began, first = time.monotonic(), self.spaces[0].first_seed
        seeded = [[[trial.with_seed(first + k) for k in range(many)] for trial in trials] for trials in wanted]
        said = self._scores([one for entry in seeded for own in entry for one in own])
        found: list[_Left] = []
        for place, entry in enumerate(seeded):
            keys = [[one.key(self.loader.fingerprint) for one in own] for own in entry]
            self.seen[place] |= {key for own in keys for key in own}
            scores = [tuple(said.get(key, math.nan) for key in own) for own in keys]
            whole = [k for k, own in enumerate(scores) if np.isfinite(own).all()]
            found.append([(entry[k][0], scores[k]) for k in whole])
            self.left_out[place] += len(entry) - len(whole)
        best = ", ".join(
            f"{space.entry} {100 * max((np.mean(one) for _, one in mine), default=math.nan):.2f}"
            for space, mine in zip(self.spaces, found, strict=True)
        )
        took = f"{len(wanted[0])} settings of each, {many} seeds, {time.monotonic() - began:.1f} s"
        self.say(f"{self.spaces[0].dataset}: {took}, held-out nodes at most {best}")
        return found

    def _scores(self, trials: Sequence[Trial]) -> dict[str, float]:
        """Train; scores on held-out labelled nodes by key, of what ended."""
        once = {one.key(self.loader.fingerprint): one for one in trials}
        found = study.run(list(once.values()), self.loader, store=self.store, watch=self.watch, retry_failed=True)
        rows = {row.key: row for row in found.rows}
        waiting = sum(row.status in (Status.WAITING, Status.RUNNING) for row in rows.values())
        if waiting:
            raise DataError(
                f"the search of {' and '.join(space.entry for space in self.spaces)} on {self.spaces[0].dataset}",
                f"{waiting} of {len(rows)} trials are with another process",
                "run the same command again when it has ended",
            )
        # In the place of test nodes the loader has labelled ones.
        return {k: row.result.test_score for k, row in rows.items() if row.result is not None}

    def _check(self, place: int, left: _Left, under: str) -> None:
        if not left:
            space = self.spaces[place]
            raise DataError(
                space.dataset, f"no setting of {space.entry} ended with finite losses{under}", self._reason()
            )

    def choice(self, entry: int, settings: int, commit: str) -> Choice:
        """The chosen ones of an entry."""
        space, left = self.spaces[entry], self.left[entry]
        best = ranked(left)[: space.members]
        plain = [{name: value for name, value in trial.to_plain().items() if name != "seed"} for trial, _ in best]
        scores = [float(np.mean(own)) for _, own in best]
        many = (settings, len(self.seen[entry]), self.left_out[entry], len(best[0][1]))
        return Choice(space.entry, space.dataset, space.digest, plain, scores, *many, self.loader.mass, commit)

    def _reason(self) -> str:
        return next((row.message for row in self.store.rows() if row.message), "all diverged")


def write_choice(choice: Choice, folder: Path) -> Path:
    """Keep a choice: ``FOLDER/DATASET-ENTRY.json``."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{choice.dataset}-{choice.entry}.json"
    text = json.dumps(asdict(choice), indent=1, sort_keys=True) + "\n"
    write_whole(path, lambda file: file.write(text.encode()))
    return path


def read_choices(folder: Path, space: str) -> list[Choice]:
    """All choices of a folder that were made in a space, which its digest names."""
    found: list[Choice] = []
    for path in sorted(folder.glob("*.json")):
        try:
            made = Choice(**json.loads(path.read_text(encoding="utf-8")))
        except (ValueError, TypeError) as problem:
            problem_is = f"is not a choice that a search has written ({type(problem).__name__})"
            raise DataError(str(path), problem_is, "remove it and search again") from None
        if made.space == space:
            found.append(made)
    return found
