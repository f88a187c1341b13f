"""``unspool verify``."""

from __future__ import annotations

import click

from unspool.cli.number_types import Whole


@click.command()
@click.option(
    "--seed",
    default=0,
    show_default=True,
    type=Whole(0, 2**32 - 1),
    help="Seed of the random graphs, sizes and parameters.",
)
@click.option("--trials", default=3, show_default=True, type=Whole(1, 1000), help="Random cases per claim.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON lines instead of a table.")
def verify(seed: int, trials: int, as_json: bool) -> None:
    """Test the paper's statements in float64, at random sizes and parameters.

    Every claim ends as "holds", "holds when ..." or as a counter-example. Exit status 1 means that one did not end as
    documented.

    Example: unspool verify --trials 10 --seed 7
    """
    from unspool.cli.verify import run

    run(seed, trials, as_json)
