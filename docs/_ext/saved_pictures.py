"""The picture of an example is the one that it saves, whatever drew it."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from sphinx_gallery.scrapers import figure_rst


def scrape(block: Any, block_vars: dict[str, Any], gallery_conf: dict[str, Any]) -> str:
    """Take ``out/NAME.png``, which an example named NAME.py writes next to itself; called by sphinx-gallery after each block."""
    example = Path(block_vars["src_file"])
    saved = example.parent / "out" / f"{example.stem}.png"
    if not saved.exists():
        return ""
    image = next(block_vars["image_path_iterator"])
    shutil.move(saved, image)
    return figure_rst([image], gallery_conf["src_dir"])
