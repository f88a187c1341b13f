"""``unspool study export``: all trials as one table for other programs."""

from __future__ import annotations

from pathlib import Path

from unspool import study
from unspool.cli.study.open_study import console_for, rows_of


def write(file: Path, out: Path) -> None:
    """Write every trial as one row."""
    rows = rows_of(file)
    place = study.export(rows, out)
    console_for().print(f"{len(rows)} trial{'s'[: len(rows) > 1]} in {place}", markup=False)
