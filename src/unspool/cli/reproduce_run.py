"""Running experiments with a live display, and telling what came of them."""

from __future__ import annotations

import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from unspool import datasets as data_sets
from unspool import theory
from unspool.cli.paths import check_folder
from unspool.cli.reproduce_json import echo_certificates, echo_networks, echo_results, echo_sizes, echo_tests
from unspool.cli.show_blocks import Detail, show_blocks, show_sections
from unspool.cli.study.open_study import console_for
from unspool.cli.study.screen import StudyScreen, echo, span, teller
from unspool.device import check_device
from unspool.reproduce import Budget, ExperimentRunner, RunOptions, Workspace, results, run_table2
from unspool.reproduce.all_claims import all_claims
from unspool.reproduce.attacked import run_attacked
from unspool.reproduce.depth import run_depth
from unspool.reproduce.identity import run_identity
from unspool.reproduce.interpretations import printed_records, run_interpretations
from unspool.reproduce.networks import Network, read_networks, readable_networks, run_networks
from unspool.reproduce.nonlinearity import run_nonlinearity
from unspool.reproduce.options import model_named
from unspool.reproduce.records import Results
from unspool.reproduce.report_page import Findings, sections_of
from unspool.reproduce.robust import run_robust
from unspool.reproduce.runner import Watching
from unspool.reproduce.searches import run_grid, run_heterophily
from unspool.reproduce.sections.overview import claims_blocks
from unspool.train import Trial

#: So many failures are printed.
FAILURES = 5
_RUNS = {
    "interpretations": run_interpretations,
    "depth": run_depth,
    "robust": run_robust,
    "attacked": run_attacked,
    "nonlinearity": run_nonlinearity,
    "identity": run_identity,
    "grid": run_grid,
    "heterophily": run_heterophily,
    "networks": run_networks,
}
#: All experiments that train, in the order of ``unspool reproduce all``.
EVERY = ("table2", *_RUNS)


@dataclass(frozen=True)
class Output:
    """Where results are shown, and how."""

    console: Console
    as_json: bool
    detail: Detail

    @staticmethod
    def of(as_json: bool, details: bool) -> Output:
        """As it was asked for."""
        return Output(console_for(quiet=as_json), as_json, Detail.FULL if details else Detail.BRIEF)


def run(
    experiments: Sequence[str],
    presets: Sequence[str],
    *,
    quick: bool,
    out: Path | None,
    device: str | None,
    jobs: int | None,
    root: Path | None,
    as_json: bool,
    details: bool,
    stored: bool,
    models: tuple[str, ...],
    **scope: Any,
) -> None:
    """Run experiments one after the other, each shown when it is done."""
    if device is not None:
        check_device(device)
    names = tuple(model_named(name).__name__ for name in models)  # a wrong name is found before the work
    options = RunOptions(models=names, budget=Budget.QUICK if quick else Budget.FULL, **scope)
    for experiment in experiments:
        options.experiment(experiment)
    out = out if out is not None else Path("out/quick" if quick else "out/reproduce")
    if tuple(experiments) == ("interpretations",):
        printed_records(out / "results")  # refuses before a study is made
    check_folder(out)
    output = Output.of(as_json, details)
    workspace = Workspace(out, device, jobs, root, " ".join(["unspool", *sys.argv[1:]]), stored)
    with ExperimentRunner(
        workspace, options, _screens(output), say=None if as_json else output.console.print
    ) as runner:
        if not stored:
            runner.store.retry_failed()  # a full disk or memory may have room by now
        for experiment in experiments:
            there = readable_networks(workspace.results) if experiment == "networks" else []
            runner.check(experiment, {(one.dataset, one.model): one.epochs for one in there})
        for experiment in experiments:
            _one(runner, experiment, presets, output)
        _notes(runner, output)
    if not as_json:
        output.console.print(f"\ntrials are in {workspace.store}, results in {workspace.results}")
    if runner.missing and not runner.found:
        raise click.exceptions.Exit(1)  # nothing was run


def show_claims(folder: Path, as_json: bool) -> None:
    """Every claim that the results in a folder say something about."""
    found = results.read(folder)
    if as_json:
        for subject in all_claims(found):
            echo_tests(subject.tests)
    else:
        show_blocks(claims_blocks(found), console_for())


