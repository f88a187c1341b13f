"""``unspool spectrum``."""

from __future__ import annotations

from pathlib import Path

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
@click.option(
    "--out",
    default="out/spectrum.png",
    show_default=True,
    type=FILE,
    help="Where the picture goes (.png, .svg or .pdf).",
)
@json_option
def spectrum(
    checkpoint: Path, model: str | None, changed_code: bool, edges: Path | None, out: Path, as_json: bool
) -> None:
    """Show what a trained model does to each graph frequency.

    FOLDER holds one trained model. Prints the problem that the model solves, its frequency response and its hop coefficients, and draws them. With
    --edges the picture shows the graph's own frequencies and where the energy of white noise goes; models that are not
    linear are measured on that graph. Every edge runs both ways.

    Example: unspool spectrum out/train/seed0 --edges edges.csv --out out/spectrum.png
    """
    from unspool.cli.spectrum import run

    run(checkpoint, model, changed_code, edges, out, as_json)
