"""``unspool explore``."""

from __future__ import annotations

from pathlib import Path

import click

from unspool.cli.commands.options import FILE, PLACE


@click.command()
@click.option("--edges", type=PLACE, help="A graph of your own: CSV, TSV, Parquet, .npz, .npy or GraphML.")
@click.option("--features", type=PLACE, help="A table with your signal: CSV, TSV, Parquet, .npy, .npz.")
@click.option("--id-column", help="The column with the nodes' names, if it is not called id, node or name.")
@click.option("--signal-column", help="The column with the signal; the only one of --features when omitted.")
@click.option("--dataset", metavar="NAME", help="The graph of a data set (unspool datasets lists them).")
@click.option("--data", type=PLACE, help="Folder with raw data; the variable UNSPOOL_DATA when omitted.")
@click.option("--out", default="out/explorer.html", show_default=True, type=FILE, help="Where the page goes.")
@click.option("--no-open", is_flag=True, help="Write the page and do not open a browser.")
def explore(
    edges: Path | None,
    features: Path | None,
    id_column: str | None,
    signal_column: str | None,
    dataset: str | None,
    data: Path | None,
    out: Path,
    no_open: bool,
) -> None:
    """Write a denoising problem with sliders; see the network that solves it.

    Writes one HTML file that needs nothing else and opens it in a browser: the formula, the signal on the graph layer by layer, objective
    and error, the frequency response, whether the step is stable, the name of the network it equals, and the Python code. With --edges (and
    --features for a signal) a graph of your own comes first, of up to 2,000 nodes; every edge runs both ways.

    \b
    Examples:
      unspool explore
      unspool explore --edges roads.csv --features traffic.csv --signal-column cars
    """
    from unspool.cli.data_options import DataOptions
    from unspool.cli.explore import run

    columns = () if signal_column is None else (signal_column,)
    own = DataOptions(dataset, data, edges, features, id_column=id_column, feature_columns=columns)
    run(own, out, no_open)
