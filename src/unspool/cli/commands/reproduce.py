"""``unspool reproduce``: the paper's tables and figures again, ours next to theirs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from unspool.cli.commands.options import Command, device_option
from unspool.cli.number_types import Finite, Whole

_FOLDER = click.Path(file_okay=False, path_type=Path)
_JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON lines instead of text.")
_DETAILS = click.option("--details", is_flag=True, help="Also print what the page shows only on demand.")
_ROOT = click.Path(exists=True, file_okay=False, path_type=Path)
_DATA = click.option("--data", "root", type=_ROOT, help="Folder with raw data; the variable UNSPOOL_DATA when omitted.")


def _listed(context: click.Context, option: click.Parameter, values: tuple[str, ...]) -> tuple[str, ...]:
    """Names that were given in one list, with commas, or one by one."""
    names = tuple(name.strip() for value in values for name in value.split(",") if name.strip())
    if values and not names:
        raise click.BadParameter("no name is given; leave the option out for all of them")
    return names


def _whole(context: click.Context, option: click.Parameter, values: tuple[str, ...]) -> tuple[int, ...]:
    """Whole numbers of at least 1, in one list or one by one."""
    names = _listed(context, option, values)
    wrong = next((name for name in names if not (name.isascii() and name.isdigit() and int(name) > 0)), None)
    if wrong is not None:
        raise click.BadParameter(f"{wrong!r} is not a whole number of at least 1")
    return tuple(dict.fromkeys(int(name) for name in names))


def _names(option: str, text: str) -> Any:
    return click.option(option, multiple=True, callback=_listed, metavar="A,B,...", help=text)


_DEPTHS = click.option(
    "--depths", multiple=True, callback=_whole, metavar="2,8,...", help="Only these numbers of layers."
)
_PRESETS = click.option(
    "--preset",
    "presets",
    multiple=True,
    type=click.Choice(["paper", "official", "tuned"]),
    help="paper: settings as printed. official: those of each model's authors. tuned: a wider search. May be repeated.",
)
_TRAINING = (
    _names("--models", "Only these models."),
    _names("--datasets", "Only these data sets."),
    click.option("--seeds", type=Whole(1, 1000), help="Repetitions; 10 when omitted (networks: 3)."),
    click.option("--epochs", type=Whole(1), help="Maximum number of epochs, to try things out with short runs."),
    click.option("--max-settings", type=Whole(1), help="Search only this many settings, drawn from all of them."),
    click.option("--quick", is_flag=True, help="2 seeds, 50 epochs, a few settings, on the built-in CiteSeer only."),
    click.option("--out", type=_FOLDER, help="Where study and results go: out/reproduce when omitted, out/quick with --quick."),
    device_option,
    click.option("--jobs", type=Whole(1), help="Processes on a CPU; as many as make it faster when omitted."),
    click.option("--stored", is_flag=True, help="Train nothing: write and show what OUT/study.db already holds."),
    _DATA,
    _DETAILS,
    _JSON,
)  # fmt: skip


def _experiment(name: str, text: str, *more: Any) -> None:
    """Add the command of an experiment, with the options of every experiment that trains and some of its own."""

    def command(**options: Any) -> None:
        from unspool.cli.reproduce_run import run

        run((name,), (), **options)

    made: Command = command
    for option in reversed((*more, *_TRAINING)):
        made = option(made)
    reproduce.command(name=name, help=text)(made)


def _with_training(command: Command) -> Command:
    for option in reversed((_PRESETS, *_TRAINING)):
        command = option(command)
    return command


@click.group()
def reproduce() -> None:
    """Run the paper's tables and figures again, ours next to theirs.

    Everything goes through one study (OUT/study.db), so a command that is run again continues where it was interrupted, and what
    one experiment has trained the next one does not train again. Results are kept as CSV files in OUT/results, one row for
    each trial, with machine.json. Data sets that are not available are named and left out. The same tables are on the page that `unspool report` writes.

    \b
    Examples:
      unspool reproduce all --quick
      unspool reproduce table2 --preset paper --datasets cora,citeseer
      unspool reproduce depth --models UGDGNN,APPNP
      unspool reproduce claims experiments/results
    """


@reproduce.command()
@_DATA
@_JSON
def datasets(root: Path | None, as_json: bool) -> None:
    """Table 3: nodes, edges, features and classes, our counts next to the printed ones, and why they differ.

    Example: unspool reproduce datasets
    """
    from unspool.cli.reproduce_run import show_datasets

    show_datasets(root, as_json)


@reproduce.command()
@click.option("--trials", default=3, show_default=True, type=Whole(1, 1000), help="Random cases per claim.")
@click.option(
    "--seed",
    default=0,
    show_default=True,
    type=Whole(0, 2**32 - 1),
    help="Seed of the random graphs, sizes and parameters.",
)
@_DETAILS
@_JSON
def table1(trials: int, seed: int, details: bool, as_json: bool) -> None:
    """Table 1: the problem behind each model, printed by our own objects and certified in float64.

    Example: unspool reproduce table1 --trials 10
    """
    from unspool.cli.reproduce_run import show_table1

    if not show_table1(trials, seed, as_json, details):
        raise click.exceptions.Exit(1)


@reproduce.command()
@_with_training
def table2(presets: tuple[str, ...], **options: Any) -> None:
    """Table 2: accuracy of eight models of the paper, AirGNN, PPNP and MLP on its datasets, ten repetitions each.

    Prints ours, theirs, the difference, and whether ours is within one printed standard deviation or above; then the
    paper's claims, answered with paired tests. Cells without printed settings are searched on validation data, and the
    space and the number of trials are printed.

    Example: unspool reproduce table2 --preset paper --preset official --datasets cora,photo
    """
    from unspool.cli.reproduce_run import run

    run(("table2",), presets if presets else ("paper",), **options)


_experiment(
    "interpretations",
    """Cells of Table 2 that miss the printed number, under other interpretations of what the paper leaves open.

    Which epoch counts, whether features are scaled, which parameters are decayed, the split, and choices of single models.
    Needs `table2 --preset paper` in the same folder.

    Example: unspool reproduce interpretations --datasets cora
    """,
)
_experiment(
    "depth",
    """Figure 1: accuracy over depth, K = 1 to 20, 32 and 64, with the settings of Table 2.

    Tests the paper's two sentences: depth helps, and 4 to 10 layers suffice.

    Example: unspool reproduce depth --models UGDGNN --datasets citeseer --depths 2,8,32
    """,
    _DEPTHS,
)
_experiment(
    "robust",
    """Robustness: a fidelity of row lengths (AirGNN's, ‖H−X‖₂,₁) against one of squares, damaged and clean nodes scored separately.

    \b
    signals  the two problems themselves, on signals with rows 1 to 30 times as long
    damage   such rows behind the encoder of networks, and random edges
    always   features replaced in front of the encoder, and random edges, in training too
    after    the same for networks that were trained on clean data

    Example: unspool reproduce robust --parts signals,damage --datasets cora
    """,
    _names("--parts", "Only these: signals, damage, always, after."),
)
_experiment(
    "attacked",
    """Cora and CiteSeer with published attacks on their edges (Metattack, 0 to 25 %), with the settings of Table 2 before the attack.

    Settings that the paper does not print (AirGNN, LearntRows, MLP, ...) are those that `table2` or `robust` found in the same folder.

    Example: unspool reproduce attacked --datasets cora_metattack --models AirGNN,APPNP,MLP
    """,
)
_experiment(
    "nonlinearity",
    """The sentence "Nonlinearity hurts depth": the same network with and without H ≥ 0, its accuracy and its Dirichlet energy over depth.

    Example: unspool reproduce nonlinearity --datasets cora --depths 2,32
    """,
    _DEPTHS,
)
_experiment(
    "identity",
    """The sentence "The identity outside W promotes small norms and generalises better": UGDGNN against JKNet on class channels.

    Example: unspool reproduce identity --datasets cora
    """,
)
_experiment(
    "grid",
    """The paper's full grid search for each model and dataset, chosen on validation data.

    Example: unspool reproduce grid --models UGDGNN --datasets cora
    """,
)
_experiment(
    "heterophily",
    """Beyond the paper: Texas, Wisconsin, Cornell, Actor, filtered chameleon and squirrel, on their ten recorded splits.

    Example: unspool reproduce heterophily --models UGDGNN,GCN,MLP
    """,
)
_experiment(
    "networks",
    """What networks have learnt: their frequency responses, and their objectives along depth, for the report.

    Trains the settings of Table 2 (on heterophilous graphs those of their search) once more for three seeds.

    Example: unspool reproduce networks --datasets cora,texas --models UGDGNN,GPRGNN
    """,
)


@reproduce.command()
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@_JSON
def claims(folder: Path, as_json: bool) -> None:
    """The paper's claims that can be tested, each with what the results in FOLDER say about it; nothing is trained.

    Comparisons are paired by seed (and so by split and damage), and p-values are corrected by Holm's method. --json prints every comparison.

    Example: unspool reproduce claims experiments/results
    """
    from unspool.cli.reproduce_run import show_claims

    show_claims(folder, as_json)


@reproduce.command()
@_names("--datasets", "Only these data sets.")
@_names("--parts", "Only these: search, finals, ablation; table: nothing but what is there.")
@_names("--entries", "Only these: StableGNN, GRAND.")
@click.option(
    "--space",
    default="lead",
    show_default=True,
    type=click.Choice(["lead", "upper_heterophily"]),
    help="What is searched.",
)
@click.option(
    "--seconds",
    type=Finite(0, min_open=True),
    help="For the search of a data set; the best settings so far are chosen from.",
)
@click.option(
    "--final-seconds", type=Finite(0, min_open=True), help="For final evaluations and ablation of a data set."
)
@click.option("--rounds", type=Whole(1), help="At most so many structures of each entry, to try things out.")
@click.option("--numbers", type=Whole(1), help="At most so many settings of a structure.")
@click.option("--epochs", type=Whole(1), help="Maximum number of epochs.")
@click.option("--seeds", type=Whole(1), help="At most so many seeds, in the last stage of the search and at the end.")
@click.option(
    "--out", type=_FOLDER, default=Path("out/lead"), show_default=True, help="Where choices, finals and studies go."
)
@click.option("--commit", help="The state of the project, for finals.csv; asked of git when omitted.")
@device_option
@_DATA
def lead(
    datasets: tuple[str, ...], parts: tuple[str, ...], entries: tuple[str, ...], space: str, **options: Any
) -> None:
    """StableGNN under upper levels with views, and GRAND in the same space: search, final evaluation, ablation.

    Settings are searched on labelled nodes alone, divided anew under seeds from 100 on, in rounds that train both, so that both have the same number of
    trials whenever time is up; every stage has its share of the seconds. The chosen ones are evaluated once under the seeds 0 to 9 and appended to OUT/finals.csv with the commit
    and a digest of the space. What is there already stays, and the same command goes on where it was cut off.

    \b
    Examples:
      unspool reproduce lead --datasets citeseer --seconds 600
      unspool reproduce lead --parts table --out experiments
    """
    from unspool.cli.lead import run
    from unspool.reproduce.lead.run import LeadRun

    sizes = {name: options.pop(name) for name in ("rounds", "numbers", "epochs", "seeds")}
    run(datasets, parts, entries, space=space, sizes=sizes, job=LeadRun(**options))


@reproduce.command(name="all")
@_with_training
def everything(presets: tuple[str, ...], root: Path | None, as_json: bool, details: bool, **options: Any) -> None:
    """Everything: datasets, table1, table2 with all presets (--quick: paper alone), and all experiments.

    Example: unspool reproduce all --quick
    """
    from unspool.cli.reproduce_run import EVERY, run, show_datasets, show_table1

    show_datasets(root, as_json)
    show_table1(3, 0, as_json, details)
    usual = ("paper",) if options["quick"] else ("paper", "official", "tuned")
    run(EVERY, presets if presets else usual, root=root, as_json=as_json, details=details, **options)
