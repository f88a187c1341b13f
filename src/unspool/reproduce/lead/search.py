"""The search: all settings under one seed, the best under several, and one that is chosen by a rule that looks at validation nodes alone."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from unspool import study
from unspool.errors import DataError
from unspool.files import write_whole
from unspool.reproduce.experiment_files import read_experiment
from unspool.reproduce.lead.space import Space, digest
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

    def made(self) -> Trial:
        """The trial, with seed 0."""
        return Trial.from_plain({**self.trial, "seed": 0})


def search(
    space: Space, loader: TrialLoader, store: Store | None = None, watch: Callable[[Any], None] | None = None
) -> Choice:
    """Search one space on one data set.

    Example:
        >>> from dataclasses import replace
        >>> from unspool import datasets
        >>> few = replace(Space.of("GRAND", "citeseer"), structures=1, each=2, stages=((1, 1),), last=2)
        >>> import unspool.reproduce.lead.search as here
        >>> found = here.search(few, TrialLoader(datasets.contextual_sbm(nodes=60, classes=2, seed=0)))
        >>> found.settings, found.trials, found.seeds
        (2, 3, 2)
    """
    first = search_seeds(space)[0]
    left, seen, settings = space.trials(), set[str](), len(space.trials())
    tried: list[Tried] = []
    left_out = 0
    for many, going_on in [*space.stages, (space.last, 0)]:
        seeded = [[trial.with_seed(first + k) for k in range(many)] for trial in left]
        seen |= {one.key(loader.fingerprint) for own in seeded for one in own}
        whole = _whole(space, seeded, loader, store, watch)
        left_out += len(seeded) - len(whole)
        order = sorted(range(len(whole)), key=lambda place: (-whole[place][1].score, whole[place][1].loss))
        kept = [whole[place] for place in (order[:going_on] if going_on else range(len(whole)))]
        left, tried = [trial for trial, _ in kept], [one for _, one in kept]
    place = choose(tried)
    plain = {name: value for name, value in left[place].to_plain().items() if name != "seed"}
    won, many = tried[place], (settings, len(seen), left_out)
    return Choice(space.entry, space.dataset, digest(), plain, *many, won.score, won.loss, len(won.scores))


def search_seeds(space: Space) -> range:
    """The seeds of a search; refuses such as final evaluations have.

    Example:
        >>> search_seeds(Space.of("GRAND", "cora"))
        range(100, 110)
    """
    how = read_experiment("lead")
    found = range(how["search_seed"], how["search_seed"] + max(space.last, *(many for many, _ in space.stages), 1))
    if found.start < how["final_seeds"]:
        raise DataError(
            "lead.toml", f"the search's first seed is {found.start}, a final one", f"begin at {how['final_seeds']}"
        )
    return found


def _whole(
    space: Space,
    seeded: Sequence[Sequence[Trial]],
    loader: TrialLoader,
    store: Store | None,
    watch: Callable[[Any], None] | None,
) -> list[tuple[Trial, Tried]]:
    """Train settings under some seeds; those that ended under all of them with finite numbers, each with what validation says."""
    found = study.run(
        [one for own in seeded for one in own], loader, store=store, watch=watch, retry_failed=store is not None
    )
    rows = {row.key: row for row in found.rows}
    waiting = sum(row.status in (Status.WAITING, Status.RUNNING) for row in rows.values())
    if waiting:
        raise DataError(
            f"the search of {space.entry} on {space.dataset}",
            f"{waiting} of {len(rows)} trials are with another process",
            "run the same command again when it has ended",
        )
    # Nothing but validation leaves this line: test scores are not looked at here.
    said = {key: (row.result.valid_score, row.result.valid_loss) for key, row in rows.items() if row.result is not None}
    whole: list[tuple[Trial, Tried]] = []
    for own in seeded:
        pairs = [said.get(trial.key(loader.fingerprint), (math.nan, math.nan)) for trial in own]
        if np.isfinite(pairs).all():
            whole.append((own[0], Tried(tuple(score for score, _ in pairs), tuple(loss for _, loss in pairs))))
    if not whole:
        raise DataError(space.dataset, f"no setting of {space.entry} ended with finite losses", _reason(found))
    return whole


def _reason(found: study.Study) -> str:
    return next((row.message for row in found.rows if row.message), "all diverged")


def write_choice(choice: Choice, folder: Path) -> Path:
    """Keep a choice: ``FOLDER/DATASET-ENTRY.json``."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{choice.dataset}-{choice.entry}.json"
    text = json.dumps(asdict(choice), indent=1, sort_keys=True) + "\n"
    write_whole(path, lambda file: file.write(text.encode()))
    return path


def read_choices(folder: Path) -> list[Choice]:
    """All choices of a folder, those of another space left out."""
    found: list[Choice] = []
    for path in sorted(folder.glob("*.json")):
        try:
            made = Choice(**json.loads(path.read_text(encoding="utf-8")))
        except (ValueError, TypeError) as problem:
            problem_is = f"is not a choice that a search has written ({type(problem).__name__})"
            raise DataError(str(path), problem_is, "remove it and search again") from None
        if made.space == digest():
            found.append(made)
    return found
