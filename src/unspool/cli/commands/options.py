"""Options that several commands take."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from unspool.errors import UNSHOWN, InputError

Command = Callable[..., Any]


class _Place(click.Path):
    """A path; whether it can be used is found out by whoever uses it."""

    def __init__(self) -> None:
        super().__init__(path_type=Path, readable=False)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The path, or one sentence where there is none: ``""``, as of a variable that is not set, would be the current folder."""
        if value == "" and param is not None:
            raise InputError(param.name, UNSHOWN, "a path, and this one is empty", "write . for the current folder")
        return super().convert(value, param, ctx)


class _File(_Place):
    """The name of a file, which need not be there."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """A path, or one sentence where a folder is."""
        found: Any = super().convert(value, param, ctx)
        if param is not None and found.is_dir():
            raise InputError(param.name, value, "the name of a file, and this is a folder")
        return found


FILE, PLACE = _File(), _Place()

#: Which data; all commands that need some take all of these.
_DATA = (
    click.option("--dataset", metavar="NAME", help="A data set (unspool datasets lists them; citeseer is built in), or package.module:function."),
    click.option("--data", type=PLACE, help="Folder with raw data; the variable UNSPOOL_DATA when omitted. Processed copies go to the user's cache folder."),
    click.option("--download", is_flag=True, help="Fetch a data set that is not here, over https, into the folder with raw data."),
    click.option("--edges", type=PLACE, help="Your own graph: CSV, TSV, Parquet, .npz, .npy, GraphML, or .pt with a Data of PyTorch Geometric."),
    click.option("--hops", type=PLACE, help="A folder that unspool hops has written with labels: features that have seen the graph, for networks that propagate first."),
    click.option("--features", type=PLACE, help="Your nodes' features: CSV, TSV, Parquet, .npy, .npz."),
    click.option("--labels", type=PLACE, help="Your nodes' classes or numbers: CSV, TSV, Parquet, .npy."),
    click.option("--id-column", help="The column with the nodes' names, if it is not called id, node or name."),
    click.option(
        "--label-column", "label_columns", multiple=True,
        help="The column with the classes; without --labels, one of --features. Repeated: several labels per node, a column of 1 and 0 each.",
    ),
    click.option("--class-order", help="The classes from the lowest to the highest, separated by commas, where they have an order to learn."),
    click.option("--sample-weight-column", help="A column beside the labels that says how much each node counts in training."),
    click.option("--target-column", "target_columns", multiple=True, help="A column of numbers to predict; may be repeated."),
    click.option("--feature-column", "feature_columns", multiple=True, help="A column to use; all others when omitted."),
    click.option("--drop-column", "drop_columns", multiple=True, help="A column to leave out; may be repeated."),
    click.option("--one-hot", multiple=True, metavar="COLUMN", help="A column of categories, which becomes one column for each; may be repeated."),
    click.option(
        "--edge-columns", metavar="SOURCE,TARGET",
        help="The two columns of --edges with the nodes that an edge joins, if they are not called source and target.",
    ),
    click.option("--weight-column", help="The column with the weights of the edges, if it is not called weight; for .pt its number in edge_attr."),
    click.option(
        "--directed/--undirected", default=None,
        help="Whether edges keep their direction; when omitted, every edge runs both ways, with a message where that matters.",
    ),
    click.option("--split-column", help="A column that says train, valid or test."),
    click.option("--header/--no-header", default=None, help="Whether the first line of --features and --labels names columns; detected when omitted."),
    click.option("--name", help="What your data are called in reports; the name of the edge file when omitted."),
    click.option("--split", help="public, per-class:20/30, random:0.6/0.2/0.2, fold-3, ...; the set's own when omitted."),
)  # fmt: skip

#: How training goes, by the settings of ``unspool.train.TrainConfig``, which reads the values; a study takes several with commas between.
CONFIG = {
    "lr": "Learning rate.",
    "weight_decay": "Weight decay of weight matrices and biases, not of hop coefficients; or by group: 'first=5e-4;convolution=0.01'.",
    "epochs": "Maximum number of epochs.",
    "monitor": "Which epoch's weights are kept: the best valid_loss, valid_score or train_loss, or last_epoch.",
    "stop": "Early stopping: never, patience or above_mean.",
    "patience": "Stop after this many epochs without improvement.",
    "min_epochs": "above_mean does not stop before this epoch.",
    "optimiser": "A class of torch.optim; adam when omitted.",
    "precision": "full, or bfloat16 for the activations.",
    "lower_level": "unrolled: take the K steps. exact: solve the denoising problem exactly and train through its optimality condition.",
    "lr_schedule": "constant, cosine (down to a hundredth over --lr-epochs) or step (a tenth after every --lr-epochs); in a study, trials that are not constant run one by one.",
    "lr_epochs": "Epochs over which the learning rate changes.",
    "clip": "Largest norm of the gradient; longer ones are shortened to it. In a study such trials run one by one.",
    "upper": "The loss of training as a sum: 'ce + 2*consistency(views=4, temperature=0.5) under drop_nodes(0.5)', or a TOML file; see docs/upper.md.",
    "batch_size": "The most training nodes that a step sees, drawn anew in every epoch; all when omitted. In a study such trials run one by one.",
}


def data_options(command: Command) -> Command:
    """Add the options that say which data; they arrive as keyword arguments of the same names."""
    for option in reversed(_DATA):
        command = option(command)
    return command


def config_options(command: Command) -> Command:
    """Add the options that say how training goes; they arrive as text, None where nothing was said."""
    for name, text in reversed(CONFIG.items()):
        command = click.option(f"--{name.replace('_', '-')}", metavar="VALUE", help=text)(command)
    return command


#: Settings that are wanted often; each is short for --setting.
SHORT = ("dropout", "depth", "hidden")


def setting_options(command: Command) -> Command:
    """Add ``--setting``, and short forms of the settings that are wanted often."""
    for name in reversed(SHORT):
        command = click.option(f"--{name}", metavar="VALUE", help=f"Short for --setting {name}=VALUE.")(command)
    return click.option(
        "--setting", "-s", "settings", multiple=True, metavar="NAME=VALUE",
        help="A setting of the model: --setting depth=20 (unspool models MODEL lists them); may be repeated.",
    )(command)  # fmt: skip


def task_options(command: Command) -> Command:
    """Add the options that say what is learnt, and from which rows."""
    command = click.option(
        "--normalise-rows/--raw-rows",
        default=None,
        help="Scale rows of features to sum 1; the preset's choice when omitted.",
    )(command)
    kinds = click.Choice(["classes", "binary", "multilabel", "ordinal", "numbers", "counts", "ranking", "links"])
    command = click.option(
        "--class-weight", multiple=True, metavar="balanced|CLASS=WEIGHT",
        help="How much classes count in training: balanced (rare classes as much as frequent ones), or CLASS=WEIGHT for each class.",
    )(command)  # fmt: skip
    return click.option("--loss", type=kinds, help="What is predicted; detected from the data when omitted.")(command)


def model_option(command: Command) -> Command:
    """Add the option that names the class of a model that is not of this package."""
    return click.option(
        "--model", metavar="package.module:Class",
        help="The class of the trained model, if it is not one of this package: a class is never imported because a file names it.",
    )(command)  # fmt: skip


def changed_code_option(command: Command) -> Command:
    """Add the option that takes a class whose code is another one than when the model was trained."""
    return click.option(
        "--changed-code", is_flag=True,
        help="Take the class as it is now, although its code has changed since the model was trained.",
    )(command)  # fmt: skip


def json_option(command: Command) -> Command:
    """Add ``--json``."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")(command)


def device_option(command: Command) -> Command:
    """Add ``--device``."""
    return click.option("--device", help="cpu, cuda or mps; a GPU where there is one when omitted.")(command)
