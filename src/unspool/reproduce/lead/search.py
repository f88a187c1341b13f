"""The search: all settings under one seed, the best under several, and one that is chosen by a rule that looks at validation nodes alone."""

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
from unspool.reproduce.lead.space import Space
from unspool.study import Store
from unspool.study.store import Status
from unspool.train import Trial, TrialLoader


@dataclass(frozen=True)
class Tried:
    """A setting with what validation said of it, seed by seed; nothing else is known here.

    Attributes:
        scores, losses: of the validation nodes at the chosen epochs, in the order of the seeds.
    """

    scores: tuple[float, ...]
    losses: tuple[float, ...]

    @property
    def score(self) -> float:
        """The mean score."""
        return float(np.mean(self.scores))

    @property
    def loss(self) -> float:
        """The mean loss."""
        return float(np.mean(self.losses))

    @property
    def error(self) -> float:
        """The standard error of the mean score."""
        return float(np.std(self.scores, ddof=1) / math.sqrt(len(self.scores))) if len(self.scores) > 1 else 0.0


def choose(tried: Sequence[Tried]) -> int:
    """The place of the chosen one: of those within one standard error of the highest mean score, that with the lowest mean loss.

    The rule of one standard error (Breiman et al., 1984), over the seeds of the search: scores of few validation nodes saturate, losses do not.

    Example:
        >>> high, level, low = Tried((0.9, 0.92), (0.5, 0.5)), Tried((0.9, 0.9), (0.3, 0.3)), Tried((0.8, 0.8), (0.1, 0.1))
        >>> choose([high, level, low])
        1
    """
    best = max(tried, key=lambda one: (one.score, -one.loss))
    near = [place for place, one in enumerate(tried) if one.score >= best.score - best.error]
    return min(near, key=lambda place: (tried[place].loss, -tried[place].score))


@dataclass(frozen=True)
class Choice:
    """What a search chose, as it is kept before anything is evaluated.

    Attributes:
        entry, dataset: for what.
        space: the digest of the space.
        trial: in plain values, without its seed.
        settings, trials: how many were tried; ``left_out`` of the settings had a trial that failed or diverged.
        valid_score, valid_loss, seeds: what validation said of the chosen one, over how many seeds.
        commit: the state of the project, and so the rule, under which it was chosen.
    """

    entry: str
    dataset: str
    space: str
    trial: Mapping[str, Any]
    settings: int
    trials: int
    left_out: int
    valid_score: float
    valid_loss: float
    seeds: int
    commit: str = ""

    def made(self) -> Trial:
        """The trial, with seed 0."""
        return Trial.from_plain({**self.trial, "seed": 0})


def search(
    spaces: Sequence[Space],
    loader: TrialLoader,
    store: Store,
    watch: Callable[[Any], None] | None = None,
    seconds: float | None = None,
    commit: str = "",
    say: Callable[[str], None] = lambda _: None,
) -> list[Choice]:
    """Search the spaces of several entries on one data set in turns, so that all have as many settings and trials, whenever time is up.

    A round is one structure of every entry. Then the best settings go on to more seeds, as many of each entry; where there is little time,
    fewer of them. What is chosen follows from validation scores and losses alone, and from how far the rounds came.

    Args:
        spaces: one for each entry.
        loader: the data.
        store: keeps every trial; what it holds is not trained again.
        watch: is told how trials are getting on.
        seconds: for all of it; no end when omitted. The first round, and one setting in each stage, are never left out.
        commit: the state of the project, for the record.
        say: is told a line after every round and stage.

    Example:
        >>> from dataclasses import replace
        >>> from unspool import datasets
        >>> import unspool.reproduce.lead.search as here
        >>> few = [replace(Space.of(name, "citeseer"), structures=1, each=2, stages=((1, 1),), last=2) for name in ("StableGNN", "GRAND")]
        >>> ours, grand = here.search(few, TrialLoader(datasets.contextual_sbm(nodes=60, classes=2, seed=0)), Store(None))
        >>> grand.settings, grand.trials, grand.seeds
        (2, 3, 2)
    """
    run = _Search(spaces, loader, store, watch, Clock(seconds, len(spaces[0].stages)), say)
    settings = run.rounds()
    stages = [*spaces[0].stages, (spaces[0].last, 0)]
    for place, ((had, going_on), (many, _)) in enumerate(pairwise(stages), start=1):
        run.go_on(place, going_on, had, many)
    return [run.choice(place, settings, commit) for place in range(len(spaces))]


