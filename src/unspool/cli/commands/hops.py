"""``unspool hops``."""

from __future__ import annotations

from pathlib import Path

import click

from unspool.cli.commands.options import FILE, PLACE
from unspool.cli.number_types import Whole


@click.command()
@click.argument("graph", type=PLACE, metavar="GRAPH")
@click.option(
    "--features",
    type=FILE,
    required=True,
    help="The features of all nodes: .npy, which is read as it is needed, .npz, Parquet, CSV or TSV.",
)
@click.option("--depth", type=Whole(1), required=True, help="K, how many hops.")
@click.option("--out", type=PLACE, required=True, help="The folder to write the hops to.")
@click.option("--memory", default="2GB", show_default=True, help="How much memory may be used, such as 8GB or 500MB.")
@click.option(
    "--nodes", type=FILE, help="The nodes whose hops are kept: numbers, or a mask over all, as .npy; all when omitted."
)
@click.option(
    "--labels", type=FILE, help="What is known of the nodes of the graph: classes (-1 for none) or numbers, as .npy."
)
@click.option(
    "--feature-column", "feature_columns", multiple=True, help="A column of --features to use; all others when omitted."
)
@click.option(
    "--drop-column", "drop_columns", multiple=True, help="A column of --features to leave out; may be repeated."
)
@click.option("--split", type=FILE, help="Numbers or masks of train, valid and test nodes, as .npz; with --labels.")
@click.option(
    "--normalise",
    type=click.Choice(["symmetric", "random-walk", "none"]),
    default="symmetric",
    show_default=True,
    help="How A is made of the edges.",
)
@click.option(
    "--half",
    is_flag=True,
    help="Signals and hops in bfloat16, with sums in single precision; of graphs without weights.",
)
def hops(
    graph: Path, features: Path, depth: int, out: Path, memory: str, nodes: Path | None, labels: Path | None, split: Path | None,
    feature_columns: tuple[str, ...], drop_columns: tuple[str, ...], normalise: str, half: bool,
) -> None:  # fmt: skip
    """Write what features become hop by hop, X, A X, ..., A^K X, within a budget of memory.

    GRAPH is a folder of `unspool graph build`. Columns go through the graph in slabs, and every node gets its hops in one place, so that
    networks which propagate first train on them without the graph. Whatever interrupts it, the same command goes on where it was. Open the
    folder with us.hops.open(folder), or us.hops.dataset(folder) to train.

    \b
    Examples:
      unspool hops graph --features x.npy --depth 4 --memory 2GB --out hops
      unspool hops graph --features x.npy --depth 4 --labels y.npy --split split.npz --out hops
    """  # fmt: skip
    from unspool.cli.hops import run

    run(
        graph, features, depth, out, memory, nodes=nodes, labels=labels, split=split, feature_columns=feature_columns, drop_columns=drop_columns,
        normalise=normalise, half=half,
    )  # fmt: skip
