"""Final evaluations: what was chosen, under seeds that no search has seen, each appended once to ``finals.csv``."""

from __future__ import annotations

import csv
import hashlib
import io
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import torch

from unspool import study
from unspool.errors import DataError, IncompatibleError
from unspool.files import one_at_a_time, write_whole
from unspool.reproduce.lead.search import Choice
from unspool.train import Trial, TrialLoader

#: Variants of a choice: as its entry is evaluated; its best setting alone, where several are averaged; several averaged, where one is evaluated.
WHOLE, ALONE, AVERAGED = "as chosen", "the best alone", "averaged"


@dataclass(frozen=True)
class Final:
    """One final evaluation: a row of ``finals.csv``.

    Attributes:
        date, commit: when, and of which state of the project.
        space: the digest of what was searched; ``valid_score`` what labelled nodes had said of the choice in the search.
        dataset, split: on what; the split by its name and a hash of all splits that were used.
        entry, variant: what was chosen, and what of it was left out.
        first_seed, seeds: of the evaluation: the first one, and how many.
        scores: test scores, seed by seed.
        trials: in plain values; the answers of several are averaged.
        mass: shares of the classes at which validation nodes were counted; empty where they counted as they are.
    """

    date: str
    commit: str
    space: str
    dataset: str
    split: str
    entry: str
    variant: str
    first_seed: int
    seeds: int
    valid_score: float
    scores: tuple[float, ...]
    trials: Sequence[Mapping[str, Any]]
    mass: tuple[float, ...] = ()

    @property
    def place(self) -> tuple[str, str, str, str]:
        """What there is one of."""
        return self.space, self.dataset, self.entry, self.variant

    @property
    def mean(self) -> float:
        """In per cent."""
        return 100 * float(np.mean(self.scores))

    @property
    def std(self) -> float:
        """In per cent."""
        return 100 * float(np.std(self.scores, ddof=1)) if len(self.scores) > 1 else float("nan")


def evaluate(
    choice: Choice,
    variants: Mapping[str, Sequence[Trial]],
    loader: TrialLoader,
    commit: str,
    seeds: range = range(10),
    folder: Path | None = None,
    watch: Callable[[Any], None] | None = None,
    seconds: float | None = None,
) -> list[Final]:
    """Evaluate variants of a choice; one that time did not suffice for is left for the next call.

    A variant of several trials is the mean of what their networks say, each trained under the same seed and split.

    Args:
        choice: what a search chose.
        variants: the trials of the choice, and what is left of them without their parts.
        loader: the data.
        commit: the state of the project.
        seeds: of the evaluation.
        folder: keeps what every network says.
        watch: is told how trials are getting on.
        seconds: after which no more is trained.

    Example:
        >>> import unspool as us
        >>> from unspool import datasets
        >>> loader = TrialLoader(datasets.contextual_sbm(nodes=60, classes=2, seed=0))
        >>> trials = [Trial(model, {"hidden": 8}, us.train.TrainConfig(epochs=3)) for model in (us.models.GCN, us.models.APPNP)]
        >>> found = Choice("GRAND", "small", "5e1f", (), (0.9, 0.8), 2, 3, 0, 2)
        >>> whole, alone = evaluate(found, {WHOLE: trials, ALONE: trials[:1]}, loader, "0000000")
        >>> whole.seeds, len(whole.trials), len(alone.trials)
        (10, 2, 1)
    """
    seeded = {name: [[one.with_seed(seed) for one in trials] for seed in seeds] for name, trials in variants.items()}
    # The same trial may be part of several variants, and is trained once.
    wanted = {one.key(""): one for own in seeded.values() for together in own for one in together}
    try:
        held = study.predictions(list(wanted.values()), loader, folder=folder, watch=watch, seconds=seconds)
    except IncompatibleError as problem:
        raise DataError(
            f"{choice.entry} on {choice.dataset}",
            f"a final trial has no score: {problem}",
            "run the same command again",
        ) from None
    said = {key: held[one] for key, one in wanted.items() if one in held}
    split = split_of(loader, seeds)
    made: list[Final] = []
    for name, own in seeded.items():
        keys = [[one.key("") for one in together] for together in own]
        if not all(key in said for together in keys for key in together):
            continue
        scores = tuple(
            score([said[key] for key in together], loader, trials[0])
            for together, trials in zip(keys, own, strict=True)
        )
        plain = tuple({key: value for key, value in one.to_plain().items() if key != "seed"} for one in variants[name])
        about = (datetime.now(UTC).date().isoformat(), commit, choice.space, choice.dataset, split, choice.entry, name)
        valid = float(np.mean(choice.valid_scores[: len(plain)]))
        made.append(Final(*about, seeds.start, len(seeds), valid, scores, plain, tuple(choice.mass)))
    return made


