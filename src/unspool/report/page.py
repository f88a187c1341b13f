"""A page as a value: sections of blocks, written as one HTML file that needs nothing else, and as Markdown."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from importlib.resources import files
from typing import Protocol

from unspool.report.figure import MISSING, Figure, can_draw
from unspool.report.text import Mark, clean, lowered, to_html, to_markdown


class Block(Protocol):
    """Anything that can stand in a section: a paragraph, a table, a figure."""

    def html(self) -> str:
        """As HTML."""
        ...

    def markdown(self) -> str:
        """As Markdown; empty where there is nothing to say in words."""
        ...


@dataclass(frozen=True)
class Paragraph:
    """A sentence or a few, with pieces in a tone.

    Example:
        >>> Paragraph(["one ", "two"]).html()
        '<p>one two</p>'
    """

    pieces: Sequence[str | Mark]
    kind: str = ""

    def html(self) -> str:
        """A paragraph, of the style's class ``kind``."""
        inner = "".join(p.html() if isinstance(p, Mark) else to_html(p) for p in self.pieces)
        return f'<p class="{self.kind}">{inner}</p>' if self.kind else f"<p>{inner}</p>"

    def markdown(self) -> str:
        """The words on one line."""
        return to_markdown("".join(p.text if isinstance(p, Mark) else p for p in self.pieces))


@dataclass(frozen=True)
class Maths:
    """A formula in Unicode; what follows an underscore stands lower.

    Example:
        >>> Maths("‖B H‖²_Wₖ  +  ‖H‖²_(I − Wₖ)").html()
        '<p class="maths">‖B H‖²<sub>Wₖ</sub>  +  ‖H‖²<sub>I − Wₖ</sub></p>'
    """

    text: str

    def html(self) -> str:
        """Real text, in a font with the signs of mathematics."""
        return f'<p class="maths">{lowered(self.text)}</p>'

    def markdown(self) -> str:
        """The formula as it prints."""
        return fenced(self.text)


@dataclass(frozen=True)
class Code:
    """Something to type.

    Example:
        >>> Code("unspool train").html()
        '<pre tabindex="0"><code>unspool train</code></pre>'
    """

    text: str

    def html(self) -> str:
        """Preformatted; scrolls in its box."""
        lines = "\n".join(to_html(line) for line in self.text.splitlines())  # each as long as a text may be
        return f'<pre tabindex="0"><code>{lines}</code></pre>'

    def markdown(self) -> str:
        """In a fence."""
        return fenced(self.text)


@dataclass(frozen=True)
class Notes:
    """Sentences, one below the other.

    Example:
        >>> Notes(["a", "b"]).markdown()
        '- a\\n- b'
    """

    sentences: Sequence[str]

    def html(self) -> str:
        """A list."""
        return "<ul>" + "".join(f"<li>{to_html(s)}</li>" for s in self.sentences) + "</ul>"

    def markdown(self) -> str:
        """A list."""
        return "\n".join(f"- {to_markdown(s)}" for s in self.sentences)


@dataclass(frozen=True)
class Folded:
    """Blocks behind a line that opens them, such as the numbers of a figure.

    Example:
        >>> Folded("the numbers", [Paragraph(["1"])]).html()
        '<details><summary>the numbers</summary>\\n<p>1</p>\\n</details>'
    """

    summary: str
    blocks: Sequence[Block]

    def html(self) -> str:
        """Closed until it is opened; printed open."""
        inner = "\n".join(b.html() for b in self.blocks)
        return f"<details><summary>{to_html(self.summary)}</summary>\n{inner}\n</details>"

    def markdown(self) -> str:
        """The blocks."""
        return "\n\n".join(b.markdown() for b in self.blocks)


@dataclass(frozen=True)
class Heading:
    """A heading inside a section.

    Example:
        >>> Heading("By depth").html(), Heading("By depth").markdown()
        ('<h3>By depth</h3>', '### By depth')
    """

    text: str

    def html(self) -> str:
        """One level below the section's own."""
        return f"<h3>{to_html(self.text)}</h3>"

    def markdown(self) -> str:
        """The same level in Markdown."""
        return f"### {to_markdown(self.text)}"


@dataclass(frozen=True)
class Contents:
    """Where to find the sections of a page, in their order.

    Example:
        >>> Contents(["One"]).html()
        '<nav aria-label="Contents"><ol><li><a href="#part-1">One</a></li></ol></nav>'
    """

    headings: Sequence[str]

    def html(self) -> str:
        """Links to the headings that :class:`Page` writes."""
        links = (f'<li><a href="#part-{k}">{to_html(h)}</a></li>' for k, h in enumerate(self.headings, 1))
        return f'<nav aria-label="Contents"><ol>{"".join(links)}</ol></nav>'

    def markdown(self) -> str:
        """Nothing: places that show Markdown make a list of their own."""
        return ""


class Shown(Enum):
    """Whether the blocks of a section are seen at once, or behind its heading until somebody opens it; printed they are open."""

    OPEN = "open"
    FOLDED = "folded"


