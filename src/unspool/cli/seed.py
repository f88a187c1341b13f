"""One seed of a training job: train it, keep it, tell what happens."""

from __future__ import annotations

import csv
import io
import re
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from unspool import train
from unspool.cli.card import check_card
from unspool.cli.crew import Event
from unspool.cli.wish import Job
from unspool.files import remove_leftovers
from unspool.models.checkpoint import describe
from unspool.models.folder import CARD, HISTORY, WEIGHTS, load_folder, save_folder
from unspool.report import machine

#: Seconds between events of progress.
EVERY = 0.2
#: A run that has not ended yet.
SNAPSHOT = "run.pt"
#: All that is written into the folder of a seed, as a regular expression; whatever else lies there is the user's.
OURS = "|".join([*map(re.escape, (CARD, HISTORY, SNAPSHOT)), WEIGHTS])


@dataclass(frozen=True)
class Order:
    """How the user wants it done."""

    seeds: int
    first_seed: int
    jobs: int | None
    device: str
    out: Path
    resume: bool
    snapshot_every: float
    quiet: bool
    as_json: bool
    no_report: bool
    command: str
    threads: int | None = None


def train_seed(job: Job, order: Order, seed: int, tell: Callable[[Event], None]) -> Event:
    """Train one seed and keep it; tells of its progress, and gives the event of its end.

    A model that is there already stays, whole, until the new one takes its place in one move.
    """
    place = order.out / f"seed{seed}"
    place.mkdir(parents=True, exist_ok=True)
    snapshot = place / SNAPSHOT
    remove_leftovers(place, OURS)
    data, task = job.repetition(seed)
    watch = Watcher(seed, job.plan.epochs, tell)
    model, run = train.run_seed(
        job.build, seed, task.to(order.device), job.plan, watch=watch, snapshot=snapshot, every=order.snapshot_every,
        anew=not order.resume,
    )  # fmt: skip
    metrics = {**asdict(run.best), "seed": seed, "epochs": len(run.history), "reason": run.reason, "seconds": run.seconds}  # fmt: skip
    facts = {**job.facts(data), "device": order.device, "hardware": machine(order.device), "metrics": metrics}
    save_folder(model, place, history=_history(run), **facts)  # type: ignore[arg-type]
    if run.reason != "interrupted":
        snapshot.unlink(missing_ok=True)
    ended = {"event": "seed", **metrics, "folder": str(place), "line": str(run)}
    tell(ended)
    return ended


class Watcher:
    """Turns epochs into events, not more than some a second."""

    def __init__(self, seed: int, epochs: int, tell: Callable[[Event], None]) -> None:
        self.seed, self.epochs, self.tell = seed, epochs, tell
        self.began = self.told = time.monotonic()
        self.first: int | None = None

    def __call__(self, now: train.Epoch, best: train.Epoch) -> None:
        """After each epoch."""
        moment = time.monotonic()
        if self.first is None:
            self.first = now.epoch - 1
        if moment - self.told < EVERY and now.epoch < self.epochs:
            return
        self.told = moment
        rate = (now.epoch - self.first) / max(moment - self.began, 1e-9)
        self.tell({
            "event": "progress", "seed": self.seed, "epoch": now.epoch, "of": self.epochs, "rate": rate,
            "train_loss": now.train_loss, "valid_loss": now.valid_loss, "valid_score": now.valid_score,
            "best_epoch": best.epoch, "best_valid_score": best.valid_score, "seconds_left": (self.epochs - now.epoch) / rate,
        })  # fmt: skip


def finished(place: Path, job: Job) -> float | None:
    """The test score of a run that came to its end, if there is one in this folder; one of another kind is refused."""
    if not (place / CARD).is_file() or (place / SNAPSHOT).is_file():  # a later run that was cut off is to be continued
        return None
    model, card = load_folder(place)
    check_card(card, place, model.out_features)
    metrics: dict[str, Any] = card.get("metrics", {})
    if metrics.get("reason") == "interrupted":
        return None
    # Trap: a card is silent about settings that came later than it; the model that it makes has them at their defaults.
    here, there = _known(job, metrics), _told({**card, "settings": describe(model)["settings"]})
    for what, value in here.items():
        if there.get(what) is not None and value != there[what]:
            raise ValueError(
                f"{place} was trained with {what} {_word(there[what])}, not {_word(value)}; choose another --out, or leave --resume out"
            )
    return metrics.get("test_score")


def _word(value: Any) -> Any:
    """A choice by its name; anything else as it is."""
    return value["value"] if isinstance(value, dict) and set(value) == {"choice", "value"} else value


def _known(job: Job, metrics: dict[str, Any]) -> dict[str, Any]:
    """What a run of this job would be known by, in plain values."""
    made = describe(job.build())
    split = job.repetition(metrics.get("seed", 0))[0].split
    # More epochs change nothing where the run ended by itself.
    short = metrics.get("reason") == "all epochs" or job.plan.epochs < metrics.get("epochs", 0)
    return {
        "model": made["model"], "data": job.data.hash[:8], "loss": job.kind.value, "preset": job.how.name,
        **made["settings"], "exact": made["exact"], **({} if split is None else {"split": split.hash[:8]}),
        **job.plan.describe(), **({"epochs": job.plan.epochs} if short else {}),
    }  # fmt: skip


def _told(card: dict[str, Any]) -> dict[str, Any]:
    """The same as a card tells it."""
    data, preset = card.get("data") or {}, dict(card.get("preset") or {})
    named = {"preset": preset.pop("name", None)}
    marks = {"data": data.get("hash"), "split": data.get("split")}
    return {
        "model": card.get("model"), "loss": (card.get("task") or {}).get("kind"), **named, **card.get("settings", {}),
        "exact": card.get("exact"), **preset, **{what: mark and mark[:8] for what, mark in marks.items()},
    }  # fmt: skip


def _history(run: train.Run) -> bytes:
    """All epochs as a table."""
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(["epoch", "train_loss", "valid_loss", "valid_score", "test_score"])
    rows.writerows([e.epoch, *(f"{v:.6g}" for v in e.to_list()[1:])] for e in run.history)
    return text.getvalue().encode()
