"""``unspool data ...``: data of one's own, before they are trained on."""

from __future__ import annotations

from typing import Any

import click

from unspool.cli.commands.options import data_options, json_option


@click.group()
def data() -> None:
    """Look at data of your own before you train on them.

    \b
    Start with:
      unspool data check --edges calls.csv --features customers.csv --label-column churn
    """


@data.command()
@data_options
@json_option
def check(as_json: bool, **options: Any) -> None:
    """Say what was read, what looks wrong, and the command to train with.

    Reads the same files with the same options as `unspool train`, and does not stop at the first problem: every column with what it
    holds, the graph (direction, repeats, components, nodes without edges), the classes and how alike neighbours are, the split, and what
    looks wrong, the most important first. Ends with exit code 1 where training is not possible yet.

    \b
    Examples:
      unspool data check --edges calls.csv --features customers.csv --label-column churn
      unspool data check --edges data.pt --json
      unspool data check --dataset citeseer
    """
    from unspool.cli.data_check import run
    from unspool.cli.data_options import DataOptions

    run(DataOptions.taken_from(options), as_json)
