"""``unspool study report``: a study as one page."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from unspool import study
from unspool.cli.paths import check_folder
from unspool.cli.study.best import BY
from unspool.cli.study.open_study import console_for, table_of


def write(
    file: Path, out: Path | None, markdown: Path | None, by: str, dataset: str | None, where: Sequence[str]
) -> None:
    """Write the page, and say where it is."""
    page = file.with_suffix(".html") if out is None else out
    if page.suffix.lower() not in (".html", ".htm"):
        raise ValueError(f"--out {page}: a page is a .html file; choose this ending (Markdown has --markdown)")
    table = table_of(file, dataset, where)
    for option, place in (("--out", page), ("--markdown", markdown)):
        if place is not None and place.resolve() == file.resolve():
            raise ValueError(f"{option} {place} is the study itself; choose another file")
        if place is not None:
            check_folder(place.parent, option)
    study.write_report(table, page, by=BY[by], file=file, markdown=markdown)
    console = console_for()
    for name, place in (("page", page), ("Markdown", markdown)):
        if place is not None:
            console.print(f"{name}: {place} ({place.stat().st_size / 1e6:.2f} MB)", markup=False)
