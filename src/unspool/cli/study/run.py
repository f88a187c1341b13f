"""The command ``unspool study run``: a space and data in, a file of finished trials out."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from unspool import study
from unspool.cli.data_notes import column_lines, weight_lines
from unspool.cli.data_options import DataOptions
from unspool.cli.paths import check_folder
from unspool.cli.study.best import group_record, print_leaders
from unspool.cli.study.keep import check_before, keep
from unspool.cli.study.open_study import console_for, next_steps, print_failures
from unspool.cli.study.screen import StudyScreen, echo, span, teller
from unspool.cli.study.space_options import SpaceOptions
from unspool.cli.train_options import check_trials, loader_of, name_for_presets
from unspool.device import check_device, device_for
from unspool.errors import InputError, mention
from unspool.parallel import worker_count
from unspool.study import Row, Status, Store, Trial
from unspool.study.machines.cluster import Cluster
from unspool.train import TrialLoader
from unspool.train.threads import SMALL

#: So many leaders are shown at the end.
SHOWN = 10


@dataclass(frozen=True)
class StudyOptions:
    """How the user wants it done."""

    out: Path
    keep: int
    jobs: int | None
    device: str | None
    at_once: int
    seconds: float | None
    retry_failed: bool
    threads: int | None
    quiet: bool
    as_json: bool
    machines: str | None = None


@dataclass(frozen=True, eq=False)
class Work:
    """Everything that is decided before the first trial."""

    space: study.Space
    trials: list[Trial]
    loader: TrialLoader
    keys: list[str]
    left: list[Trial]
    jobs: int
    cluster: Cluster | None = None

    @property
    def before(self) -> int:
        """How many trials had ended before."""
        return len(self.trials) - len(self.left)


def run(how: SpaceOptions, data: DataOptions, options: StudyOptions) -> None:
    """Train what is not in the file yet, and show what came of all."""
    if options.machines is None:
        _run(how, data, options)
        return
    if options.device not in (None, "cpu", "cuda"):
        raise InputError(
            "device",
            options.device,
            f"cpu or cuda with {mention('machines')}",
            "each worker has the GPU that Ray gives it",
        )
    machines = study.Ray(options.machines, cpus=1 if options.threads is None else options.threads, workers=options.jobs)
    with machines.connected(options.device) as cluster:
        _run(how, data, options, cluster)


def _run(how: SpaceOptions, data: DataOptions, options: StudyOptions, cluster: Cluster | None = None) -> None:
    console = console_for(quiet=options.as_json or options.quiet)
    device = device_for(options.device if cluster is None else "cpu")
    check_device(device)
    space = how.space(data)
    loader = loader_of(data, how.loss, device)
    if not data.own and data.split is not None:
        loader.name = f"{loader.name} ({data.split})"
    trials = space.trials(name_for_presets(data))
    if how.normalise_rows is not None:
        trials = [replace(trial, normalise_rows=how.normalise_rows) for trial in trials]
    check_trials(trials, loader)
    check_folder(options.out.parent)
    if options.keep:
        check_before(options.out)
    with Store(options.out) as store:
        if options.retry_failed:
            store.retry_failed()
        work = _prepare(store, space, trials, loader, options, cluster)
        _announce(work, options, console)
        began = time.monotonic()
        interrupted = _train(store, work, options, console)
        mine = set(work.keys)
        rows = [row for row in store.rows() if row.key in mine]
    _summary(rows, work, options, time.monotonic() - began, interrupted, console)
    if interrupted:
        raise click.exceptions.Exit(130)
    if all(row.status is Status.FAILED for row in rows):
        raise click.exceptions.Exit(1)
    _keep(rows, work, options, console)


def _prepare(
    store: Store,
    space: study.Space,
    trials: list[Trial],
    loader: TrialLoader,
    options: StudyOptions,
    cluster: Cluster | None,
) -> Work:
    keys = store.add(trials, loader.record)
    ended = {row.key for row in store.rows() if row.status in (Status.DONE, Status.FAILED)}
    left = [trial for trial, key in zip(trials, keys, strict=True) if key not in ended]
    if cluster is not None:
        workers = cluster.workers(len(left)) if left else 1
        return Work(space, trials, loader, keys, left, workers, cluster)
    cpu = loader.device.type == "cpu"
    epochs = sum(trial.config.epochs for trial in left)
    jobs = worker_count(options.jobs, len(left), epochs, loader.data.nodes <= SMALL) if cpu and left else 1
    return Work(space, trials, loader, keys, left, jobs)


def _train(store: Store, work: Work, options: StudyOptions, console: Console) -> bool:
    """Train the rest; whether it was interrupted."""
    if not work.left:
        return False
    # Processes claim whole batches: with fewer trials than batches hold, one would take them all.
    most = min(options.at_once, math.ceil(len(work.left) / work.jobs))
    try:
        with StudyScreen(console, options.as_json, work.before, teller(work.trials)) as screen:
            where: dict[str, Any] = {"jobs": work.jobs, "threads": options.threads}
            if work.cluster is not None:
                where = {"machines": work.cluster.asked, "device": work.cluster.device}
            study.run(
                work.left, work.loader, store=store, watch=screen.show, most=most, seconds=options.seconds, **where
            )
    except KeyboardInterrupt:
        return True
    return False


def _keep(rows: Sequence[Row], work: Work, options: StudyOptions, console: Console) -> None:
    """Write the networks of the best settings beside the file."""
    table = study.TrialTable.of(rows)
    if options.keep and len(table):
        trials = dict(zip(work.keys, work.trials, strict=True))
        keep(options.out, table.leaders(options.keep), rows, work.loader, trials, options.as_json, console)


# -- what is said ------------------------------------------------------------------------------------------------------


def _announce(work: Work, options: StudyOptions, console: Console) -> None:
    """Before the work: data, models, number of trials, device, file."""
    presets = _presets(work.trials)
    seeds = len({trial.seed for trial in work.trials})
    device = str(work.loader.device) if work.cluster is None else work.cluster.device
    # How a GPU packs is not known where there may be none.
    known = device == str(work.loader.device)
    packing = study.packing(work.left if known else [], work.loader.prepare)
    if options.as_json:
        echo({
            "event": "start", "data": work.loader.name, "models": [p.model.__name__ for p in work.space.parts],
            "trials": len(work.trials), "seeds": seeds, "finished_before": work.before, "device": device,
            "jobs": work.jobs, "machines": 1 if work.cluster is None else len(work.cluster.machines()), "file": str(options.out), "packing": [asdict(group) for group in packing.groups],
        })  # fmt: skip
        return
    many = f"{len(work.trials):,} trial{'s'[: len(work.trials) > 1]}"
    there = f", {work.before:,} of them there already" if work.before else ""
    crowd = f", {work.jobs} processes" if work.jobs > 1 else ""
    crowd += "" if work.cluster is None else f" on {work.cluster}"
    crowd += "" if options.threads is None else f", {options.threads} thread{'s'[: options.threads > 1]} each"
    about = [f"{work.loader.data}", *column_lines(work.loader.data), *weight_lines(work.loader)]
    console.print("\n".join([*about, f"{work.space}"]), markup=False)
    console.print(f"settings that are not given come from the preset {presets}", markup=False)
    console.print(f"{many} into {options.out}{there}; on {device}{crowd}", markup=False)
    if packing.groups:
        console.print(f"{packing}", markup=False)
    if packing.form is not None and work.loader.device.type == "cuda":
        console.print(
            f"features are multiplied as {packing.form.value} ones, by the share of their entries", markup=False
        )


def _presets(trials: Sequence[Trial]) -> str:
    """Which presets, and which rows of features; by model where models differ."""
    each: dict[str, list[str]] = {}
    for trial in trials:
        rows = "rows scaled to sum 1" if trial.normalise_rows else "rows as they are"
        each.setdefault(trial.name, []).append(f"{trial.preset} ({rows})")
    told = {name: ", ".join(dict.fromkeys(words)) for name, words in each.items()}
    if len(set(told.values())) == 1:
        return next(iter(told.values()))
    words = "; ".join(f"{name}: {presets}" for name, presets in told.items())
    return f"of each model, and they differ: {words}; for equal conditions give --preset default --normalise-rows"


def _summary(
    rows: Sequence[Row], work: Work, options: StudyOptions, seconds: float, interrupted: bool, console: Console
) -> None:
    table = study.TrialTable.of(rows)
    counts = Counter(row.status for row in rows)
    leaders = table.leaders(SHOWN) if len(table) else ()
    if options.as_json:
        _json_summary(rows, counts, leaders, table, seconds, interrupted)
        return
    unfinished = counts[Status.WAITING] + counts[Status.RUNNING]
    done = f"{counts[Status.DONE] + counts[Status.FAILED]:,} of {len(rows):,} trials have ended"
    if interrupted:
        console.print(f"interrupted: {done} and are kept; run the same command again to continue")
    elif unfinished:
        others = f", {counts[Status.RUNNING]} of them in other processes" if counts[Status.RUNNING] else ""
        console.print(f"{done}, {unfinished:,} wait{others}; run the same command again to continue")
        if options.seconds is not None and len(work.left) == unfinished:
            console.print(f"none ended in {options.seconds:g} s: give more --seconds, or fewer trials --at-once")
    print_failures(rows, console)
    if not leaders:
        return
    console.print()
    print_leaders(leaders, console)
    console.print(f"\nbest by validation: {table.best()}", markup=False)
    trained = f", {work.before:,} of them before" if work.before else ""
    many = f"{counts[Status.DONE]:,} trial{'s'[: counts[Status.DONE] > 1]} done{trained}"
    console.print(f"{many}; {span(seconds)}; all in {options.out}", markup=False)
    console.print("\n" + "\n".join(["next:", *next_steps(options.out, table)]), markup=False)


def _json_summary(
    rows: Sequence[Row],
    counts: Mapping[Status, int],
    leaders: Sequence[study.Best],
    table: study.TrialTable,
    seconds: float,
    interrupted: bool,
) -> None:
    for row in rows:
        if row.status is Status.FAILED:
            echo({"event": "failed", "number": row.number, "key": row.key, "message": row.message})
    for best in leaders:
        echo({"event": "leader", **group_record(best)})
    told: dict[str, Any] = {status.value: counts[status] for status in Status}
    best = group_record(table.best()) if leaders else None
    score = rows[0].data.score if rows else None
    echo({"event": "summary", **told, "interrupted": interrupted, "seconds": seconds, "score": score, "best": best})
