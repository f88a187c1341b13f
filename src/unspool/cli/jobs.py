"""The commands around trained models and data: train, predict, explain, denoise, models, datasets."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Any

import click

from unspool.cli.finite import Between, Finite, Real, Whole
from unspool.cli.source import Source, data_options

_OUT = click.Path(path_type=Path)
_FILE = click.Path(dir_okay=False, path_type=Path)


@click.command(name="train")
@click.argument("model", default="UGDGNN")
@data_options
@click.option(
    "--preset",
    type=click.Choice(["paper", "official", "default"]),
    help="Where settings come from; paper where there is one.",
)
@click.option(
    "--set", "settings", multiple=True, metavar="NAME=VALUE", help="Change a setting of the model: --set depth=20."
)
@click.option(
    "--loss",
    type=click.Choice(["classes", "binary", "numbers", "ranking", "links"]),
    help="What is learnt; seen from the data.",
)
@click.option("--seeds", default=1, show_default=True, type=Whole(1, 1000), help="How many runs.")
@click.option("--first-seed", default=0, show_default=True, type=Whole(0, 2**32 - 1), help="Seeds count from here.")
@click.option("--jobs", type=Whole(1), help="Seeds at once, a process each; one per core on small graphs when omitted.")
@click.option("--epochs", type=Whole(1), help="Instead of the preset's.")
@click.option("--rate", type=Real(), help="Learning rate, instead of the preset's.")
@click.option(
    "--decay",
    type=Real(),
    help="Weight decay of weight matrices and biases, not of hop coefficients; instead of the preset's.",
)
@click.option("--patience", type=Whole(1), help="End after so many epochs without improvement.")
@click.option("--select", type=click.Choice(["loss", "accuracy"]), help="Which validation number picks the epoch.")
@click.option("--optimiser", help="A class of torch.optim; adam when omitted.")
@click.option("--precision", default="full", show_default=True, type=click.Choice(["full", "bfloat16"]))
@click.option(
    "--adjoint", default="unrolled", show_default=True, type=click.Choice(["unrolled", "implicit"]),
    help="implicit: solve the denoising problem exactly and train through its optimality condition.",
)  # fmt: skip
@click.option(
    "--normalise-rows/--raw-rows",
    default=None,
    help="Scale rows of features to sum 1; the preset's choice when omitted.",
)
@click.option("--device", help="cpu, cuda or mps; a GPU where there is one when omitted.")
@click.option(
    "--threads", type=Whole(1),
    help="Of each process on a CPU; one on graphs of up to 4,096 nodes and all cores above when omitted.",
)  # fmt: skip
@click.option("--out", default="out/train", show_default=True, type=_OUT, help="Where models and report go.")
@click.option("--resume", is_flag=True, help="Continue runs that were cut off; finished seeds stay.")
@click.option("--snapshot-every", default=10.0, show_default=True, type=Finite(0), help="Seconds between snapshots.")
@click.option("--quiet", is_flag=True, help="Print nothing.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON lines: progress, seed, summary.")
@click.option("--no-report", is_flag=True, help="Write no report.")
def train_(**options: Any) -> None:
    """Train MODEL (UGDGNN when omitted) on a set or on your own files, once per seed.

    Prints the test score beside the paper's, the problem that the model solves, and where models and report are. Every
    seed has its own starting weights, and its own split where splits are random. Ctrl-C keeps the best epoch so far;
    --resume continues a run that was cut off, to the same numbers.

    \b
    Examples:
      unspool train
      unspool train GPRGNN --dataset cora --data ~/data --seeds 10
      unspool train --edges friends.csv --features people.csv --label-column team
      unspool train APPNP --edges e.csv --features x.csv --target-column price
    """
    from unspool.cli.seed import Order
    from unspool.cli.train import run
    from unspool.cli.wish import Wish

    source = Source.taken_from(options)
    wish = Wish(**{name: options.pop(name) for name in Wish.__dataclass_fields__})
    from unspool.train.device import device_for

    options["device"] = device_for(options["device"])
    run(wish, source, Order(**options, command=_typed()))


@click.command()
@click.argument("checkpoint", type=click.Path(path_type=Path))
@data_options
@click.option("--out", default="out/predictions.csv", show_default=True, type=_FILE, help=".csv, .tsv or .parquet.")
@click.option(
    "--only", type=click.Choice(["all", "unlabelled", "test"]), default="all", show_default=True, help="Which nodes."
)
@click.option("--device", help="cpu, cuda or mps; a GPU where there is one when omitted.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of text.")
def predict(checkpoint: Path, out: Path, only: str, device: str | None, as_json: bool, **options: Any) -> None:
    """Predict the classes (or numbers) of nodes with a trained model.

    CHECKPOINT is a folder that unspool train wrote: one seed, or all of them, whose probabilities are averaged. Without
    --edges or --dataset the data it was trained on are taken. Writes one row per node with its prediction and the
    probability of each class.

    Example: unspool predict out/train --edges new_edges.csv --features new_nodes.csv --out predictions.csv
    """
    from unspool.cli.predict import run
    from unspool.train.device import device_for

    run(checkpoint, Source.taken_from(options), out, only, device_for(device), as_json)


@click.command()
@click.argument("checkpoint", type=click.Path(path_type=Path))
@click.option("--node", required=True, help="The node: its name, or its number from 0.")
@data_options
@click.option("--target", help="The class to explain, by name or number; the predicted one when omitted.")
@click.option("--against", help="Explain the lead over another class: runner-up, a name or a number.")
@click.option("--top", default=10, show_default=True, type=Whole(1, 1000), help="How many neighbours and features.")
@click.option("--out", type=_FILE, help="Draw a picture: .png, .svg or .pdf.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of text.")
def explain(checkpoint: Path, **options: Any) -> None:
    """Say why a node is predicted as it is: which hops, which neighbours, what the denoiser changed.

    Exact for models whose propagation is linear: contributions of hops and nodes sum to the score. The others are split
    to first order, and what that leaves unexplained is printed. Without --edges or --dataset the data the model was
    trained on are taken.

    Example: unspool explain out/train/seed0 --node 1708 --against runner-up --out out/why.png
    """
    from unspool.cli.explain import run

    run(checkpoint, source=Source.taken_from(options), **options)


@click.command()
@click.option(
    "--edges",
    required=True,
    type=click.Path(path_type=Path),
    help="The graph: CSV, TSV, Parquet, .npz, .npy or GraphML.",
)
@click.option(
    "--features",
    required=True,
    type=click.Path(path_type=Path),
    help="The noisy signals, a column each: CSV, TSV, Parquet, .npy, .npz.",
)
@click.option("--id-column", help="The column with the nodes' names, if it is not called id, node or name.")
@click.option(
    "--feature-column", "feature_columns", multiple=True, help="A signal to denoise; all columns when omitted."
)
@click.option(
    "--header/--no-header", default=None, help="Whether the first line of --features names columns; seen when omitted."
)
@click.option("--weight", type=Between(0, 1, min_open=True, max_open=True), help="α of α‖H−X‖² + (1−α)‖BH‖², by hand.")
@click.option(
    "--choose",
    type=click.Choice(["sure", "gcv"]),
    help="How α is chosen without --weight; sure when omitted.",
)
@click.option(
    "--noise",
    type=Between(0, min_open=True),
    help="Standard deviation of the noise, for sure; estimated when omitted.",
)
@click.option(
    "--normalise",
    type=click.Choice(["none", "symmetric"]),
    default="none",
    show_default=True,
    help="none keeps constants; symmetric is what models use.",
)
@click.option("--out", default="out/denoised.csv", show_default=True, type=_FILE, help=".csv, .tsv, .parquet or .npy.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of text.")
def denoise(**options: Any) -> None:
    """Denoise signals on a graph, with no labels and no training.

    Solves min α‖H−X‖² + (1−α)‖BH‖² exactly. α is given by hand, or chosen from the data alone: by Stein's unbiased
    estimate of the risk (sure), or by generalised cross-validation (gcv), which needs no noise level.

    Example: unspool denoise --edges roads.csv --features temperatures.csv --out smooth.csv
    """
    from unspool.cli.denoise import Order, run

    run(Order(**options))


@click.command(name="models")
@click.argument("name", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print JSON lines.")
def models_(name: str | None, as_json: bool) -> None:
    """List the models: the problem each solves, and how; with NAME, its settings too.

    Example: unspool models UGDGNN
    """
    from unspool.cli.lists import show_models

    show_models(name, as_json)


@click.command(name="datasets")
@click.argument("name", required=False)
@click.option("--data", type=click.Path(path_type=Path), help="Folder with raw data, else UNSPOOL_DATA.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON lines.")
def datasets_(name: str | None, data: Path | None, as_json: bool) -> None:
    """List the data sets and where each would be read from; with NAME, its statistics and splits.

    Example: unspool datasets citeseer
    """
    from unspool.cli.lists import show_datasets

    show_datasets(name, data, as_json)


def _typed() -> str:
    """The command line as it was typed, for the report."""
    return shlex.join(["unspool", *sys.argv[1:]])
