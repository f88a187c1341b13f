"""Figures as inline SVG: drawn by matplotlib, coloured by the page, read aloud as a sentence."""

from __future__ import annotations

import importlib
import io
import re
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from unspool.report.text import to_html, to_markdown
from unspool.spectral.plot import BLUE, GREEN, GREY, ORANGE, PALE

#: More of Okabe and Ito's colours, for pictures with many lines.
SKY, PINK, GOLD = "#56B4E9", "#CC79A7", "#E69F00"

#: What drawing with these colours becomes on the page, where light and dark each have their own.
COLOURS = {
    BLUE: "blue", ORANGE: "orange", GREEN: "green", GREY: "grey", PALE: "pale", SKY: "sky", PINK: "pink", GOLD: "gold",
}  # fmt: skip

#: Inches, at 72 units each: on a phone a panel is as wide as the page and its letters keep their size.
SIZE = (4.6, 3.5)

MISSING = "Figures are left out because matplotlib is not installed: pip install 'unspool[plot]', then write the report again."


@dataclass(frozen=True)
class Panel:
    """One drawing, and what it shows in a sentence with its numbers.

    Example:
        >>> panel = Panel.drawn("line", "A line from 0 to 1.", lambda axis: axis.plot([0, 1], [0, 1]))
        >>> panel.svg[:37], "A line from 0 to 1." in panel.svg
        ('<svg role="img" aria-label="A line fr', True)
    """

    svg: str
    label: str

    @staticmethod
    def drawn(name: str, label: str, draw: Callable[[Any], Any]) -> Panel:
        """Let ``draw`` fill a matplotlib axis; ``name`` (letters and digits) must differ from panel to panel of a page."""
        with _same_everywhere():
            from matplotlib.figure import Figure as Canvas

            canvas = Canvas(figsize=SIZE, layout="constrained")
            draw(canvas.subplots())
            file = io.StringIO()
            canvas.savefig(file, format="svg", transparent=True, metadata={"Date": None})
        return Panel(inline(file.getvalue(), name, label), label)


@dataclass(frozen=True)
class Figure:
    """Panels side by side, or one below the other where the page is narrow, over a caption.

    Example:
        >>> Figure([], "Nothing to see.").html()
        '<figure>\\n<div class="panels">\\n\\n</div>\\n<figcaption>Nothing to see.</figcaption>\\n</figure>'
    """

    panels: Sequence[Panel]
    caption: str

    def html(self) -> str:
        """A figure with its caption."""
        drawings = "\n".join(p.svg for p in self.panels)
        return f'<figure>\n<div class="panels">\n{drawings}\n</div>\n<figcaption>{to_html(self.caption)}</figcaption>\n</figure>'

    def markdown(self) -> str:
        """The sentences, and the caption."""
        return "\n".join(f"- {to_markdown(p.label)}" for p in self.panels) + f"\n\n{to_markdown(self.caption)}"


def can_draw() -> bool:
    """Whether matplotlib is here."""
    try:
        importlib.import_module("matplotlib.figure")
    except ImportError:
        return False
    return True


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
