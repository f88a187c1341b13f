"""``unspool models``."""

from __future__ import annotations

import click


@click.command()
@click.argument("name", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print JSON lines.")
def models(name: str | None, as_json: bool) -> None:
    """List the models: the problem each solves, and how; with NAME, its settings too.

    NAME may be a class of your own, package.module:Class.

    Example: unspool models UGDGNN
    """
    from unspool.cli.models import run

    run(name, as_json)
