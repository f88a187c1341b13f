"""``unspool datasets``."""

from __future__ import annotations

from pathlib import Path

import click

from unspool.cli.commands.options import PLACE


@click.command()
@click.argument("name", required=False)
@click.option("--data", type=PLACE, help="Folder with raw data; the variable UNSPOOL_DATA when omitted.")
@click.option("--download", is_flag=True, help="Fetch NAME, over https, if it is not in the folder with raw data.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON lines.")
def datasets(name: str | None, data: Path | None, download: bool, as_json: bool) -> None:
    """List the data sets and where each would be read from; with NAME, its statistics and splits.

    \b
    Examples:
      unspool datasets citeseer
      unspool datasets photo --download
    """
    from unspool.cli.datasets import run

    run(name, data, download, as_json)
