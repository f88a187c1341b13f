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
from unspool.cli.number_types import Whole


@click.command()
@click.argument("checkpoint", type=PLACE, metavar="FOLDER")
@data_options
@model_option
@changed_code_option
@click.option("--out", default="out/predictions.csv", show_default=True, type=FILE, help=".csv, .tsv or .parquet.")
@click.option(
    "--only", type=click.Choice(["all", "unlabelled", "test"]), default="all", show_default=True, help="Which nodes."
)
@click.option(
    "--pairs", type=PLACE, help="Links: score the pairs of this table, two columns of nodes (.csv, .tsv, .parquet)."
)
@click.option("--top", type=Whole(1), help="Links: the most probable new links of each node; 10 when nothing is said.")
@click.option(
    "--nodes",
    metavar="A,B,C",
    help="These nodes alone, by their ids; only their neighbourhood is computed. Links: recommend for these.",
)
@click.option(
    "--new-nodes", type=PLACE, help="Features of nodes that the graph does not have: predict for these alone."
)
@click.option("--new-edges", type=PLACE, help="Edges that join --new-nodes to the graph or to each other, by ids.")
@click.option("--uncalibrated", is_flag=True, help="Probabilities as the network gives them, without its temperature.")
@device_option
@json_option
def predict(
    checkpoint: Path,
    model: str | None,
    changed_code: bool,
    out: Path,
    only: str,
    pairs: Path | None,
    top: int | None,
    nodes: str | None,
    new_nodes: Path | None,
    new_edges: Path | None,
    device: str | None,
    as_json: bool,
    uncalibrated: bool,
    **options: Any,
) -> None:
    """Predict the classes (or numbers) of nodes, or links between them, with a trained model.

    FOLDER is what `unspool train` or `us.save` wrote: one seed, or all of them, whose probabilities are averaged. Without
    --edges or --dataset, the data that it was trained on are used. Writes one row per node with its prediction and the
    probability of each class, calibrated with the temperature that training fitted to its validation nodes. A model of links (train --loss
    links) scores --pairs, or recommends new links for every node.

    --new-nodes holds features of nodes that came later, with the columns of the training, and --new-edges what joins them to the graph; the answers are those
    on the whole enlarged graph, and take their neighbourhood alone. Nodes without ids are numbered behind the old ones.

    \b
    Examples:
      unspool predict out/train --edges new_edges.csv --features new_nodes.csv --out predictions.csv
      unspool predict out/train --new-nodes joined_today.csv --new-edges their_calls.csv
    """
    from unspool.cli.data_options import DataOptions
    from unspool.cli.link_predict import LinkQuestion
    from unspool.cli.predict import run
    from unspool.device import device_for

    data, asked = DataOptions.taken_from(options), LinkQuestion(pairs, top, nodes)
    run(
        checkpoint,
        data,
        model,
        changed_code,
        out,
        only,
        device_for(device),
        as_json,
        asked,
        uncalibrated,
        (new_nodes, new_edges),
    )
