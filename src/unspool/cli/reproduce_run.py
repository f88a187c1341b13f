"""Running experiments behind a screen, and telling what came of them."""

from __future__ import annotations

import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from unspool.cli.place import check_folder
from unspool.cli.reproduce_show import show_results
from unspool.cli.study.file import console_for
from unspool.cli.study.screen import StudyScreen, echo, teller
from unspool.models.checkpoint import check_device
from unspool.reproduce.attacked import run_attacked
from unspool.reproduce.bench import Bench, Watching
from unspool.reproduce.depth import run_depth
from unspool.reproduce.identity import run_identity
from unspool.reproduce.networks import readable_networks, run_networks
from unspool.reproduce.nonlinearity import run_nonlinearity
from unspool.reproduce.readings import printed_rows, run_readings
from unspool.reproduce.robust import run_robust
from unspool.reproduce.settings import Pace, Place, Scope, model_named
from unspool.reproduce.table2 import run_table2
from unspool.reproduce.wide import run_grid, run_heterophily
from unspool.study import Trial

#: So many failures are printed.
FAILURES = 5
_RUNS = {
    "readings": run_readings,
    "depth": run_depth,
    "robust": run_robust,
    "attacked": run_attacked,
    "nonlinearity": run_nonlinearity,
    "identity": run_identity,
    "grid": run_grid,
    "heterophily": run_heterophily,
    "networks": run_networks,
}


def run(
    experiments: Sequence[str], presets: Sequence[str], *, models: tuple[str, ...], datasets: tuple[str, ...], seeds: int | None,
    epochs: int | None, most: int | None, quick: bool, out: Path | None, device: str | None, jobs: int | None, root: Path | None,
    as_json: bool, stored: bool = False, depths: tuple[int, ...] = (), parts: tuple[str, ...] = (),
) -> None:  # fmt: skip
    """Run experiments one after the other, each shown when it is done."""
    if device is not None:
        check_device(device)
    names = tuple(model_named(name).__name__ for name in models)  # a slip of the pen is found before the work
    scope = Scope(seeds, epochs, names, datasets, most, Pace.QUICK if quick else Pace.FULL, depths, parts)
    for experiment in experiments:
        scope.asked(experiment)
    out = out if out is not None else Path("out/quick" if quick else "out/reproduce")
    if experiments == ("readings",):
        printed_rows(out / "results")  # refuses before a study is made
    check_folder(out)
    console = console_for(quiet=as_json)
    place = Place(out, device, jobs, root, _command(), stored)
    say = None if as_json else lambda text: console.print(text, markup=False, highlight=False)
    with Bench(place, scope, _screens(console, as_json), say=say) as bench:
        if not stored:
            bench.store.retry_failed()  # a full disk or memory may have room by now
        for experiment in experiments:
            there = readable_networks(place.results) if experiment == "networks" else []
            bench.check(experiment, {(one.dataset, one.model): one.epochs for one in there})
        for experiment in experiments:
            _one(bench, experiment, presets, console, as_json)
        _notes(bench, console, as_json)
    if not as_json:
        _warn_of_short_runs(bench, console)
        console.print(f"\ntrials are in {place.store}, results in {place.results}", markup=False)
    if bench.missing and not bench.found:
        raise click.exceptions.Exit(1)  # nothing was run


def _one(bench: Bench, experiment: str, presets: Sequence[str], console: Console, as_json: bool) -> None:
    try:
        if experiment == "table2":
            run_table2(bench, presets)
        else:
            _RUNS[experiment](bench)
    except KeyboardInterrupt:
        console.print("interrupted: what has ended is kept; run the same command again to continue")
        raise click.exceptions.Exit(130) from None
    there = show_results(bench.place.results, experiment, presets, bench.scope, console, as_json)
    if not there and bench.place.stored and not as_json:
        console.print(
            f"{experiment}: the study holds nothing of this that is whole; run it without --stored", markup=False
        )


def _notes(bench: Bench, console: Console, as_json: bool) -> None:
    """What was not run, and what failed."""
    for name, why in bench.missing.items():
        if as_json:
            echo({"event": "not run", "dataset": name, "message": why})
        else:
            console.print(why, markup=False)
    if as_json:
        for message in bench.failed:
            echo({"event": "failed", "message": message})
    elif bench.failed:
        console.print(f"{len(bench.failed)} kinds of trials failed:")
        for message in bench.failed[:FAILURES]:
            console.print(f"  {' '.join(message.split())[:300]}", markup=False)


def _warn_of_short_runs(bench: Bench, console: Console) -> None:
    scope = bench.scope
    if scope.longest is not None and bench.trained:
        console.print(f"runs were cut at {scope.longest} epochs: these are not the numbers of the experiment")
    if scope.settings is not None and bench.searched:
        console.print(f"searches tried {scope.settings} settings of their space, drawn at random")


def _screens(console: Console, as_json: bool) -> Watching:
    """A study screen for each set of trials, under the name of the experiment."""

    @contextmanager
    def watching(title: str, trials: Sequence[Trial], before: int) -> Generator[Any]:
        if as_json:
            echo({"event": "start", "title": title, "trials": len(trials), "finished_before": before})
        else:
            there = f", {before:,} of them there already" if before else ""
            console.print(f"{title}: {len(trials):,} trial{'s'[: len(trials) > 1]}{there}", markup=False)
        words = teller(trials)
        with StudyScreen(console, as_json, before, lambda trial: f"{title}: {words(trial)}") as screen:
            yield screen.show

    return watching


def _command() -> str:
    """What was typed, without the path of the program."""
    return " ".join(["unspool", *sys.argv[1:]])
