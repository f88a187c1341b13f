"""A training job on disk: what its seeds say about themselves, as far as they do."""

from __future__ import annotations

import csv
import os
import re
import statistics
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

from unspool.models.pretrained import CARD, HISTORY, history_fits, read_card
from unspool.report.text import counted, number
from unspool.train import Ending, Epoch

_COLUMNS = ("epoch", "train_loss", "valid_loss", "valid_score", "test_score")


@dataclass(frozen=True, eq=False)
class Seed:
    """One trained model: its folder, its card, and its epochs where they were kept.

    Attributes:
        name: the number of the seed, or the name of the folder.
        place: the folder.
        card: what ``model.json`` says.
        history: all epochs, oldest first; empty where none were kept.
        trouble: half a sentence about a history that could not be read.
    """

    name: str
    place: Path
    card: Mapping[str, Any]
    history: tuple[Epoch, ...] = ()
    trouble: str | None = None

    def part(self, name: str) -> Mapping[str, Any]:
        """A section of the card; empty where it has none."""
        found = self.card.get(name)
        return found if isinstance(found, Mapping) else {}

    def metric(self, name: str) -> float | None:
        """A number of the card's metrics, where it has it."""
        return number(self.part("metrics").get(name))

    @property
    def ending(self) -> Ending | None:
        """Why training ended, where the card says so; an interrupted seed has the numbers of its best epoch so far."""
        told = self.part("metrics").get("ending")
        return next((one for one in Ending if one.name.lower() == told), None)

    @property
    def config(self) -> Mapping[str, Any] | None:
        """The configuration of its trial in plain values, where the card has one."""
        found = self.part("trial").get("config")
        return found if isinstance(found, Mapping) else None

    @property
    def recipe(self) -> Any:
        """Everything that seeds of one job share."""
        data, task = self.part("data"), self.part("task")  # splits may differ, and with them the scale of targets
        keys = ("model", "settings", "solved_exactly", "in_features", "out_features")
        trial = {name: value for name, value in self.part("trial").items() if name != "seed"}
        return [
            *(self.card.get(key) for key in keys),
            trial,
            *(task.get(k) for k in ("kind", "score")),
            *(data.get(k) for k in ("name", "hash")),
        ]


@dataclass(frozen=True, eq=False)
class Job:
    """The seeds of one training job, in order, and what is odd about them."""

    folder: Path
    seeds: tuple[Seed, ...]
    empty: tuple[str, ...] = ()

    @property
    def first(self) -> Seed:
        """The seed that speaks for all in what they share."""
        return self.seeds[0]

    @cached_property
    def counted(self) -> tuple[Seed, ...]:
        """The seeds whose numbers are averaged: of the first one's recipe, and trained to their end if any is."""
        alike = [s for s in self.seeds if s.recipe == self.first.recipe]
        ended = [s for s in alike if s.ending is not Ending.INTERRUPTED]
        return tuple(ended if ended else alike)

    def values(self, metric: str) -> list[float]:
        """A metric of the counted seeds, where they have it."""
        return [v for s in self.counted if (v := s.metric(metric)) is not None]

    def warnings(self) -> list[str]:
        """Sentences about seeds that are left out or not whole."""
        alike = [s for s in self.seeds if s.recipe == self.first.recipe]
        other = [s.name for s in self.seeds if s.recipe != self.first.recipe]
        cut = [s.name for s in alike if s.ending is Ending.INTERRUPTED]
        said: list[str] = []
        if other:
            verb, count = ("differs", "does") if len(other) == 1 else ("differ", "do")
            said.append(
                f"{_seeds(other)} {verb} from seed {self.first.name} in model, settings, configuration, task or data, and {count} not count "
                "below: an earlier job may have left it here."
            )
        if cut and len(cut) == len(alike):
            said.append("No seed was trained to its end: the numbers are those of the best epochs so far.")
        elif cut:
            verb = "was interrupted and does" if len(cut) == 1 else "were interrupted and do"
            said.append(f"{_seeds(cut)} {verb} not count in means; continue with --resume.")
        if self.empty:
            said.append(f"{_seeds(self.empty)} {'holds' if len(self.empty) == 1 else 'hold'} no finished model.")
        said += [f"Seed {s.name}: {s.trouble}, so its curves are left out." for s in self.seeds if s.trouble]
        return said


