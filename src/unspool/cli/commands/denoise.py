"""``unspool denoise``."""

from __future__ import annotations

from typing import Any

import click

from unspool.cli.commands.options import FILE, PLACE, json_option
from unspool.cli.number_types import Finite, Whole


@click.command()
@click.option("--edges", required=True, type=PLACE, help="The graph: CSV, TSV, Parquet, .npz, .npy or GraphML.")
@click.option(
    "--features", required=True, type=PLACE, help="The noisy signals, a column each: CSV, TSV, Parquet, .npy, .npz."
)
@click.option("--id-column", help="The column with the nodes' names, if it is not called id, node or name.")
@click.option(
    "--feature-column", "feature_columns", multiple=True, help="A signal to denoise; all columns when omitted."
)
@click.option("--drop-column", "drop_columns", multiple=True, help="A column to leave out; may be repeated.")
@click.option(
    "--header/--no-header",
    default=None,
    help="Whether the first line of --features names columns; detected when omitted.",
)
@click.option(
    "--problem",
    type=click.Choice(["smooth", "tv", "slopes", "trend", "robust"]),
    default="smooth",
    show_default=True,
    help="smooth: slow changes; tv: regions with sharp borders; slopes: straight lines with few bends; trend: slopes and curves that change now and "
    "then; robust: a few nodes far off.",
)
@click.option("--fill", is_flag=True, help="Fill in empty cells and NaN from their neighbours; refused when omitted.")
@click.option(
    "--weight", type=Finite(0, 1, min_open=True, max_open=True), help="α, the weight of the fidelity to the signals."
)
@click.option(
    "--choose",
    type=click.Choice(["sure", "gcv", "held-out"]),
    help="How α is chosen without --weight. When omitted: sure for smooth signals without gaps, held-out otherwise.",
)
@click.option(
    "--seed",
    type=Whole(0),
    default=0,
    show_default=True,
    help="Of the parts that held-out hides in turn, and of the random vectors of sure and gcv.",
)
@click.option(
    "--noise",
    type=Finite(0, min_open=True),
    help="Standard deviation of the noise, for sure, which it implies; estimated when omitted.",
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

    Solves min α‖H−X‖² + (1−α)‖BH‖², or another problem, exactly. α is given, or chosen from the data alone: by Stein's unbiased
    estimate of the risk (sure), by generalised cross-validation (gcv), which needs no noise level, or by how well values are
    predicted that were hidden (held-out). held-out works for every problem; sure and gcv for all but robust, and without gaps.

    Problems: smooth as above; tv has the penalty (1−α)‖BH‖₂,₁; slopes (1−α)‖LH‖₂,₁; trend (1−α)‖BLH‖₂,₁; robust the fidelity α‖H−X‖₂,₁.

    Example: unspool denoise --edges roads.csv --features temperatures.csv --problem tv --fill --out clean.csv
    """
    from unspool.cli.denoise import DenoiseOptions, run

    run(DenoiseOptions(**options))
