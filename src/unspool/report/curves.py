"""Training curves: losses and scores by epoch, with their spread over seeds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from unspool.report.figure import Figure, Panel, finish
from unspool.report.score import SHARES, Score
from unspool.report.seeds import Seed
from unspool.report.text import counted, shown
from unspool.spectral.drawing import BLUE, GREEN, ORANGE

#: Longer curves are drawn at this many of their epochs.
POINTS = 200
#: Curves go on for so many epochs after the last one that was selected, or for as many again if that is more.
AFTER = 30

#: Scores that may be named inside a picture; a card's own words might hold signs that the drawing cannot measure.
NAMED = (*SHARES, "R²")

_NAMES = {
    "train_loss": "training loss",
    "valid_loss": "validation loss",
    "valid_score": "validation score",
    "test_score": "test score",
}


@dataclass(frozen=True, eq=False)
class Curve:
    """A quantity by epoch: mean, smallest and largest over the seeds that were still training.

    Attributes:
        epoch: which epochs.
        mean, low, high: over seeds.
        shared: how many of the epochs every seed has.
    """

    epoch: np.ndarray
    mean: np.ndarray
    low: np.ndarray
    high: np.ndarray
    shared: int


def curve(seeds: Sequence[Seed], quantity: str, scale: float = 1.0) -> Curve | None:
    """The curve of a quantity over seeds, thinned to at most :data:`POINTS` epochs; None where nobody has it.

    Example:
        >>> from pathlib import Path
        >>> from unspool.train import Epoch
        >>> long = Seed("0", Path(), {}, (Epoch(1, 2.0, 0, 0, 0), Epoch(2, 1.0, 0, 0, 0)))
        >>> short = Seed("1", Path(), {}, (Epoch(1, 4.0, 0, 0, 0),))
        >>> found = curve([long, short], "train_loss")
        >>> found.mean.tolist(), found.high.tolist(), found.shared
        ([3.0, 1.0], [4.0, 1.0], 1)
    """
    runs = [{e.epoch: scale * float(getattr(e, quantity)) for e in s.history} for s in seeds if s.history]
    runs = [{k: v for k, v in run.items() if np.isfinite(v)} for run in runs]
    runs = [run for run in runs if run]
    if not runs:
        return None
    epochs = sorted(set().union(*runs))
    if len(epochs) > POINTS:
        keep = np.unique(np.linspace(0, len(epochs) - 1, POINTS).round().astype(int))
        epochs = [epochs[k] for k in keep]
    there = [[run[e] for run in runs if e in run] for e in epochs]
    shared = next((k for k, values in enumerate(there) if len(values) < len(runs)), len(epochs))
    mean, low, high = (np.array([f(values) for values in there]) for f in (np.mean, min, max))
    return Curve(np.array(epochs), mean, low, high, shared)


def curves(seeds: Sequence[Seed], score: Score) -> Figure | None:
    """The figure of a job's training, or None where no seed kept its epochs."""
    whole = [s for s in seeds if s.history]
    if not whole:
        return None
    end = last_epoch(whole)
    told = [replace(s, history=tuple(e for e in s.history if e.epoch <= end)) for s in whole]
    panels = [
        _panel("losses", "loss", told, {"train_loss": (BLUE, "-"), "valid_loss": (ORANGE, "--")}, "valid_loss", None),
        _panel(
            "scores", "score", told, {"valid_score": (ORANGE, "--"), "test_score": (GREEN, "-")}, "test_score", score
        ),
    ]
    kept = [p for p in panels if p is not None]
    return Figure(kept, _caption(told) + _cut(whole, end)) if kept else None


def last_epoch(seeds: Sequence[Seed]) -> int:
    """Where curves end: at the last epoch of all, or some time after the last one that was selected.

    Example:
        >>> from pathlib import Path
        >>> from unspool.train import Epoch
        >>> history = tuple(Epoch(k, 1.0, 0, 0, 0) for k in range(1, 1001))
        >>> last_epoch([Seed("0", Path(), {"metrics": {"epoch": 50}}, history)]), last_epoch([Seed("0", Path(), {}, history)])
        (100, 1000)
    """
    last = max(s.history[-1].epoch for s in seeds)
    chosen = [s.metric("epoch") for s in seeds]
    known = [int(epoch) for epoch in chosen if epoch is not None]
    if len(known) < len(chosen):
        return last
    return min(last, max(2 * max(known), max(known) + AFTER))


