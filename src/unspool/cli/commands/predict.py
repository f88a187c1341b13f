"""``unspool predict``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from unspool.cli.commands.options import (
    FILE,
    PLACE,
    changed_code_option,
    data_options,
    device_option,
    json_option,
    model_option,
)


@click.command()
@click.argument("checkpoint", type=PLACE, metavar="FOLDER")
@data_options
@model_option
@changed_code_option
@click.option("--out", default="out/predictions.csv", show_default=True, type=FILE, help=".csv, .tsv or .parquet.")
@click.option(
    "--only", type=click.Choice(["all", "unlabelled", "test"]), default="all", show_default=True, help="Which nodes."
)
@click.option("--uncalibrated", is_flag=True, help="Probabilities as the network gives them, without its temperature.")
@device_option
@json_option
def predict(
    checkpoint: Path,
    model: str | None,
    changed_code: bool,
    out: Path,
    only: str,
    device: str | None,
    as_json: bool,
    uncalibrated: bool,
    **options: Any,
) -> None:
    """Predict the classes (or numbers) of nodes with a trained model.

    FOLDER is what `unspool train` or `us.save` wrote: one seed, or all of them, whose probabilities are averaged. Without
    --edges or --dataset, the data that it was trained on are used. Writes one row per node with its prediction and the
    probability of each class, calibrated with the temperature that training fitted to its validation nodes.

    Example: unspool predict out/train --edges new_edges.csv --features new_nodes.csv --out predictions.csv
    """
    from unspool.cli.data_options import DataOptions
    from unspool.cli.predict import run
    from unspool.device import device_for

    data = DataOptions.taken_from(options)
    run(checkpoint, data, model, changed_code, out, only, device_for(device), as_json, uncalibrated)
