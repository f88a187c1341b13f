"""``unspool graph ...``: graphs that are larger than the memory."""

from __future__ import annotations

from pathlib import Path

import click

from unspool.cli.commands.options import FILE, PLACE
from unspool.cli.number_types import Real, Whole


@click.group()
def graph() -> None:
    """Make a graph on the disk that is larger than the memory.

    \b
    Start with:
      unspool graph build --edges edges.parquet --memory 8GB --out graph
    """


@graph.command()
@click.option(
    "--edges",
    type=FILE,
    multiple=True,
    required=True,
    help="A list of edges between nodes 0, 1, 2, ...: .npy, Parquet, CSV, TSV or text; may be repeated.",
)
@click.option("--out", type=PLACE, required=True, help="The folder to write the graph to.")
@click.option("--memory", default="2GB", show_default=True, help="How much memory may be used, such as 8GB or 500MB.")
@click.option("--nodes", type=Whole(1), help="How many nodes there are; the largest id tells when omitted.")
@click.option(
    "--loops",
    type=Real(),
    default=1.0,
    show_default=True,
    help="Weight of the self-loop of every node that has none; 0 for none.",
)
@click.option("--weight-column", help="The column with the weights of the edges, if it is not called weight.")
@click.option(
    "--directed/--undirected",
    default=None,
    help="Whether edges keep their direction; when omitted, every edge runs both ways, with a message where that matters.",
)
def build(
    edges: tuple[Path, ...], out: Path, memory: str, nodes: int | None, loops: float, weight_column: str | None, directed: bool | None
) -> None:  # fmt: skip
    """Sort edges into a graph on the disk, within a budget of memory.

    The edges are read twice and sorted bucket by bucket. Whatever interrupts it, the same command goes on where it was; the folder
    counts as a graph only when all of it is written, with checksums. Open it with us.Graph.open(folder).

    \b
    Examples:
      unspool graph build --edges edges.parquet --memory 8GB --out graph
      unspool graph build --edges a.npy --edges b.npy --undirected --memory 500MB --out graph
    """  # fmt: skip
    from unspool.cli.graph_build import run

    run(edges, out, memory, nodes=nodes, loops=loops, weight_column=weight_column, directed=directed)