@dataclass(frozen=True)
class Section:
    """Blocks under a heading.

    Args:
        heading: the title of the section.
        blocks: what is under it.
        gist: half a sentence that stands beside the heading, so that a reader knows whether to open it.
        shown: whether the blocks are seen at once.

    Example:
        >>> print(Section("Depth", [Paragraph(["Text."])], "6 of 6 claims hold", Shown.FOLDED).html(2))
        <section aria-labelledby="part-2">
        <details class="part"><summary><h2 id="part-2">Depth</h2> <span class="gist">6 of 6 claims hold</span></summary>
        <p>Text.</p>
        </details>
        </section>
    """

    heading: str
    blocks: Sequence[Block]
    gist: str = ""
    shown: Shown = Shown.OPEN

    def html(self, place: int) -> str:
        """As HTML; ``place`` is its number on the page."""
        gist = f' <span class="gist">{to_html(self.gist)}</span>' if self.gist else ""
        head = f'<h2 id="part-{place}">{to_html(self.heading)}</h2>{gist}'
        inner = "\n".join(b.html() for b in self.blocks)
        if self.shown is Shown.FOLDED:
            head, inner = f'<details class="part"><summary>{head}</summary>', f"{inner}\n</details>"
        return f'<section aria-labelledby="part-{place}">\n{head}\n{inner}\n</section>'

    def markdown(self) -> list[str]:
        """As pieces of Markdown, which has no folds."""
        gist = [to_markdown(self.gist)] if self.gist else []
        return [f"## {to_markdown(self.heading)}", *gist, *(b.markdown() for b in self.blocks)]


@dataclass(frozen=True)
class Page:
    """A title, what comes first, and sections.

    The HTML holds its style and its script, allows nothing from outside (a content security policy says so), follows the reader's
    choice of light or dark, and never scrolls sideways.

    Example:
        >>> page = Page("A title", [Paragraph(["First."])], [Section("One", [Paragraph(["Text."])])])
        >>> print(page.markdown())
        # A title
        <BLANKLINE>
        First.
        <BLANKLINE>
        ## One
        <BLANKLINE>
        Text.
        <BLANKLINE>
        >>> page.html().splitlines()[:2]
        ['<!DOCTYPE html>', '<html lang="en">']
    """

    title: str
    lead: Sequence[Block]
    sections: Sequence[Section]
    foot: str = ""

    def blocks(self) -> Iterator[Block]:
        """Everything on the page, what is behind folds included."""
        yield from unfolded(self._lead())
        for section in self.sections:
            yield from unfolded(section.blocks)

    def _lead(self) -> list[Block]:
        drawn = any(isinstance(block, Figure) for section in self.sections for block in unfolded(section.blocks))
        return [*self.lead, *([Paragraph([MISSING], "warning")] if drawn and not can_draw() else [])]

    def html(self) -> str:
        """The whole file."""
        style, script = _kept("page.css"), _kept("sort.js")
        digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        policy = f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'"
        body = [f"<h1>{to_html(self.title)}</h1>", *(b.html() for b in self._lead())]
        body += [section.html(place) for place, section in enumerate(self.sections, 1)]
        if self.foot:
            body.append(f'<p class="quiet">{to_html(self.foot)}</p>')
        return "\n".join(
            [
                "<!DOCTYPE html>", '<html lang="en">', "<head>", '<meta charset="utf-8">',
                f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
                '<meta name="viewport" content="width=device-width, initial-scale=1">',
                '<meta name="color-scheme" content="light dark">', f"<title>{to_html(self.title)}</title>",
                f"<style>{style}</style>", "</head>", "<body>",
                '<a class="skip" href="#start">Skip to the content</a>', '<main id="start" tabindex="-1">', *body, "</main>",
                f"<script>{script}</script>", "</body>", "</html>", "",
            ]
        )  # fmt: skip

    def markdown(self) -> str:
        """The same words and tables; figures as the sentences that describe them."""
        parts = [f"# {to_markdown(self.title)}", *(b.markdown() for b in self._lead())]
        for section in self.sections:
            parts += section.markdown()
        if self.foot:
            parts.append(to_markdown(self.foot))
        return "\n\n".join(p for p in parts if p) + "\n"


def unfolded(blocks: Iterable[Block]) -> Iterator[Block]:
    """All blocks, and after each fold and figure what it holds.

    Example:
        >>> [block.markdown() for block in unfolded([Folded("more", [Paragraph(["1"])])])]
        ['1', '1']
    """
    for block in blocks:
        yield block
        if isinstance(block, Folded):
            yield from unfolded(block.blocks)
        if isinstance(block, Figure):
            yield from block.numbers


def fenced(text: str) -> str:
    """Text in a fence of Markdown that nothing inside can close.

    Example:
        >>> print(fenced("a"))
        ```
        a
        ```
    """
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    lines = "\n".join(clean(line) for line in text.splitlines())
    return f"{fence}\n{lines}\n{fence}"


def _kept(name: str) -> str:
    return files("unspool.report").joinpath(name).read_text(encoding="utf-8")
