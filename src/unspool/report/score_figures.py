"""Pictures of what lies behind a score: how far probabilities can be trusted, and where numbers miss."""

from __future__ import annotations

from typing import Any

import numpy as np

from unspool.evaluate import Bin
from unspool.report.evidence import Evidence, pooled
from unspool.report.figure import Figure, Panel, finish
from unspool.report.table import Cell, Column, Table
from unspool.report.text import counted, shown
from unspool.spectral.drawing import BLUE, GREY, ORANGE


def reliability_figure(found: Evidence) -> Figure | None:
    """How often a confidence came true, before and after calibration; and how confident the model is."""
    raw = [e.raw for e in found.evaluations if e.raw is not None]
    mild = [e.calibrated for e in found.evaluations if e.calibrated is not None]
    if not raw:
        return None
    lines = {"raw": (pooled(raw), ORANGE, "o--")}
    if mild:
        lines["calibrated"] = (pooled(mild), BLUE, "o-")
    panels = [_reliability_panel(lines), _confidence_panel(lines)]
    words = (
        "Of the test nodes about which the model is, say, 80 % sure, 80 % should be right: then points lie on the diagonal. Below it the model is "
        "too sure, above it it is right more often than it says. Points stand where their nodes are on average, and larger ones for more nodes."
    )
    return Figure(panels, words, numbers=[_bin_table(lines)])


_Lines = dict[str, tuple[tuple[Bin, ...], str, str]]


def _reliability_panel(lines: _Lines) -> Panel:
    def draw(axis: Any) -> None:
        axis.plot([0, 1], [0, 1], color=GREY, linewidth=1, linestyle=":")
        for name, (bins, colour, style) in lines.items():
            there = [b for b in bins if b.nodes]
            x, y = [b.confidence for b in there], [b.accuracy for b in there]
            most = max((b.nodes for b in there), default=1)
            axis.plot(x, y, style[1:], color=colour, linewidth=1.6, label=name)
            axis.scatter(x, y, s=[12 + 60 * b.nodes / most for b in there], color=colour, zorder=3)
        finish(axis, "reliability", "probability of the predicted class", "share that is right")
        axis.set_xlim(0, 1.03)
        axis.set_ylim(0, 1.03)

    said = "; ".join(
        f"{name}: " + ", ".join(f"{shown(b.confidence, 2)} → {shown(b.accuracy, 2)}" for b in bins if b.nodes)
        for name, (bins, _, _) in lines.items()
    )
    return Panel("reliability", f"Reliability diagram, mean confidence → share that is right. {said}.", draw)


def _confidence_panel(lines: _Lines) -> Panel:
    shares = {name: _shares(bins) for name, (bins, _, _) in lines.items()}

    def draw(axis: Any) -> None:
        wide = 0.8 / len(lines)
        for k, (name, (bins, colour, _)) in enumerate(lines.items()):
            place = [(b.low + b.high) / 2 + (k - (len(lines) - 1) / 2) * wide * (b.high - b.low) for b in bins]
            axis.bar(place, shares[name], width=wide * 0.1, color=colour, label=name)
        finish(axis, "how sure it is", "probability of the predicted class", "share of the test nodes (%)")
        axis.set_xlim(0, 1.0)

    said = "; ".join(f"{name}, {shown(values[-1], 1)} % are above 0.9" for name, values in shares.items())
    return Panel("confidence", f"Bar chart of how sure the model is of its answers: {said}.", draw)


def _shares(bins: tuple[Bin, ...]) -> list[float]:
    total = max(sum(b.nodes for b in bins), 1)
    return [100 * b.nodes / total for b in bins]


def _bin_table(lines: _Lines) -> Table:
    heads = [
        Column("probabilities", numbers=False),
        "from",
        "to",
        "test nodes",
        "mean probability",
        "share that is right",
    ]
    rows = [
        [
            name,
            Cell.number(b.low, 1),
            Cell.number(b.high, 1),
            Cell.count(b.nodes),
            Cell.number(b.confidence, 3),
            Cell.number(b.accuracy, 3),
        ]
        for name, (bins, _, _) in lines.items()
        for b in bins
        if b.nodes
    ]
    return Table("Reliability", heads, rows)


def residual_figure(found: Evidence) -> Figure | None:
    """Predicted against true numbers, and the errors."""
    points = next((e.points for e in found.evaluations if e.points), ())
    if not points:
        return None
    truth, said = np.array(points).T
    apart = said - truth
    low, high = float(min(truth.min(), said.min())), float(max(truth.max(), said.max()))

    def draw(axis: Any) -> None:
        axis.plot([low, high], [low, high], color=GREY, linewidth=1, linestyle=":")
        axis.scatter(truth, said, s=12, color=BLUE, alpha=0.55, linewidths=0)
        finish(axis, "predicted and true", "true", "predicted")

    def draw_errors(axis: Any) -> None:
        axis.axhline(0, color=GREY, linewidth=1, linestyle=":")
        axis.scatter(said, apart, s=12, color=ORANGE, alpha=0.55, linewidths=0)
        finish(axis, "errors", "predicted", "predicted − true")

    spread = [shown(float(v)) for v in np.quantile(apart, [0.05, 0.5, 0.95])]
    panels = [
        Panel("predicted", f"Scatter plot of predicted against true numbers of {counted(truth.size, 'test node')}, from {low:.4g} to {high:.4g}.", draw),
        Panel("errors", f"Scatter plot of errors against predictions; 5 % lie below {spread[0]}, half below {spread[1]}, 95 % below {spread[2]}.", draw_errors),
    ]  # fmt: skip
    seed = f" of seed {found.seeds[0].name}" if len(found.seeds) > 1 else ""
    words = f"Test nodes{seed}; on the dotted lines predictions are exact. A slope or a fan in the errors means that something is left to learn."
    return Figure(panels, words)