def read_job(folder: str | os.PathLike[str]) -> Job:
    """Read the cards and histories under ``folder`` (``seed0``, ``seed1``, ..., or a single model).

    Example:
        >>> import tempfile, unspool as us
        >>> from unspool.models.pretrained import save_pretrained
        >>> out = tempfile.mkdtemp()
        >>> place = save_pretrained(us.models.SGC(5, 3), out + "/seed4", metrics={"test_score": 0.7})
        >>> job = read_job(out)
        >>> [seed.name for seed in job.seeds], job.values("test_score")
        (['4'], [0.7])
    """
    place = Path(folder)
    if not place.is_dir():
        raise FileNotFoundError(f"there is no folder {place}; give the one that training wrote (its --out)")
    found = {int(m.group(1)): p for p in place.iterdir() if p.is_dir() and (m := re.fullmatch(r"seed(\d+)", p.name))}
    whole = [(str(n), p) for n, p in sorted(found.items()) if (p / CARD).is_file()]
    if not whole and (place / CARD).is_file():
        whole = [("", place)]
    if not whole:
        raise FileNotFoundError(f"{place} holds no finished seed (no seed0/{CARD}); let a training run end first")
    empty = [str(n) for n, p in sorted(found.items()) if not (p / CARD).is_file()]
    return Job(place, tuple(_read_seed(name, p) for name, p in whole), tuple(empty))


def mean_and_spread(values: list[float]) -> tuple[float, float | None] | None:
    """Mean and sample standard deviation; no deviation of one value, nothing of none.

    Example:
        >>> mean_and_spread([1.0, 3.0]), mean_and_spread([2.0]), mean_and_spread([])
        ((2.0, 1.4142135623730951), (2.0, None), None)
    """
    if not values:
        return None
    return statistics.fmean(values), statistics.stdev(values) if len(values) > 1 else None


# -- inside ------------------------------------------------------------------------------------------------------------


def _read_seed(name: str, place: Path) -> Seed:
    try:
        card = read_card(place)
    except OSError as problem:
        raise type(problem)(f"cannot read {place / CARD}: {problem.strerror}") from None
    if not isinstance(card.get("model"), str):
        raise ValueError(f"{place / CARD} is damaged; train this seed again, or move its folder away")
    if not name:  # a single model; the folder's own name where the card does not tell the seed
        called = Seed(name, place, card).metric("seed")
        name = place.resolve().name if called is None else f"{called:g}"
    if not history_fits(place, card):
        return Seed(name, place, card, (), f"{HISTORY} is damaged, or was written by another run than the model")
    return Seed(name, place, card, *_read_history(place / HISTORY))


def _read_history(file: Path) -> tuple[tuple[Epoch, ...], str | None]:
    """The epochs, or half a sentence that says what is wrong with the file; a file that is not there is no trouble."""
    if not file.is_file():
        return (), None
    line = 1
    try:
        with file.open(encoding="utf-8-sig", newline="") as lines:
            reader = csv.DictReader(lines)
            missing = [c for c in _COLUMNS if c not in (reader.fieldnames or [])]
            if missing:
                return (), f"{HISTORY} has no column {', '.join(missing)}"
            epochs: list[Epoch] = []
            for line, row in enumerate(reader, 2):  # noqa: B007 (the error below names it)
                epochs += [_epoch(row)]
    except (ValueError, TypeError, OverflowError, csv.Error):
        return (), f"line {line} of {HISTORY} cannot be read"
    except OSError as problem:
        return (), f"{HISTORY} cannot be read ({problem.strerror})"
    if any(b.epoch <= a.epoch for a, b in pairwise(epochs)):
        return (), f"the epochs of {HISTORY} do not rise"
    return tuple(epochs), None


def _epoch(row: Mapping[str, str]) -> Epoch:
    values = [float("nan") if row[c] == "" else float(row[c]) for c in _COLUMNS[1:]]
    return Epoch(int(float(row["epoch"])), *values)


def _seeds(names: list[str] | tuple[str, ...]) -> str:
    if len(names) > 6:
        return counted(len(names), "seed")
    return f"Seed{'' if len(names) == 1 else 's'} " + ", ".join(names)
