"""Figures as inline SVG: drawn by matplotlib, coloured by the page, read aloud as a sentence."""

from __future__ import annotations

import importlib.util
import io
import re
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from typing import Any

from unspool.report.table import Table
from unspool.report.text import to_html, to_markdown
from unspool.spectral.drawing import BLUE, GREEN, GREY, ORANGE, PALE

#: More colours, for pictures with many lines: three of Okabe and Ito's, and two that keep apart from all of theirs.
SKY, PINK, GOLD, VIOLET, RED = "#56B4E9", "#CC79A7", "#E69F00", "#6F46B8", "#C01F2E"

#: What drawing with these colours becomes on the page, where light and dark each have their own.
COLOURS = {
    BLUE: "blue", ORANGE: "orange", GREEN: "green", GREY: "grey", PALE: "pale", SKY: "sky", PINK: "pink", GOLD: "gold",
    VIOLET: "violet", RED: "red",
}  # fmt: skip

_DASHES = {"-": "", "--": "6 3", ":": "2 3", "-.": "6 3 2 3"}


class Shape(Enum):
    """How large a panel is, in inches of 72 units.

    ``PANEL``: on a phone as wide as the page, where its letters keep their size. ``WIDE``: a row of its own, which scrolls on a phone.
    """

    PANEL = (4.6, 3.5)
    WIDE = (9.6, 4.2)


MISSING = "Figures are left out because matplotlib is not installed: pip install 'unspool[plot]', then write the report again."


@dataclass(frozen=True, eq=False)
class Panel:
    """One drawing, and what it shows in a sentence with its numbers; it is drawn when somebody wants to see it.

    Args:
        name: letters and digits, unlike those of other panels of a page.
        label: the sentence.
        draw: fills a matplotlib axis.
        shape: how large it is.

    Example:
        >>> panel = Panel("line", "A line from 0 to 1.", lambda axis: axis.plot([0, 1], [0, 1]))
        >>> panel.svg[:37], "A line from 0 to 1." in panel.svg
        ('<svg role="img" aria-label="A line fr', True)
    """

    name: str
    label: str
    draw: Callable[[Any], Any]
    shape: Shape = Shape.PANEL

    @cached_property
    def svg(self) -> str:
        """A part of a page."""
        with _same_everywhere():
            from matplotlib.figure import Figure as Canvas

            canvas = Canvas(figsize=self.shape.value, layout="constrained")
            self.draw(canvas.subplots())
            file = io.StringIO()
            canvas.savefig(file, format="svg", transparent=True, metadata={"Date": None})
        return inline(file.getvalue(), self.name, self.label)

    def html(self) -> str:
        """The drawing, a wide one in a box that scrolls and that a keyboard can reach."""
        if self.shape is Shape.PANEL:
            return self.svg
        return f'<div class="wide" role="region" aria-label="{to_html(self.label)}" tabindex="0">{self.svg}</div>'


@dataclass(frozen=True)
class Stroke:
    """How a line is drawn: a colour, and dashes as matplotlib writes them."""

    colour: str
    dash: str = "-"

    def html(self) -> str:
        """A short piece of it."""
        stroke = f'stroke="var(--{COLOURS[self.colour]})" stroke-width="3" stroke-dasharray="{_DASHES[self.dash]}"'
        return f'<svg viewBox="0 0 36 12" aria-hidden="true"><path d="M 0 6 H 36" {stroke}/></svg>'


@dataclass(frozen=True, eq=False)
class Figure:
    """Panels side by side, or one below the other where the page is narrow, over a caption.

    Without matplotlib a page has no drawings, and says so; a terminal shows the numbers in their place.

    Args:
        panels: the drawings.
        caption: below them.
        key: which line is what, above them, where the panels share their lines.
        numbers: what is drawn, as tables; a page folds them away.

    Example:
        >>> Figure([], "Nothing to see.").html()
        '<figure>\\n<div class="panels">\\n\\n</div>\\n<figcaption>Nothing to see.</figcaption>\\n</figure>'
    """

    panels: Sequence[Panel]
    caption: str
    key: Mapping[str, Stroke] = field(default_factory=dict[str, Stroke])
    numbers: Sequence[Table] = ()

    def html(self) -> str:
        """A figure with its caption, and its numbers behind a line that opens them."""
        inner = "\n".join(table.html() for table in self.numbers)
        numbers = f"<details><summary>The numbers of this figure</summary>\n{inner}\n</details>" if inner else ""
        if not can_draw():
            return inner
        drawings = "\n".join(p.html() for p in self.panels)
        # Three stand in a row, unless that would leave one alone in the last.
        kind = "panels pairs" if len(self.panels) % 6 == 4 else "panels"
        entries = "".join(f"<li>{stroke.html()}{to_html(name)}</li>" for name, stroke in self.key.items())
        key = f'<ul class="key">{entries}</ul>\n' if entries else ""
        caption = f"<figcaption>{to_html(self.caption)}</figcaption>"
        return f'{key}<figure>\n<div class="{kind}">\n{drawings}\n</div>\n{caption}\n</figure>{numbers}'

    def markdown(self) -> str:
        """The sentences, the caption, and the numbers."""
        labels = "\n".join(f"- {to_markdown(panel.label)}" for panel in self.panels)
        return "\n\n".join([labels, to_markdown(self.caption), *(table.markdown() for table in self.numbers)])


