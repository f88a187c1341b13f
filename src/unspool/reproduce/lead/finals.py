"""Final evaluations: what was chosen, under seeds that no search has seen, each appended once to ``finals.csv``."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from unspool import study
from unspool.errors import DataError
from unspool.files import one_at_a_time, write_whole
from unspool.reproduce.lead.search import Choice
from unspool.study import Store
from unspool.study.store import Status
from unspool.train import Trial, TrialLoader

#: The variant of a choice that is the choice itself.
WHOLE = "as chosen"


@dataclass(frozen=True)
class Final:
    """One final evaluation: a row of ``finals.csv``.

    Attributes:
        date, commit: when, and of which state of the project.
        space: the digest of what was searched; ``valid_score`` what labelled nodes had said of the choice in the search.
        dataset, split: on what; the split by its name and a hash of all splits that were used.
        entry, variant: what was chosen, and what of it was left out.
        seeds: of the evaluation, from 0.
        scores: test scores, seed by seed.
        trial: in plain values.
        mass: shares of the classes at which validation nodes were counted; empty where they counted as they are.
    """

    date: str
    commit: str
    space: str
    dataset: str
    split: str
    entry: str
    variant: str
    seeds: int
    valid_score: float
    scores: tuple[float, ...]
    trial: Mapping[str, Any]
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
    variants: Mapping[str, Trial],
    loader: TrialLoader,
    commit: str,
    many: int = 10,
    store: Store | None = None,
    watch: Callable[[Any], None] | None = None,
    seconds: float | None = None,
) -> list[Final]:
    """Evaluate variants of a choice under the seeds from 0 on; one that time did not suffice for is left for the next call.

    Args:
        choice: what a search chose.
        variants: the choice, and what is left of it without its parts.
        loader: the data.
        commit: the state of the project.
        many: how many seeds.
        store: keeps every trial.
        watch: is told how trials are getting on.
        seconds: after which no more is trained.

    Example:
        >>> import unspool as us
        >>> from unspool import datasets
        >>> loader = TrialLoader(datasets.contextual_sbm(nodes=60, classes=2, seed=0))
        >>> trial = Trial(us.models.GCN, {"hidden": 8}, us.train.TrainConfig(epochs=3))
        >>> found = Choice("GRAND", "small", "5e1f", {}, 2, 3, 0, 0.9, 2)
        >>> (row,) = evaluate(found, {WHOLE: trial}, loader, "0000000")
        >>> row.entry, row.variant, row.seeds
        ('GRAND', 'as chosen', 10)
    """
    seeded = {name: [trial.with_seed(k) for k in range(many)] for name, trial in variants.items()}
    found = study.run(
        [one for own in seeded.values() for one in own],
        loader,
        store=store,
        watch=watch,
        retry_failed=store is not None,
        seconds=seconds,
    )
    waiting = {row.key for row in found.rows if row.status is Status.WAITING}
    scores = {row.key: row.result.test_score for row in found.rows if row.result is not None}
    split = split_of(loader, many)
    made: list[Final] = []
    for name, own in seeded.items():
        if any(one.key(loader.fingerprint) in waiting for one in own):
            continue
        given = [scores.get(one.key(loader.fingerprint), math.nan) for one in own]
        if not np.isfinite(given).all():
            seed = next(one.seed for one, score in zip(own, given, strict=True) if not math.isfinite(score))
            reason = next((row.message for row in found.rows if row.message), "it is with another process, or diverged")
            raise DataError(
                f"{choice.entry} on {choice.dataset}, {name}",
                f"the final trial of seed {seed} has no score ({reason}), and what is written once stays",
                "run the same command again",
            )
        plain = {key: value for key, value in variants[name].to_plain().items() if key != "seed"}
        about = (
            datetime.now(UTC).date().isoformat(),
            commit,
            choice.space,
            choice.dataset,
            split,
            choice.entry,
            name,
            many,
        )
        made.append(Final(*about, choice.valid_score, tuple(given), plain, tuple(choice.mass)))
    return made


def split_of(loader: TrialLoader, seeds: int) -> str:
    """The splits of some seeds: a name, and a hash of all of them.

    Example:
        >>> from unspool import datasets
        >>> split_of(TrialLoader(datasets.load("citeseer")), 3).partition(" ")[0]
        'public'
    """
    splits = [loader.split(seed) for seed in range(seeds)]
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
    held: dict[str, Any] = {**row, "seeds": int(row["seeds"]), "valid_score": float(row["valid_score"])}
    held |= {"scores": tuple(map(float, json.loads(row["scores"]))), "trial": json.loads(row["trial"])}
    held["mass"] = tuple(map(float, json.loads(row["mass"])))
    made = Final(**held)
    if len(made.scores) != made.seeds or not np.isfinite(made.scores).all() or not isinstance(held["trial"], dict):
        raise ValueError("a score for each seed and a trial are expected")
    return made


def _text(rows: Sequence[Final]) -> str:
    out = io.StringIO()
    names = [field.name for field in fields(Final)]
    writer = csv.DictWriter(out, names, lineterminator="\n")
    writer.writeheader()
    for one in rows:
        plain = asdict(one)
        lists = {"scores": json.dumps(list(one.scores)), "mass": json.dumps(list(one.mass))}
        writer.writerow({**plain, **lists, "trial": json.dumps(one.trial, sort_keys=True)})
    return out.getvalue()
