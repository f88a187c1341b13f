"""Links that leave ``docs/`` lead to the repository; the changelog, which lies outside, becomes a page."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

REPOSITORY = "https://github.com/unspool/unspool/blob/main/"


def outward(text: str) -> str:
    """Relative links that leave the folder of the pages, as addresses in the repository."""
    return re.sub(r"\]\(\.\./(?!docs/)([^)]+)\)", rf"]({REPOSITORY}\1)", text)


def on_read(app: Any, docname: str, source: list[str]) -> None:
    """Before a page is parsed."""
    source[0] = outward(source[0])


def write_changelog(app: Any) -> None:
    """``CHANGELOG.md`` with links as they are seen from ``docs/``."""
    folder = Path(app.srcdir)
    text = (folder.parent / "CHANGELOG.md").read_text(encoding="utf-8")
    text = re.sub(r"\]\(docs/([^)]+)\)", r"](\1)", text)
    text = re.sub(r"\]\((?!https?:|#|[\w-]+\.md)([^)]+)\)", rf"]({REPOSITORY}\1)", text)
    page = folder / "changelog.md"
    if not page.exists() or page.read_text(encoding="utf-8") != text:
        page.write_text(text, encoding="utf-8")


def setup(app: Any) -> dict[str, bool]:
    """Called by Sphinx."""
    app.connect("builder-inited", write_changelog)
    app.connect("source-read", on_read)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