def _cut(whole: list[Seed], end: int) -> str:
    last = max(s.history[-1].epoch for s in whole)
    return (
        f" Epochs {end + 1} to {last} were run, too, and are not drawn: none of them was better." if last > end else ""
    )


def _caption(told: list[Seed]) -> str:
    if len(told) == 1:
        words = "One seed."
    else:
        words = f"Lines are means over {len(told)} seeds, bands reach from the smallest to the largest."
    lengths = {s.history[-1].epoch for s in told}
    if len(lengths) > 1:
        words += f" Lines are thin after epoch {min(lengths)}, where the first seed ended; there the mean is over those that went on."
    if max(len(s.history) for s in told) > POINTS:
        words += f" Drawn at {POINTS} of the epochs."
    return (
        words
        + " The training loss is measured with dropout, before the step of its epoch; the others after it, without."
    )


def _panel(
    name: str, title: str, seeds: list[Seed], looks: dict[str, tuple[str, str]], marked: str, score: Score | None
) -> Panel | None:
    scale = 100.0 if score is not None and score.percent else 1.0
    found = {q: c for q in looks if (c := curve(seeds, q, scale)) is not None}
    if not found:
        return None
    dots = _selected(seeds, marked if marked in found else next(iter(found)), scale)

    def draw(axis: Any) -> None:
        for quantity, line in found.items():
            _draw(axis, line, *looks[quantity], _NAMES[quantity], len(seeds) > 1)
        if dots:
            each = "selected epoch" if len(seeds) == 1 else "selected epoch of each seed"
            axis.plot(*zip(*dots, strict=True), "o", color="black", markerfacecolor="none", markersize=6, label=each)
        known = score is not None and score.name in NAMED
        named = score.heading if score is not None and known else title
        finish(axis, f"{title} by epoch", "epoch", named)
        _whole(axis, max(int(line.epoch[-1]) for line in found.values()))

    return Panel(name, _label(title, seeds, found, 2 if scale == 100 else 4, " %" if scale == 100 else ""), draw)


def _draw(axis: Any, line: Curve, colour: str, dash: str, label: str, several: bool) -> None:
    if several:
        axis.fill_between(line.epoch, line.low, line.high, color=colour, alpha=0.2, linewidth=0)
    cut, dot = line.shared, "." if line.epoch.size == 1 else ""  # a line of one point cannot be seen
    axis.plot(line.epoch[:cut], line.mean[:cut], color=colour, linestyle=dash, marker=dot, linewidth=2, label=label)
    if cut < line.epoch.size:
        start = max(cut - 1, 0)
        axis.plot(line.epoch[start:], line.mean[start:], color=colour, linestyle=dash, linewidth=0.9)


def _selected(seeds: list[Seed], quantity: str, scale: float) -> list[tuple[float, float]]:
    """Where each seed's selected epoch lies on its own curve."""
    dots: list[tuple[float, float]] = []
    for seed in seeds:
        values = {e.epoch: float(getattr(e, quantity)) for e in seed.history}
        epoch = seed.metric("epoch")
        value = None if epoch is None else values.get(int(epoch))
        if epoch is not None and value is not None and np.isfinite(value):
            dots.append((epoch, scale * value))
    return dots


def _label(title: str, seeds: list[Seed], found: dict[str, Curve], digits: int, unit: str) -> str:
    parts = [
        f"the {_NAMES[q]} goes from {shown(c.mean[0].item(), digits)} to {shown(c.mean[-1].item(), digits)}{unit}"
        for q, c in found.items()
    ]
    last = max(int(c.epoch[-1]) for c in found.values())
    chosen = [f"{e:g}" for s in seeds if (e := s.metric("epoch")) is not None]
    words = (
        f"Line chart of the {title} over {counted(last, 'epoch')}, {counted(len(seeds), 'seed')}: {', '.join(parts)}"
    )
    return words + (f"; selected epochs {', '.join(chosen)}." if chosen else ".")


def _whole(axis: Any, last: int) -> None:
    from matplotlib.ticker import MaxNLocator

    axis.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=6))
    axis.set_xlim(0, max(last, 1) * 1.02)
