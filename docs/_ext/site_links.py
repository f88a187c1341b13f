"""Every link inside the built site leads to a page, a file and a place that exist: checked without a network."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    """What a page links to, and the names of places in it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: set[str] = set()
        self.places: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Called for each element."""
        for name, value in attrs:
            if value and (name == "id" or (name == "name" and tag == "a")):
                self.places.add(value)
            elif value and name in ("href", "src"):
                self.links.add(value)


def broken_links(folder: Path) -> list[str]:
    """``page -> link`` for each link inside the site that leads nowhere."""
    pages = {file.resolve(): Page(file.read_text(encoding="utf-8")) for file in folder.rglob("*.html")}
    found: list[str] = []
    for file, page in pages.items():
        for link in sorted(page.links):
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (file.parent / unquote(parts.path)).resolve() if parts.path else file
            place = unquote(parts.fragment)
            # What the explorer keeps after the # is its state, not a place.
            known = target not in pages or not place or place in pages[target].places or target.name == "explorer.html"
            if not target.exists() or not known:
                found.append(f"{file.relative_to(folder.resolve())} -> {link}")
    return found


def check(app: Any, problem: Exception | None) -> None:
    """After the pages are written; each broken link is a warning, and warnings fail the build."""
    from sphinx.util import logging

    logger = logging.getLogger(__name__)
    if problem is None and app.builder.format == "html":
        for broken in broken_links(Path(app.outdir)):
            logger.warning("a link leads nowhere: %s", broken)


def setup(app: Any) -> dict[str, bool]:
    """Called by Sphinx."""
    app.connect("build-finished", check, priority=900)  # after the explorer has been written
    return {"parallel_read_safe": True, "parallel_write_safe": True}
