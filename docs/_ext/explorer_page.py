"""Puts the explorer beside the pages, as ``explorer.html``."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def write(app: Any, problem: Exception | None) -> None:
    """After the pages are written."""
    if problem is None and app.builder.format == "html":
        from unspool import explore

        explore.write_page(Path(app.outdir) / "explorer.html")


def setup(app: Any) -> dict[str, bool]:
    """Called by Sphinx."""
    app.connect("build-finished", write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
