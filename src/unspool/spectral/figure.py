"""Figures without a window: made when matplotlib is there, written whole or not at all."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

from unspool.files import write_whole


def figure_class_of_matplotlib() -> Any:
    """matplotlib's ``Figure``, or a sentence that says what to install."""
    try:
        from matplotlib.figure import Figure
    except ImportError as problem:
        raise ValueError("drawing needs matplotlib: pip install 'unspool[plot]'") from problem
    return Figure


def write_figure(figure: Any, path: Path) -> None:
    """Save a figure as .png, .svg or .pdf."""
    kind = path.suffix.removeprefix(".").lower()
    if kind not in ("png", "svg", "pdf"):
        raise ValueError(f"{path.name}: pictures are written as .png, .svg or .pdf")
    path.parent.mkdir(parents=True, exist_ok=True)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing")  # names may be in any script
        write_whole(path, lambda file: figure.savefig(file, format=kind))
