"""``unspool train``."""

from __future__ import annotations

import shlex
import sys
from typing import Any

import click

from unspool.cli.commands.options import (
    PLACE,
    config_options,
    data_options,
    device_option,
    setting_options,
    task_options,
)
from unspool.cli.number_types import Finite, Whole


@click.command()
@click.argument("model", required=False)
@data_options
@click.option(
    "--preset",
    type=click.Choice(["paper", "official", "stable", "grand", "default"]),
    help="Source of the settings that you do not give; when omitted, stable for StableGNN, paper for other named models on the paper's data sets, else default.",
)
@setting_options
@config_options
@task_options
@click.option("--seeds", default=1, show_default=True, type=Whole(1, 1000), help="Number of seeds, one run each.")
@click.option("--first-seed", default=0, show_default=True, type=Whole(0, 2**32 - 1), help="The first seed.")
@click.option(
    "--jobs",
    type=Whole(1),
    help="Seeds trained in parallel, one process each; one per core on small graphs when omitted.",
)
@click.option(
    "--spread",
    type=click.Choice(["columns", "rows", "metis"]),
    help="One graph on the processes that torchrun starts: by columns of signals, by rows (nodes), or by rows that METIS chooses.",
)
@device_option
@click.option(
    "--threads",
    type=Whole(1),
    help="Threads of each process on a CPU; when omitted, one on graphs of up to 4,096 nodes and all cores above.",
)
@click.option("--out", default="out/train", show_default=True, type=PLACE, help="Where models and report go.")
@click.option("--resume", is_flag=True, help="Continue interrupted runs; finished seeds are kept.")
@click.option("--snapshot-every", default=10.0, show_default=True, type=Finite(0), help="Seconds between snapshots.")
@click.option(
    "--tensorboard", type=PLACE, metavar="FOLDER", help="Write every epoch for TensorBoard, one folder a seed."
)
@click.option("--quiet", is_flag=True, help="Print nothing.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON lines: progress, seed, summary.")
@click.option("--no-report", is_flag=True, help="Write no report.")
@click.option(
    "--no-baselines",
    is_flag=True,
    help="Measure no simpler models beside it (the same answer, an MLP, label propagation).",
)
def train(**options: Any) -> None:
    """Train MODEL on a data set or on your own files, once per seed.


    MODEL is a name that `unspool models` lists, or a class of your own as package.module:Class; when omitted, StableGNN with its own recipe on
    citeseer, cora, pubmed, cs, physics and photo, and UGDGNN, the paper's model, on all else (GraphFirstUGDGNN from --hops). Prints the test score, the problem that the model solves, and where models and report are. Every seed has its own initial weights, and its own split where
    splits are random. Ctrl-C keeps the best epoch so far; --resume continues an interrupted run to the same numbers.

    \b
    Examples:
      unspool train
      unspool train UGDGNN --preset paper
      unspool train GPRGNN --dataset cora --data ~/data --seeds 10
      unspool train my_models:Calm --setting depth=8 --lr 0.02
      unspool train --edges friends.csv --features people.csv --label-column team
      unspool train APPNP --edges e.csv --features x.csv --target-column price
      torchrun --nproc-per-node 4 -m unspool train APPNP --edges e.csv --features x.csv --label-column team --spread columns
    """
    from unspool.cli.data_options import DataOptions
    from unspool.cli.train import RunOptions, run
    from unspool.cli.train_options import TrainOptions
    from unspool.device import device_for

    data, how = DataOptions.taken_from(options), TrainOptions.taken_from(options)
    options["device"] = device_for(options["device"])
    run(how, data, RunOptions(**options, command=shlex.join(["unspool", *sys.argv[1:]])))
