"""``unspool export``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from unspool.cli.commands.options import FILE, PLACE, changed_code_option, data_options, json_option, model_option


@click.command()
@click.argument("checkpoint", type=PLACE, metavar="FOLDER")
@data_options
@model_option
@changed_code_option
@click.option(
    "--format",
    "form",
    type=click.Choice(["torch", "numpy"]),
    default="torch",
    show_default=True,
    help="torch: a program that torch.export loads. numpy: one Python file, for linear propagations.",
)
@click.option("--out", type=FILE, help="Where the file goes; out/model.pt2 or, for numpy, out/model.py when omitted.")
@json_option
def export(
    checkpoint: Path, model: str | None, changed_code: bool, form: str, out: Path | None, as_json: bool, **options: Any
) -> None:
    """Export a trained model for machines without unspool.

    FOLDER holds one trained model. What is written takes features of all nodes and gives probabilities or numbers, on the graph of the
    training or the one that --edges or --dataset name. It is compared with the model before it is written.

    Example: unspool export out/train/seed0 --format=numpy --out model.py
    """
    from unspool.cli.data_options import DataOptions
    from unspool.cli.export import run

    run(checkpoint, DataOptions.taken_from(options), model, changed_code, form, out, as_json)
