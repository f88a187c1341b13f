"""The command ``unspool study run``: a space and data in, a file of finished trials out."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import torch
from rich.console import Console

from unspool import study
from unspool.cli.crew import cores
from unspool.cli.place import check_folder
from unspool.cli.source import Source, said_in_options
from unspool.cli.study.answers import group_record, print_leaders
from unspool.cli.study.data import Material, material
from unspool.cli.study.file import console_for, next_steps, print_failures
from unspool.cli.study.screen import StudyScreen, echo, span, teller
from unspool.cli.study.space import Typed, space_of
from unspool.cli.wish import columns_of
from unspool.models.checkpoint import check_device
from unspool.study import Row, Status, Store, Trial
from unspool.train.device import device_for
from unspool.train.threads import SMALL

#: So many leaders are shown at the end.
SHOWN = 10
#: Fewer epochs of all trials than this are done before a second process pays: it takes seconds to start.
WORTHWHILE = 10_000


@dataclass(frozen=True)
class Order:
    """How the user wants it done."""

    out: Path
    jobs: int | None
    device: str | None
    at_once: int
    seconds: float | None
    retry_failed: bool
    threads: int | None
    quiet: bool
    as_json: bool

    @property
    def where(self) -> str:
        """The device: as asked for, or a GPU where there is one."""
        return device_for(self.device)


@dataclass(frozen=True, eq=False)
class Work:
    """Everything that is decided before the first trial."""

    space: study.Space
    trials: list[Trial]
    found: Material
    keys: list[str]
    left: list[Trial]
    jobs: int
    score: str

    @property
    def before(self) -> int:
        """How many trials had ended before."""
        return len(self.trials) - len(self.left)


def run(typed: Typed, source: Source, order: Order) -> None:
    """Train what is not in the file yet, and show what came of all."""
    console = console_for(quiet=order.as_json or order.quiet)
    check_device(order.where)
    space = space_of(typed)
    found = material(source, typed.preset)
    with said_in_options():
        trials = space.trials(found.known_as)
    check_folder(order.out.parent)
    with Store(order.out) as store:
        if order.retry_failed:
            store.retry_failed()
        work = _prepare(store, space, trials, found, order)
        _announce(work, order, console)
        began = time.monotonic()
        interrupted = _train(store, work, order, console)
        mine = set(work.keys)
        rows = [row for row in store.rows() if row.key in mine]
    _summary(rows, work, order, time.monotonic() - began, interrupted, console)
    if interrupted:
        raise click.exceptions.Exit(130)
    if all(row.status is Status.FAILED for row in rows):
        raise click.exceptions.Exit(1)


def _prepare(store: Store, space: study.Space, trials: list[Trial], found: Material, order: Order) -> Work:
    provide = study.Provider(found.data)
    keys = store.add(trials, provide.name, provide.mark)
    ended = {row.key for row in store.rows() if row.status in (Status.DONE, Status.FAILED)}
    left = [trial for trial, key in zip(trials, keys, strict=True) if key not in ended]
    return Work(space, trials, found, keys, left, _jobs(left, found, order), provide.score)


def _jobs(left: Sequence[Trial], found: Material, order: Order) -> int:
    """How many processes: as asked for, or one per core where a trial needs a single thread and there is enough to do."""
    if torch.device(order.where).type != "cpu" or len(left) < 2:
        return 1
    if order.jobs is not None:
        return min(order.jobs, len(left))
    enough = sum(trial.plan.epochs for trial in left) >= WORTHWHILE
    return min(cores(), len(left)) if enough and found.data.nodes <= SMALL else 1


def _train(store: Store, work: Work, order: Order, console: Console) -> bool:
    """Train the rest; whether it was interrupted."""
    if not work.left:
        return False
    # Processes claim whole packs: with fewer trials than packs hold, one would take them all.
    most = min(order.at_once, math.ceil(len(work.left) / work.jobs))
    try:
        with StudyScreen(console, order.as_json, work.before, teller(work.trials)) as screen:
            study.run(
                work.left, work.found.data, store=store, device=order.where, jobs=work.jobs, watch=screen.show, most=most,
                seconds=order.seconds, threads=order.threads,
            )  # fmt: skip
    except KeyboardInterrupt:
        return True
    return False


# -- what is said ------------------------------------------------------------------------------------------------------


def _announce(work: Work, order: Order, console: Console) -> None:
    """Before the work: data, models, number of trials, device, file."""
    presets = ", ".join(dict.fromkeys(trial.preset for trial in work.trials))
    seeds = len({trial.seed for trial in work.trials})
    if order.as_json:
        echo({
            "event": "start", "data": work.found.data.name, "models": [p.model.__name__ for p in work.space.parts],
            "trials": len(work.trials), "seeds": seeds, "finished_before": work.before, "device": order.where,
            "jobs": work.jobs, "file": str(order.out),
        })  # fmt: skip
        return
    many = f"{len(work.trials):,} trial{'s'[: len(work.trials) > 1]}"
    there = f", {work.before:,} of them there already" if work.before else ""
    beside = f", {work.jobs} processes" if work.jobs > 1 else ""
    beside += "" if order.threads is None else f", {order.threads} thread{'s'[: order.threads > 1]} each"
    console.print("\n".join([f"{work.found.data}", *columns_of(work.found.data), f"{work.space}"]), markup=False)
    console.print(f"what is not said comes from the preset {presets}")
    console.print(f"{many} into {order.out}{there}; on {order.where}{beside}", markup=False)


def _summary(
    rows: Sequence[Row], work: Work, order: Order, seconds: float, interrupted: bool, console: Console
) -> None:
    table = study.Table.of(rows, work.score)
    counts = Counter(row.status for row in rows)
    leaders = table.leaders(SHOWN) if len(table) else ()
    if order.as_json:
        _json_summary(rows, counts, leaders, table, seconds, interrupted)
        return
    unfinished = counts[Status.WAITING] + counts[Status.RUNNING]
    done = f"{counts[Status.DONE] + counts[Status.FAILED]:,} of {len(rows):,} trials have ended"
    if interrupted:
        console.print(f"interrupted: {done} and are kept; run the same command again to continue")
    elif unfinished:
        others = f", {counts[Status.RUNNING]} of them in other hands" if counts[Status.RUNNING] else ""
        console.print(f"{done}, {unfinished:,} wait{others}; run the same command again to continue")
        if order.seconds is not None and len(work.left) == unfinished:
            console.print(f"none ended in {order.seconds:g} s: give more --seconds, or fewer trials --at-once")
    print_failures(rows, console)
    if leaders:
        console.print()
        print_leaders(leaders, console)
        console.print(f"\nbest by validation: {table.best()}", markup=False)
    trained = f", {work.before:,} of them before" if work.before else ""
    if leaders:
        console.print(
            f"{counts[Status.DONE]:,} trial{'s'[: counts[Status.DONE] > 1]} done{trained}; {span(seconds)}; all in {order.out}",
            markup=False,
        )
        console.print("\n" + "\n".join(["next:", *next_steps(order.out, table)]), markup=False)


def _json_summary(
    rows: Sequence[Row],
    counts: Mapping[Status, int],
    leaders: Sequence[study.Best],
    table: study.Table,
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
    echo(
        {"event": "summary", **told, "interrupted": interrupted, "seconds": seconds, "score": table.score, "best": best}
    )
