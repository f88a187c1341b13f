"""``unspool denoise``."""

from __future__ import annotations

from typing import Any

import click

from unspool.cli.commands.options import FILE, PLACE, json_option
from unspool.cli.number_types import Finite


@click.command()
@click.option("--edges", required=True, type=PLACE, help="The graph: CSV, TSV, Parquet, .npz, .npy or GraphML.")
@click.option(
    "--features", required=True, type=PLACE, help="The noisy signals, a column each: CSV, TSV, Parquet, .npy, .npz."
)
@click.option("--id-column", help="The column with the nodes' names, if it is not called id, node or name.")
@click.option(
    "--feature-column", "feature_columns", multiple=True, help="A signal to denoise; all columns when omitted."
)
@click.option(
    "--header/--no-header",
    default=None,
    help="Whether the first line of --features names columns; detected when omitted.",
)
@click.option("--weight", type=Finite(0, 1, min_open=True, max_open=True), help="α of α‖H−X‖² + (1−α)‖BH‖².")
@click.option(
    "--choose", type=click.Choice(["sure", "gcv"]), help="How α is chosen without --weight; sure when omitted."
)
@click.option(
    "--noise",
    type=Finite(0, min_open=True),
    help="Standard deviation of the noise, for sure; estimated when omitted.",
)
@click.option(
    "--normalise",
    type=click.Choice(["none", "symmetric"]),
    default="none",
    show_default=True,
    help="none leaves constant signals unchanged; symmetric is what models use.",
)
@click.option("--out", default="out/denoised.csv", show_default=True, type=FILE, help=".csv, .tsv, .parquet or .npy.")
@json_option
def denoise(**options: Any) -> None:
    """Denoise signals on a graph, with no labels and no training.

    Solves min α‖H−X‖² + (1−α)‖BH‖² exactly. α is given, or chosen from the data alone: by Stein's unbiased
    estimate of the risk (sure), or by generalised cross-validation (gcv), which needs no noise level.

    Example: unspool denoise --edges roads.csv --features temperatures.csv --out smooth.csv
    """
    from unspool.cli.denoise import DenoiseOptions, run

    run(DenoiseOptions(**options))
