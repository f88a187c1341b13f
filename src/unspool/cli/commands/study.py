"""``unspool study ...``: many trials trained, inspected, compared, and written as models."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from unspool.cli.commands.options import (
    FILE,
    PLACE,
    Command,
    config_options,
    data_options,
    device_option,
    model_option,
    setting_options,
    task_options,
)
from unspool.cli.number_types import Finite, Whole

_STUDY = click.argument("file", type=PLACE)
_FOLDER = click.Path(file_okay=False, path_type=Path)
_JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON lines instead of text.")
_DATASET = click.option("--dataset", help="Only trials on this data set.")
_WHERE = click.option(
    "--where", multiple=True, metavar="NAME=VALUE", help="Only trials with this setting; may be repeated."
)
_OVER = click.option(
    "--over", multiple=True, default=("seed",), show_default=True, help="What to average over; may be repeated."
)
_BY = click.option(
    "--by", type=click.Choice(["score", "loss"]), default="score", show_default=True, help="Which validation number."
)


def _chosen(command: Command) -> Command:
    """Which trials."""
    return _DATASET(_WHERE(command))


@click.group()
def study() -> None:
    """Train hundreds of trials at once, and compare their results.

    \b
    Start with these commands:
      unspool study run GCN GPRGNN --dropout 0.2,0.5,0.8 --seeds 10
      unspool study best out/study.db
      unspool study report out/study.db
    """


@study.command()
@click.argument("models", nargs=-1)
@data_options
@click.option("--seeds", default=10, show_default=True, type=Whole(1, 100_000), help="Seeds for each setting.")
@click.option("--first-seed", default=0, show_default=True, type=Whole(0, 2**32 - 1), help="The first seed.")
@click.option(
    "--preset", "presets", multiple=True, type=click.Choice(["paper", "official", "stable", "grand", "default"]),
    help="Source of the settings that you do not give; when omitted, paper for named models on the paper's data sets, else default. May be repeated.",
)  # fmt: skip
@setting_options
@config_options
@task_options
@click.option(
    "--random", "count", type=Whole(1, 1_000_000), help="Draw this many settings at random instead of a grid."
)
@click.option(
    "--range", "ranges", multiple=True, metavar="NAME=LOW:HIGH",
    help="For --random: LOW:HIGH (uniform), LOW:HIGH:log (log-uniform) or LOW..HIGH (whole numbers); the search ranges that models declare when nothing is given.",
)  # fmt: skip
@click.option("--draw", default=0, show_default=True, type=Whole(0), help="Seed of the random draw.")
@click.option("--paper-grid", is_flag=True, help="The grid that the paper searched, for each model.")
@click.option("--out", default="out/study.db", show_default=True, type=PLACE, help="The file of the study.")
@click.option(
    "--keep",
    type=Whole(0, 1000),
    default=0,
    show_default=True,
    help="Write the trained models of the best N settings next to the file.",
)
@click.option("--jobs", type=Whole(1), help="Processes on a CPU; one per core on small graphs when omitted.")
@device_option
@click.option(
    "--threads", type=Whole(1),
    help="Threads of each process on a CPU; when omitted, one on graphs of up to 4,096 nodes and all cores above.",
)  # fmt: skip
@click.option(
    "--machines", metavar="auto|local|HOST:PORT",
    help="Train on the machines of a Ray cluster: the one this machine belongs to (auto), this machine alone with all its GPUs (local), or the one at HOST:PORT. --jobs is then the largest number of processes on all machines, one per core or GPU when omitted, and --threads the cores of each.",
)  # fmt: skip
@click.option(
    "--at-once", default=1024, show_default=True, type=Whole(1), help="Maximum number of trials in one batch."
)
@click.option(
    "--seconds", type=Finite(0, min_open=True), help="Time limit; the remaining trials wait for the next run."
)
@click.option("--retry-failed", is_flag=True, help="Train the failed trials in the file again.")
@click.option("--quiet", is_flag=True, help="Print nothing.")
@click.option(
    "--json", "as_json", is_flag=True, help="Print JSON lines: start, progress, failed, leader, kept, summary."
)
def run(**options: Any) -> None:
    """Train MODELS (UGDGNN when omitted, GraphFirstUGDGNN from --hops) with every combination of settings and seeds, many trials at once.

    Options for settings and training take several values, separated by commas. Each trial gives the same result as `unspool train`
    alone, and is in the file as soon as it ends. Run the same command again to continue after Ctrl-C, kill -9 or a power cut: what
    is finished is not trained again. Other commands can read the file meanwhile, and a second process can run the same study.

    \b
    Examples:
      unspool study run GCN APPNP --dropout 0.2,0.5,0.8 --lr 0.005,0.01 --seeds 10
      unspool study run GPRGNN --random 50 --seeds 3
      unspool study run GPRGNN --random 50 --range lr=0.001:0.1:log --range depth=2..20
      unspool study run my_models:Calm --setting depth=4,8 --keep 1
      unspool study run UGDGNN --paper-grid --dataset cora
      unspool study run GCN --edges friends.csv --features people.csv --label-column team
      unspool study run GCN --random 1000 --machines auto
    """
    from unspool.cli.data_options import DataOptions
    from unspool.cli.study.run import StudyOptions
    from unspool.cli.study.run import run as train
    from unspool.cli.study.space_options import SpaceOptions

    data, space = DataOptions.taken_from(options), SpaceOptions.taken_from(options)
    train(space, data, StudyOptions(**options))


@study.command()
@_STUDY
@click.argument("trial", metavar="KEY-OR-NUMBER")
@data_options
@model_option
@device_option
@click.option("--out", required=True, type=_FOLDER, help="The folder of the model.")
@_JSON
def model(file: Path, trial: str, model: str | None, out: Path, **options: Any) -> None:
    """Write the trained network of one trial: a folder for predict, explain, spectrum and us.load.

    The trial is trained again on the data of the study, and the result is checked against the stored one.

    \b
    Examples:
      unspool study model out/study.db 7 --out out/best
      unspool study model out/study.db 7 --model my_models:Calm --out out/best
    """
    from unspool.cli.data_options import DataOptions
    from unspool.cli.study.model import run as hand_over

    hand_over(file, trial, model, DataOptions.taken_from(options), out, **options)


@study.command()
@_STUDY
@click.option("--watch", is_flag=True, help="Update every second until all trials have ended.")
@_JSON
def status(file: Path, watch: bool, as_json: bool) -> None:
    """Show the progress of a study: counts, speed, which processes are training, what failed.

    This only reads: it does not block processes that train the study.

    Example: unspool study status out/study.db --watch
    """
    from unspool.cli.study.status import show as show_status

    show_status(file, watch, as_json)


@study.command()
@_STUDY
@_OVER
@_BY
@click.option("--each", multiple=True, metavar="NAME", help="The best for each model, or each value of a setting.")
@_chosen
@click.option(
    "--top", default=10, show_default=True, type=Whole(1), help="How many settings to show for each data set."
)
@_JSON
def best(file: Path, **options: Any) -> None:
    """Show the settings with the best validation scores, and what they reach on test data.

    Settings are chosen by validation alone, never by test scores.

    Example: unspool study best out/study.db --each model
    """
    from unspool.cli.study.best import show_best

    show_best(file, **options)


@study.command()
@_STUDY
@click.argument("trial", metavar="KEY-OR-NUMBER")
@_JSON
def show(file: Path, trial: str, as_json: bool) -> None:
    """Show everything about one trial, and the command that writes its network.

    Example: unspool study show out/study.db 7
    """
    from unspool.cli.study.show import show as show_one

    show_one(file, trial, as_json)


@study.command()
@_STUDY
@click.argument("sides", nargs=-1, metavar="[A B]")
@click.option("--all", "every", is_flag=True, help="All pairs of models, with Holm's correction.")
@click.option("--test", type=click.Choice(["t", "wilcoxon"]), default="t", show_default=True, help="Paired test.")
@click.option(
    "--confidence", default=0.95, show_default=True, help="Level of the confidence interval.",
    type=Finite(0, 1, min_open=True, max_open=True),
)  # fmt: skip
@_OVER
@_chosen
@_JSON
def compare(file: Path, **options: Any) -> None:
    """Test whether A and B differ on test data by more than the seeds explain.

    A and B are models (GCN), settings (dropout=0.5) or both (GCN,dropout=0.5). Each side is the setting that validation
    chooses among those; pairs have the same seed.

    Example: unspool study compare out/study.db GCN UGDGNN --test wilcoxon
    """
    from unspool.cli.study.compare import show_comparison

    show_comparison(file, **options)


@study.command()
@_STUDY
@_BY
@_OVER
@_chosen
@_JSON
def importance(file: Path, **options: Any) -> None:
    """Show which settings matter: how much of the spread of validation scores each explains.

    Example: unspool study importance out/study.db --where model=GCN
    """
    from unspool.cli.study.importance import show_importance

    show_importance(file, **options)


@study.command()
@_STUDY
@click.option("--out", default="out/study", show_default=True, type=_FOLDER, help="The folder of the pictures.")
@click.option("--format", "kind", type=click.Choice(["png", "svg", "pdf"]), default="png", show_default=True)
@click.option("--top", default=10, show_default=True, type=Whole(1, 50), help="How many of the best settings to draw.")
@_chosen
def plot(file: Path, **options: Any) -> None:
    """Draw the best settings, the effect of each setting, importances, and a heat map where exactly two settings vary.

    Example: unspool study plot out/study.db --out out/study --format svg
    """
    from unspool.cli.study.plot import draw

    draw(file, **options)


@study.command()
@_STUDY
@click.option("--out", type=FILE, help="The page, one HTML file; when omitted, beside FILE with the ending .html.")
@click.option("--markdown", type=FILE, help="Also write text and tables as Markdown.")
@_BY
@_chosen
def report(file: Path, **options: Any) -> None:
    """Write a study as one HTML page that works offline: the result, whether it is real, what to try next.

    The best settings are chosen by validation alone, and a paired test compares them with the runner-up on test data. Folded below: all settings,
    which settings matter and how much chance alone would give, pictures, failures, and the commands that repeat the best trials.

    Example: unspool study report out/study.db --out out/study.html
    """
    from unspool.cli.study.report import write

    write(file, **options)


@study.command()
@_STUDY
@click.argument("out", type=PLACE)
def export(file: Path, out: Path) -> None:
    """Write all trials as one table: .csv, .parquet, .json or .jsonl.

    Example: unspool study export out/study.db trials.csv
    """
    from unspool.cli.study.export import write

    write(file, out)