def can_draw() -> bool:
    """Whether matplotlib is here."""
    try:
        return importlib.util.find_spec("matplotlib.figure") is not None
    except ImportError:
        return False


def inline(svg: str, name: str, label: str) -> str:
    """Make matplotlib's SVG file a part of a page.

    The prolog, metadata and global style go; ids that are pointed at get names that are the same in every run and differ between
    panels; known colours become the page's, black becomes the colour of its text, fonts its fonts; coordinates keep one decimal.

    Example:
        >>> inline('<?xml?><svg width="2pt" viewBox="0 0 2 2"><path id="a" d="M 1.23456 0" style="stroke: #0072b2"/></svg>', "n", "L")
        '<svg role="img" aria-label="L" viewBox="0 0 2 2"><path d="M 1.2 0" style="stroke: var(--blue)"/></svg>'
    """
    text = svg[svg.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>|<style.*?</style>|<!--.*?-->", "", text, flags=re.S)
    box = re.search(r'viewBox="([^"]*)"', text)
    opening = f'<svg role="img" aria-label="{to_html(label)}" viewBox="{box.group(1) if box else "0 0 1 1"}">'
    text = _named(re.sub(r"<svg[^>]*>", "", text, count=1), name)
    for colour, variable in COLOURS.items():
        text = re.sub(colour, f"var(--{variable})", text, flags=re.I)
    text = re.sub(r"#000000|\bblack\b", "currentColor", text)
    text = re.sub(r"font: ?([\d.]+px)[^;\"]*", r"font-size: \1", text)
    text = re.sub(r"font-family:[^;\"]*;? ?| transform=\"rotate\(-0 [^\"]*\"", "", text)
    text = re.sub(r' d="[^"]*"', lambda d: _short(d.group()), text)
    text = re.sub(r' (x|y)="-?\d+\.\d+"', lambda place: _short(place.group()), text)
    text = re.sub(r"<g>\s*</g>|<defs>\s*</defs>", "", text)
    return opening + re.sub(r"\s*\n\s*", "\n", text).strip()


def finish(axis: Any, title: str, xlabel: str, ylabel: str, columns: int = 2) -> None:
    """What every panel has: a title, names of axes, no box, a legend below."""
    axis.set_title(title, fontsize=11, loc="left")
    axis.set_xlabel(xlabel, fontsize=10)
    axis.set_ylabel(ylabel, fontsize=10)
    axis.tick_params(labelsize=10, color=GREY)
    axis.grid(visible=True, axis="y", color=PALE, linewidth=0.8)
    axis.set_axisbelow(True)
    for side, line in axis.spines.items():
        line.set_visible(side in ("left", "bottom"))
        line.set_color(GREY)
    handles, _ = axis.get_legend_handles_labels()
    if handles:
        axis.figure.legend(loc="outside lower left", ncols=columns, fontsize=10, frameon=False, handlelength=2.4)


@contextmanager
def _same_everywhere() -> Generator[None]:
    """Matplotlib's own defaults, whatever a user's settings: the same numbers give the same bytes."""
    import matplotlib as mpl

    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "unspool", "path.simplify": False})
        yield


def _named(text: str, name: str) -> str:
    used = list(dict.fromkeys(re.findall(r'(?:url\(#|href="#)([^)"]+)', text)))
    new = {old: f"{name}-{place}" for place, old in enumerate(used)}
    text = re.sub(r' id="([^"]*)"', lambda m: f' id="{new[m.group(1)]}"' if m.group(1) in new else "", text)
    text = re.sub(r'xlink:href="#([^"]+)"', lambda m: f'href="#{new[m.group(1)]}"', text)
    return re.sub(r"url\(#([^)]+)\)", lambda m: f"url(#{new[m.group(1)]})", text)


def _short(numbers: str) -> str:
    """One decimal is a tenth of a point."""
    return re.sub(r"-?\d+\.\d+", lambda n: f"{round(float(n.group()), 1) + 0.0:g}", numbers)
