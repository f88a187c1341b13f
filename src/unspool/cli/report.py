"""``unspool report``: the results of a reproduction as one page."""

from __future__ import annotations

from pathlib import Path

import click

from unspool.cli.finite import Whole
from unspool.cli.place import check_folder
from unspool.cli.terminal import echo

_FILE = click.Path(dir_okay=False, path_type=Path)


@click.command(name="report")
@click.argument("folder", default=Path("experiments/results"), type=click.Path(path_type=Path))
@click.option("--out", default="report.html", show_default=True, type=_FILE, help="The page: one HTML file.")
@click.option("--markdown", type=_FILE, help="Also write words and tables as Markdown.")
@click.option("--latex", type=_FILE, help="Also write the tables as LaTeX.")
@click.option(
    "--trials", default=3, show_default=True, type=Whole(1, 1000),
    help="Random settings for each statement of the paper that is tested on the way.",
)  # fmt: skip
def report_(folder: Path, out: Path, markdown: Path | None, latex: Path | None, trials: int) -> None:
    """Write the results of `unspool reproduce` as one page that needs no network.

    FOLDER holds the CSV files (experiments/results when omitted). Models that `unspool train` wrote into its subfolder
    models add their responses and objectives. The paper's statements are tested again on the way, which takes some seconds.

    Example: unspool report out/reproduce/results --out out/report.html --markdown out/report.md
    """
    from unspool.reproduce.page import report

    if out.suffix.lower() not in (".html", ".htm"):
        raise ValueError(f"--out {out}: a page is a .html file; choose this ending (Markdown has --markdown)")
    for option, file in (("--out", out), ("--markdown", markdown), ("--latex", latex)):
        if file is not None:
            check_folder(file.parent, option)
    inner = folder / "results"
    if not any(folder.glob("*.csv")) and any(inner.glob("*.csv")):
        raise ValueError(f"{folder} has its results in a subfolder; run: unspool report {inner}")
    report(folder, out, markdown=markdown, latex=latex, trials=trials)
    for name, file in (("page", out), ("Markdown", markdown), ("LaTeX", latex)):
        if file is not None:
            echo(f"{name}: {file} ({file.stat().st_size / 1e6:.2f} MB)")
