"""``unspool report``."""

from __future__ import annotations

from pathlib import Path

import click

from unspool.cli.commands.options import FILE, PLACE, changed_code_option, model_option
from unspool.cli.number_types import Whole


@click.command()
@click.argument("folder", type=PLACE)
@click.option(
    "--out", type=FILE, help="The page, one HTML file; when omitted report.html, for a training job in its folder."
)
@click.option("--markdown", type=FILE, help="Also write text and tables as Markdown (a training job always does).")
@click.option("--latex", type=FILE, help="Also write the tables of a reproduction as LaTeX.")
@click.option(
    "--trials", default=3, show_default=True, type=Whole(1, 1000),
    help="Random cases for each statement of the paper that the page tests again.",
)  # fmt: skip
@model_option
@changed_code_option
def report(
    folder: Path,
    out: Path | None,
    markdown: Path | None,
    latex: Path | None,
    trials: int,
    model: str | None,
    changed_code: bool,
) -> None:
    """Write results as one HTML page that works offline.

    FOLDER is what `unspool reproduce` wrote (its CSV files), or what `unspool train` wrote (the folder of a job, or of one seed). Models that
    `unspool train` wrote into the subfolder models of a reproduction add their responses and objectives. For a reproduction the paper's
    statements are tested again and all sections are drawn, which takes up to a minute. The page of a study: unspool study report.

    \b
    Examples:
      unspool report out/reproduce/results --out out/report.html --markdown out/report.md
      unspool report out/train
    """
    from unspool.cli.report import run

    run(folder, out, markdown, latex, trials, model, changed_code)
