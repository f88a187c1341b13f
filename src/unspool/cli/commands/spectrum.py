"""``unspool spectrum``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from unspool.cli.commands.options import FILE, PLACE, changed_code_option, json_option, model_option


@click.command()
@click.argument("checkpoint", type=PLACE, metavar="FOLDER")
@model_option
@changed_code_option
@click.option(
    "--edges",
    type=PLACE,
    help="The graph: text with two columns of node ids and perhaps a weight, or .npz with edge_index.",
)
@click.option("--dataset", metavar="NAME", help="The graph of a data set, or of package.module:function.")
@click.option("--data", type=PLACE, help="Folder with raw data; the variable UNSPOOL_DATA when omitted.")
@click.option(
    "--out",
    default="out/spectrum.png",
    show_default=True,
    type=FILE,
    help="Where the picture goes (.png, .svg or .pdf).",
)
@json_option
def spectrum(checkpoint: Path, model: str | None, changed_code: bool, out: Path, as_json: bool, **options: Any) -> None:
    """Show what a trained model does to each graph frequency.

    FOLDER holds one trained model. Prints the problem that the model solves, its frequency response and its hop coefficients, and draws them. With
    --edges or --dataset the picture shows the graph's own frequencies and where the energy of white noise goes. Models that are not
    linear are measured on that graph, without one on that of their training. Every edge of a file runs both ways.

    Example: unspool spectrum out/train/seed0 --edges edges.csv --out out/spectrum.png
    """
    from unspool.cli.data_options import DataOptions
    from unspool.cli.spectrum import run

    run(checkpoint, model, changed_code, DataOptions.taken_from(options), out, as_json)
