"""Pictures of scores against something that was varied: a line and a band for each model, and one key for all panels."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from unspool.report.figure import COLOURS, GOLD, PINK, SKY, Panel, finish
from unspool.report.text import shown, to_html
from unspool.reproduce.page_cells import ORDER, place
from unspool.spectral.plot import BLUE, GREEN, GREY, ORANGE

#: Colour and dashes of each model: fixed filters are dashed, learnt ones solid, those outside Table 2 dotted.
LOOKS: dict[str, tuple[str, str]] = {
    "UGDGNN": (ORANGE, "-"), "GPRGNN": (BLUE, "-"), "JKNet": (GREEN, "-"), "GCNII": (PINK, "-"), "DAGNN": (SKY, "-"),
    "APPNP": (BLUE, "--"), "SGC": (GREEN, "--"), "GCN": (PINK, "--"), "AirGNN": (GOLD, ":"), "PPNP": (GREY, ":"), "MLP": (GREY, "--"),
    "LearntRows": (GOLD, "-."), "LearntSquares": (SKY, "--"), "WithNonNegative": (PINK, ":"), "WithoutNonNegative": (GREEN, ":"),
}  # fmt: skip

#: The two fidelities, where no network is around them.
_NORMS = {"‖H − X‖₂,₁": (GOLD, "-"), "‖H − X‖²": (BLUE, "--")}

_DASHES = {"-": "", "--": "6 3", ":": "2 3", "-.": "6 3 2 3"}


@dataclass(frozen=True)
class Line:
    """A model's mean score, and its standard deviation where there is one, at each value of what was varied.

    Example:
        >>> Line("GCN", (1.0, 2.0), (70.0, 72.0), (0.5, None)).at(2.0)
        72.0
    """

    name: str
    where: tuple[float, ...]
    mean: tuple[float, ...]
    spread: tuple[float | None, ...]

    def at(self, value: float) -> float | None:
        """The mean at a value, where it was run."""
        return self.mean[self.where.index(value)] if value in self.where else None


@dataclass(frozen=True)
class Key:
    """Which line is which model, as text beside small strokes.

    Example:
        >>> Key(["GCN"]).markdown()
        ''
        >>> "GCN" in Key(["GCN"]).html()
        True
    """

    names: Sequence[str]

    def html(self) -> str:
        """A list that wraps."""
        return f'<ul class="key">{"".join(self._entry(n) for n in self.names)}</ul>'

    def markdown(self) -> str:
        """Nothing: without the picture there is nothing to tell apart."""
        return ""

    def _entry(self, name: str) -> str:
        colour, dash = look(name)
        stroke = f'stroke="var(--{COLOURS[colour]})" stroke-width="3" stroke-dasharray="{_DASHES[dash]}"'
        swatch = f'<svg viewBox="0 0 36 12" aria-hidden="true"><path d="M 0 6 H 36" {stroke}/></svg>'
        return f"<li>{swatch}{to_html(name)}</li>"


def look(name: str) -> tuple[str, str]:
    """Colour and dashes of a model; what follows a comma (a depth, a preset) changes the dashes.

    Example:
        >>> look("Unknown")[1], look("AirGNN")[1], look("AirGNN, 64 layers")[1]
        (':', ':', '-')
    """
    if name in _NORMS:
        return _NORMS[name]
    base, _, more = name.partition(", ")
    colour, dash = LOOKS.get(base, (GREY, ":"))
    return (colour, {"-": ":", ":": "-", "--": "-.", "-.": "--"}[dash]) if more else (colour, dash)


def lines_panel(
    name: str, title: str, across: str, lines: Sequence[Line], *, banded: str | None = None, shape: Callable[[Any], None] | None = None,
    upright: str = "test accuracy (%)",
) -> Panel:  # fmt: skip
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
    ordered = sorted(lines, key=lambda line: (line.name == banded, place(line.name, ORDER)))

    def draw(axis: Any) -> None:
        for line in ordered:
            colour, dash = look(line.name)
            around = [math.nan if s is None else s for s in line.spread]
            if banded in (None, line.name) and not all(map(math.isnan, around)):
                low = [m - s for m, s in zip(line.mean, around, strict=True)]
                high = [m + s for m, s in zip(line.mean, around, strict=True)]
                axis.fill_between(line.where, low, high, color=colour, alpha=0.2, linewidth=0)
            width = 2.6 if line.name == banded else 1.6
            dot = "o" if line.name == banded or len(line.where) < 9 else ""  # many dots on many lines hide them
            axis.plot(line.where, line.mean, color=colour, linestyle=dash, marker=dot, markersize=4, linewidth=width)
        finish(axis, title, across, upright)
        if shape is not None:
            shape(axis)

    told = [_told(line) for line in reversed(ordered)]
    return Panel.drawn(name, f"{title}: line chart against {across}. {'; '.join(told)}.", draw)


def _told(line: Line) -> str:
    start, end = (shown(v, 2) for v in (line.mean[0], line.mean[-1]))
    return f"{line.name} goes from {start} at {line.where[0]:g} to {end} at {line.where[-1]:g}"