class _Search:
    """How far a search has come.

    Attributes:
        left: of each entry, the settings that are still in, with what validation says of them.
        shape: where a setting comes from, by its key: its entry and its round.
    """

    def __init__(
        self, spaces: Sequence[Space], loader: TrialLoader, store: Store, watch: Callable[[Any], None] | None, clock: Clock,
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
        self.left: list[list[tuple[Trial, Tried]]] = [[] for _ in spaces]
        self.shape: dict[str, tuple[int, int]] = {}
        self.seen = [set[str]() for _ in spaces]
        self.left_out = [0 for _ in spaces]

    def rounds(self) -> int:
        """Rounds until time is up; gives the number of settings that each entry has had."""
        settings, many = 0, self.spaces[0].stages[0][0]
        for place, turn in enumerate(zip(*(space.rounds() for space in self.spaces), strict=True)):
            if place and not self.clock.another():
                break
            fewest = min(map(len, turn))
            for entry, trials in enumerate(turn):
                self.shape |= {trial.key(""): (entry, place) for trial in trials}
                self.left[entry] += self.train(entry, trials[:fewest], many)
            settings += fewest
        for space, left in zip(self.spaces, self.left, strict=True):
            if not left:
                raise DataError(space.dataset, f"no setting of {space.entry} ended with finite losses", self._reason())
        return settings

    def go_on(self, stage: int, most: int, had: int, many: int) -> None:
        """The best of each entry have more seeds, as many as there is time for, and the others go."""
        for left in self.left:
            left.sort(key=lambda one: (-one[1].score, one[1].loss))
        most = min(most, *map(len, self.left))
        shapes = [[self.shape[trial.key("")] for trial, _ in left[:most]] for left in self.left]
        fits = self.clock.fitting(stage, shapes, many - had)
        for entry, left in enumerate(self.left):
            trained = self.train(entry, [trial for trial, _ in left[:fits]], many)
            if not trained:
                raise DataError(self.spaces[entry].dataset, f"no setting of {self.spaces[entry].entry} ended with finite losses under {many} seeds", self._reason())  # fmt: skip
            self.left[entry] = trained

    def train(self, entry: int, trials: Sequence[Trial], many: int) -> list[tuple[Trial, Tried]]:
        """Settings under some seeds; those that ended under all of them, each with what validation says."""
        space = self.spaces[entry]
        seeded = [[trial.with_seed(space.first_seed + k) for k in range(many)] for trial in trials]
        self.seen[entry] |= {one.key(self.loader.fingerprint) for own in seeded for one in own}
        whole, seconds = _whole(space, seeded, self.loader, self.store, self.watch)
        self.clock.took(self.shape[trials[0].key("")], seconds, len(trials) * many)
        best = max((one.score for _, one in whole), default=math.nan)
        told = f"{len(trials)} settings, {many} seeds, {seconds:.1f} s, validation at most {100 * best:.2f}"
        self.say(f"{space.dataset}, {space.entry}: {told}")
        self.left_out[entry] += len(seeded) - len(whole)
        return whole

    def choice(self, entry: int, settings: int, commit: str) -> Choice:
        """The chosen one of an entry."""
        space, left = self.spaces[entry], self.left[entry]
        trial, won = left[choose([one for _, one in left])]
        plain = {name: value for name, value in trial.to_plain().items() if name != "seed"}
        many = (settings, len(self.seen[entry]), self.left_out[entry])
        return Choice(
            space.entry, space.dataset, space.digest, plain, *many, won.score, won.loss, len(won.scores), commit
        )

    def _reason(self) -> str:
        return next((row.message for row in self.store.rows() if row.message), "all diverged")


def _whole(
    space: Space,
    seeded: Sequence[Sequence[Trial]],
    loader: TrialLoader,
    store: Store,
    watch: Callable[[Any], None] | None,
) -> tuple[list[tuple[Trial, Tried]], float]:
    """Train settings under some seeds; those that ended under all of them with finite numbers, and the seconds that all took."""
    began = time.monotonic()
    found = study.run([one for own in seeded for one in own], loader, store=store, watch=watch, retry_failed=True)
    rows = {row.key: row for row in found.rows}
    waiting = sum(row.status in (Status.WAITING, Status.RUNNING) for row in rows.values())
    if waiting:
        raise DataError(
            f"the search of {space.entry} on {space.dataset}",
            f"{waiting} of {len(rows)} trials are with another process",
            "run the same command again when it has ended",
        )
    ended = {key: row.result for key, row in rows.items() if row.result is not None}
    seconds = max(time.monotonic() - began, sum(result.seconds for result in ended.values()))
    # Nothing but validation leaves this line: test scores are not looked at here.
    said = {key: (result.valid_score, result.valid_loss) for key, result in ended.items()}
    whole: list[tuple[Trial, Tried]] = []
    for own in seeded:
        pairs = [said.get(trial.key(loader.fingerprint), (math.nan, math.nan)) for trial in own]
        if np.isfinite(pairs).all():
            whole.append((own[0], Tried(tuple(score for score, _ in pairs), tuple(loss for _, loss in pairs))))
    return whole, seconds


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