def show_datasets(root: Path | None, as_json: bool) -> None:
    """Table 3."""
    rows = data_sets.table3(root)
    if as_json:
        echo_sizes(rows)
    else:
        show_sections(sections_of("datasets", Findings(Results([]), sizes=rows)), console_for())


def show_table1(trials: int, seed: int, as_json: bool, details: bool) -> bool:
    """Table 1; whether all certificates end as documented."""
    certificates = theory.verify(seed, trials)
    if as_json:
        echo_certificates(certificates)
    else:
        output = Output.of(as_json, details)
        found = Findings(Results([]), certificates, trials=trials)
        show_sections(sections_of("table1", found), output.console, output.detail)
    return all(certificate.as_stated for certificate in certificates)


# -- inside ------------------------------------------------------------------------------------------------------------


def _one(runner: ExperimentRunner, experiment: str, presets: Sequence[str], output: Output) -> None:
    try:
        if experiment == "table2":
            run_table2(runner, presets)
        else:
            _RUNS[experiment](runner)
    except KeyboardInterrupt:
        output.console.print("interrupted: what has ended is kept; run the same command again to continue")
        raise click.exceptions.Exit(130) from None
    found, networks = _found(runner, experiment, presets)
    there = networks if experiment == "networks" else found.of(experiment) or found.measurements
    if output.as_json:
        echo_networks(networks)
        echo_results(experiment, found)
    elif there:
        _title(experiment, found, output.console)
        sections = sections_of(experiment, Findings(found, networks=networks))
        show_sections(sections, output.console, output.detail)
    elif runner.workspace.stored:
        output.console.print(f"{experiment}: the study holds nothing of this that is whole; run it without --stored")


def _found(runner: ExperimentRunner, experiment: str, presets: Sequence[str]) -> tuple[Results, list[Network]]:
    """What the files hold about the models, datasets and presets that were asked for."""
    folder, options = runner.workspace.results, runner.options
    models = {kind.__name__ for kind in options.model_classes(experiment)}
    datasets = options.experiment(experiment)["datasets"]
    if experiment == "networks":
        own = [one for one in read_networks(folder) if one.model in models and one.dataset in datasets]
        return Results([]), own
    try:
        found = results.read(folder)
    except FileNotFoundError:
        return Results([]), []
    return found.only(models, datasets, presets if experiment == "table2" else ()), []


def _title(experiment: str, found: Results, console: Console) -> None:
    spent = found.machine.get("experiments", {}).get(experiment)
    if spent:
        hardware = ", ".join(spent["hardware"])
        console.print(f"\n{experiment}: {spent['trials']:,} trials in {span(spent['seconds'])} on {hardware}")


def _notes(runner: ExperimentRunner, output: Output) -> None:
    """What was not run, what failed, and what was cut short."""
    if output.as_json:
        for name, why in runner.missing.items():
            echo({"event": "not run", "dataset": name, "message": why})
        for message in runner.failed:
            echo({"event": "failed", "message": message})
        return
    console, options = output.console, runner.options
    for why in runner.missing.values():
        console.print(why)
    if runner.failed:
        console.print(f"{len(runner.failed)} kinds of trials failed:")
    for message in runner.failed[:FAILURES]:
        console.print(f"  {' '.join(message.split())[:300]}")
    if options.max_epochs is not None and runner.trained:
        console.print(f"runs were cut at {options.max_epochs} epochs: these are not the numbers of the experiment")
    if options.settings_per_search is not None and runner.searched:
        console.print(f"searches tried {options.settings_per_search} settings of their space, drawn at random")


def _screens(output: Output) -> Watching:
    """A live display for each set of trials, under the name of the experiment."""
    console, as_json = output.console, output.as_json

    @contextmanager
    def watching(title: str, trials: Sequence[Trial], before: int) -> Generator[Any]:
        if as_json:
            echo({"event": "start", "title": title, "trials": len(trials), "finished_before": before})
        else:
            there = f", {before:,} of them there already" if before else ""
            console.print(f"{title}: {len(trials):,} trial{'s'[: len(trials) > 1]}{there}")
        words = teller(trials)
        with StudyScreen(console, as_json, before, lambda trial: f"{title}: {words(trial)}") as screen:
            yield screen.show

    return watching
