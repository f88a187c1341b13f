"""``unspool datasets``."""

from __future__ import annotations

from pathlib import Path

import click

from unspool.cli.commands.options import PLACE


@click.command()
@click.argument("name", required=False)
@click.option("--data", type=PLACE, help="Folder with raw data; the variable UNSPOOL_DATA when omitted.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON lines.")
def datasets(name: str | None, data: Path | None, as_json: bool) -> None:
    """List the data sets and where each would be read from; with NAME, its statistics and splits.

    Example: unspool datasets citeseer
    """
    from unspool.cli.datasets import run

    run(name, data, as_json)
