"""``unspool explain``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from unspool.cli.commands.options import FILE, PLACE, changed_code_option, data_options, json_option, model_option
from unspool.cli.number_types import Whole


@click.command()
@click.argument("checkpoint", type=PLACE, metavar="FOLDER")
@click.option("--node", required=True, help="The node: its name, or its number from 0.")
@click.option("--other", help="Links: the other node of the pair.")
@data_options
@model_option
@changed_code_option
@click.option("--target", help="The class to explain, by name or number; the predicted one when omitted.")
@click.option("--against", help="Explain the lead over another class: runner-up, a name or a number.")
@click.option("--top", default=10, show_default=True, type=Whole(1, 1000), help="How many neighbours and features.")
@click.option("--out", type=FILE, help="Draw a picture: .png, .svg or .pdf.")
@json_option
def explain(checkpoint: Path, **options: Any) -> None:
    """Explain the prediction of a node, or of a link: which hops, which neighbours, what the denoiser changed.

    Exact for models whose propagation is linear: contributions of hops and nodes sum to the score. The others are split
    to first order, and what that leaves unexplained is printed. A model of links explains a pair, --node and --other.
    FOLDER holds one trained model. Without --edges or --dataset, the data that it was trained on are used.

    Example: unspool explain out/train/seed0 --node 1708 --against runner-up --out out/why.png
    """
    from unspool.cli.data_options import DataOptions
    from unspool.cli.explain import run

    run(checkpoint, data=DataOptions.taken_from(options), **options)