def score(said: Sequence[torch.Tensor], loader: TrialLoader, trial: Trial) -> float:
    """The share of test nodes whose class is the most probable one in the mean of several answers.

    Example:
        >>> from unspool import datasets
        >>> loader = TrialLoader(datasets.contextual_sbm(nodes=60, classes=2, seed=0))
        >>> truth = torch.nn.functional.one_hot(loader.first.target).float()
        >>> score([truth, 0.9 * (1 - truth)], loader, Trial(__import__("unspool").models.GCN))
        1.0
    """
    task = loader.task(trial.seed, trial.normalise_rows)
    mean = torch.stack(list(said)).double().mean(0)
    test, target = task.test.cpu(), task.target.cpu()
    return float((mean[test].argmax(-1) == target[test]).double().mean())


def split_of(loader: TrialLoader, seeds: Iterable[int]) -> str:
    """The splits of some seeds: a name, and a hash of all of them.

    Example:
        >>> from unspool import datasets
        >>> split_of(TrialLoader(datasets.load("citeseer")), range(3)).partition(" ")[0]
        'public'
    """
    splits = [loader.split(seed) for seed in seeds]
    every = hashlib.sha256("".join(one.hash for one in splits).encode()).hexdigest()[:8]
    first, last = splits[0].name, splits[-1].name
    return f"{first} {every}" if first == last else f"{first} to {last} {every}"


def append(path: Path, rows: Iterable[Final]) -> list[Final]:
    """Add rows to the file; gives those that were added. What was evaluated once under a space stays: the first one counts."""
    with one_at_a_time(path.parent):
        old = read(path)
        known = {one.place for one in old}
        new = [one for one in rows if one.place not in known]
        if new:
            text = _text([*old, *new])
            write_whole(path, lambda file: file.write(text.encode()))
    return new


def read(path: Path) -> list[Final]:
    """The rows of the file; none where there is no file.

    Example:
        >>> read(Path("nowhere.csv"))
        []
    """
    if not path.exists():
        return []
    found: list[Final] = []
    number = 1
    try:
        with path.open(encoding="utf-8", newline="") as file:
            rows = csv.DictReader(file)
            if rows.fieldnames != [field.name for field in fields(Final)]:
                raise ValueError("its first line does not name the columns")
            for row in rows:
                number += 1
                found.append(_final(row))
    except (KeyError, TypeError, ValueError, csv.Error) as problem:
        raise DataError(
            f"{path} line {number}",
            f"is not a final evaluation as it was written ({problem})",
            "restore the file; final evaluations are made once",
        ) from None
    return found


def _final(row: Mapping[str, Any]) -> Final:
    held: dict[str, Any] = {**row, "valid_score": float(row["valid_score"])}
    held |= {name: int(row[name]) for name in ("first_seed", "seeds")}
    held |= {name: tuple(map(float, json.loads(row[name]))) for name in ("scores", "mass")}
    held["trials"] = tuple(json.loads(row["trials"]))
    made = Final(**held)
    sound = len(made.scores) == made.seeds and bool(np.isfinite(made.scores).all()) and len(made.trials) > 0
    if not sound or not all(isinstance(one, dict) for one in held["trials"]):
        raise ValueError("a score for each seed and the trials are expected")
    return made


def _text(rows: Sequence[Final]) -> str:
    out = io.StringIO()
    names = [field.name for field in fields(Final)]
    writer = csv.DictWriter(out, names, lineterminator="\n")
    writer.writeheader()
    for one in rows:
        lists = {name: json.dumps(list(getattr(one, name))) for name in ("scores", "mass")}
        writer.writerow({**asdict(one), **lists, "trials": json.dumps(list(one.trials), sort_keys=True)})
    return out.getvalue()
