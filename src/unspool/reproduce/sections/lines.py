"""Pictures of scores against something that was varied: a line and a band for each model, and one key for all panels."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from unspool.report import Cell, Panel, Rows, Stroke, Table, shown, text_columns
from unspool.report.figure import GOLD, PINK, RED, SKY, VIOLET, finish
from unspool.reproduce.sections.names import MODEL_ORDER, dataset_title, order_of
from unspool.spectral.drawing import BLUE, GREEN, GREY, ORANGE

#: Colour and dashes of each model: fixed filters are dashed, learnt ones solid, those outside Table 2 dotted. No picture has a colour twice.
STROKES = {
    "UGDGNN": Stroke(ORANGE),
    "GPRGNN": Stroke(BLUE),
    "JKNet": Stroke(GREEN),
    "GCNII": Stroke(PINK),
    "DAGNN": Stroke(SKY),
    "APPNP": Stroke(VIOLET, "--"),
    "SGC": Stroke(GREY, "--"),
    "GCN": Stroke(RED, "--"),
    "AirGNN": Stroke(GOLD, ":"),
    "PPNP": Stroke(GREY, ":"),
    "MLP": Stroke(GREY, "-."),
    "LearntRows": Stroke(GREEN, "-."),
    "LearntSquares": Stroke(SKY, "--"),
    "WithNonNegative": Stroke(PINK, ":"),
    "WithoutNonNegative": Stroke(GREEN, ":"),
}
#: The two fidelities, where no network is around them.
_FIDELITIES = {"rows": ("‖H − X‖₂,₁", Stroke(GOLD)), "squares": ("‖H − X‖²", Stroke(BLUE, "--"))}
_OTHER_DASH = {"-": ":", ":": "-", "--": "-.", "-.": "--"}


@dataclass(frozen=True)
class Line:
    """A model's mean score, and its standard deviation where there is one, at each value of what was varied.

    Attributes:
        model: whose line it is.
        where, mean, spread: what was varied, and the scores.
        detail: what tells it from other lines of the model: a preset, a depth.

    Example:
        >>> line = Line("AirGNN", (1.0, 2.0), (70.0, 72.0), (0.5, None), "64 layers")
        >>> line.at(2.0), line.name, line.stroke.dash
        (72.0, 'AirGNN, 64 layers', '-')
    """

    model: str
    where: tuple[float, ...]
    mean: tuple[float, ...]
    spread: tuple[float | None, ...]
    detail: str = ""

    @property
    def name(self) -> str:
        """How it is written."""
        title = model_title(self.model)
        return f"{title}, {self.detail}" if self.detail else title

    @property
    def stroke(self) -> Stroke:
        """How it is drawn; a detail changes the dashes."""
        if self.model in _FIDELITIES:
            return _FIDELITIES[self.model][1]
        usual = STROKES.get(self.model, Stroke(GREY, ":"))
        return Stroke(usual.colour, _OTHER_DASH[usual.dash]) if self.detail else usual

    def at(self, value: float) -> float | None:
        """The mean at a value, where it was run."""
        return self.mean[self.where.index(value)] if value in self.where else None


def model_title(model: str) -> str:
    """How a model, or a fidelity, is written.

    Example:
        >>> model_title("rows"), model_title("GCN")
        ('‖H − X‖₂,₁', 'GCN')
    """
    return _FIDELITIES[model][0] if model in _FIDELITIES else model


def key_of(lines: Iterable[Line]) -> dict[str, Stroke]:
    """Which line is what, each once, in the order of the models."""
    ordered = sorted(lines, key=lambda line: (order_of(line.model, MODEL_ORDER), line.detail))
    return {line.name: line.stroke for line in ordered}


def lines_panel(
    name: str,
    title: str,
    across: str,
    lines: Sequence[Line],
    *,
    banded: str | None = None,
    shape: Callable[[Any], None] | None = None,
    upright: str = "test accuracy (%)",
) -> Panel:
    """One panel: all lines, thick and with a band of one standard deviation for the model that it is about.

    Args:
        name: letters and digits, unlike those of other panels.
        title: above the panel.
        across: what was varied.
        lines: one per model.
        banded: the model that stands out; all have bands when None.
        shape: the last word on the axis.
        upright: what the lines show.

    Example:
        >>> panel = lines_panel("one", "Cora", "depth", [Line("UGDGNN", (1.0, 2.0), (80.0, 83.0), (0.4, 0.3))])
        >>> panel.label
        'Cora: line chart against depth. UGDGNN goes from 80.00 at 1 to 83.00 at 2.'
    """
    ordered = sorted(lines, key=lambda line: (line.model == banded, order_of(line.model, MODEL_ORDER), line.detail))

    def draw(axis: Any) -> None:
        for line in ordered:
            around = [math.nan if s is None else s for s in line.spread]
            colour = line.stroke.colour
            if banded in (None, line.model) and not all(map(math.isnan, around)):
                low, high = ([m + sign * s for m, s in zip(line.mean, around, strict=True)] for sign in (-1, 1))
                axis.fill_between(line.where, low, high, color=colour, alpha=0.2, linewidth=0)
            width = 2.6 if line.model == banded else 1.6
            dot = "o" if line.model == banded or len(line.where) < 9 else ""  # many dots on many lines hide them
            style = {"linestyle": line.stroke.dash, "marker": dot, "markersize": 4, "linewidth": width}
            axis.plot(line.where, line.mean, color=colour, **style)
        finish(axis, title, across, upright)
        if shape is not None:
            shape(axis)

    told = "; ".join(_sentence(line) for line in reversed(ordered))
    return Panel(name, f"{title}: line chart against {across}. {told}.", draw)


def one_scale(panels: Iterable[Sequence[Line]]) -> Callable[[Any], None]:
    """The same upright axis for panels that are compared: from the lowest to the highest of all lines, bands included.

    Example:
        >>> from types import SimpleNamespace
        >>> lines = [Line("GCN", (1.0, 2.0), (70.0, 80.0), (None, 1.0))]
        >>> one_scale([lines])(SimpleNamespace(set_ylim=lambda *ends: print(*ends)))
        69.56 81.44
    """
    ends = [
        m + sign * (0 if s is None else s)
        for lines in panels
        for line in lines
        for m, s in zip(line.mean, line.spread, strict=True)
        for sign in (-1, 1)
    ]

    def shape(axis: Any) -> None:
        margin = 0.04 * (max(ends) - min(ends)) if ends else 0.0
        if margin:
            axis.set_ylim(min(ends) - margin, max(ends) + margin)

    return shape


def lines_table(by_dataset: dict[str, list[Line]], head: str, what: str) -> Table:
    """The numbers of some lines."""
    where = sorted({k for lines in by_dataset.values() for line in lines for k in line.where})
    columns = [*text_columns("dataset", "model"), *(f"{head} = {k:g}" for k in where)]
    rows: Rows = [
        [dataset_title(data), line.name, *(Cell.number(line.at(k)) for k in where)]
        for data, lines in by_dataset.items()
        for line in lines
    ]
    return Table(f"Mean test accuracy (%) {what}", columns, rows)


def _sentence(line: Line) -> str:
    start, end = (shown(v, 2) for v in (line.mean[0], line.mean[-1]))
    return f"{line.name} goes from {start} at {line.where[0]:g} to {end} at {line.where[-1]:g}"
