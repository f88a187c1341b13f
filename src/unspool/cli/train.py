"""The command ``unspool train``: data in, trained models and honest numbers out."""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
import torch
from rich.console import Console

from unspool.cli.crew import WORTHWHILE, Event, cores, together
from unspool.cli.place import check_folder
from unspool.cli.progress import Screen
from unspool.cli.seed import Order, finished, train_seed
from unspool.cli.source import Source
from unspool.cli.terminal import Terminal, echo
from unspool.cli.wish import Job, Wish, prepare
from unspool.files import alone_in
from unspool.models.checkpoint import check_device
from unspool.models.preset_tables import printed_accuracy
from unspool.train.loss import SHARES
from unspool.train.threads import SMALL, threads_for, use_threads


def run(wish: Wish, source: Source, order: Order) -> None:
    """Train the model for every seed, print and keep the results."""
    console = Terminal(quiet=order.as_json or order.quiet, soft_wrap=True)
    check_device(order.device)
    check_folder(order.out)
    with alone_in(order.out) as locked:
        if not locked:
            console.print(f"note: {order.out} lies on a file system without locks; let no other run write into it")
        _run(wish, source, order, console)


def _run(wish: Wish, source: Source, order: Order, console: Console) -> None:
    job = prepare(wish, source)
    console.print("\n".join([*job.lines(), f"on {order.device}{_threads(job, order)}"]))
    began, scores = time.monotonic(), dict[int, float]()
    wanted = list(range(order.first_seed, order.first_seed + order.seeds))
    for seed in wanted if order.resume else ():
        if (score := finished(order.out / f"seed{seed}", job)) is not None:
            scores[seed] = score
            console.print(f"seed {seed}: finished before, test {score:.4f}")
    left, reasons = [seed for seed in wanted if seed not in scores], list[str]()
    with Screen(console, order.as_json) as screen:
        for event in _events(job, (wish, source, order), left, screen.show):
            scores[event["seed"]] = event["test_score"]
            reasons.append(event["reason"])
    interrupted = "interrupted" in reasons or len(scores) < len(wanted)
    if interrupted:
        console.print("interrupted: the best epochs so far are kept; --resume continues")
    if scores:
        _summary(job, order, [scores[seed] for seed in sorted(scores)], time.monotonic() - began, console)
    if interrupted:
        raise click.exceptions.Exit(130)


def _events(
    job: Job, typed: tuple[Wish, Source, Order], seeds: list[int], show: Callable[[Event], None]
) -> Iterator[Event]:
    """Train the seeds, one after another or several at once; what ends comes out, everything is shown."""
    order = typed[2]
    jobs = _jobs(job, order, len(seeds))
    if jobs == 1:
        for seed in seeds:
            with use_threads(order.threads):
                ended = train_seed(job, order, seed, show)
            yield ended
            if ended["reason"] == "interrupted":
                return
        return
    for event in together(_work, typed, seeds, jobs):
        show(event)
        if event["event"] == "seed":
            yield event


def _work(typed: tuple[Wish, Source, Order], seeds: list[int], tell: Callable[[Event], None]) -> None:
    """What one of several processes does."""
    wish, source, order = typed
    job = prepare(wish, source)
    many = 1 if order.jobs is None else order.jobs
    torch.set_num_threads(max(torch.get_num_threads() // many, 1))  # on large graphs; small ones take one
    with use_threads(order.threads):
        for seed in seeds:
            if train_seed(job, order, seed, tell)["reason"] == "interrupted":
                return


def _threads(job: Job, order: Order) -> str:
    """How many threads a seed has, where that is a number to speak of."""
    if order.device != "cpu":
        return ""
    with use_threads(order.threads):
        count = threads_for(job.data.nodes)
    return f", {count} thread{'s'[: count > 1]} for each seed"


def _jobs(job: Job, order: Order, seeds: int) -> int:
    """How many processes: as asked for, or one per core where a seed needs a single thread and there is enough to do."""
    if order.jobs is not None:
        return max(min(order.jobs, seeds), 1)
    small = order.device == "cpu" and job.data.nodes <= SMALL
    return min(cores(), seeds) if small and seeds > 1 and seeds * job.plan.epochs >= WORTHWHILE else 1


def _summary(job: Job, order: Order, scores: list[float], seconds: float, console: Console) -> None:
    name = job.task.loss.score_name
    share = name in SHARES
    unit = 100 if share else 1
    mean = unit * statistics.fmean(scores)
    spread = unit * statistics.stdev(scores) if len(scores) > 1 else None
    printed = printed_accuracy(job.how.model.__name__, job.dataset) if name == "accuracy" and job.dataset else None
    report = None if order.no_report else _report(job, order, printed)
    if order.as_json:
        record = {"event": "summary", "score": name, "test_mean": mean / unit, "test_std": None if spread is None else spread / unit, "seeds": len(scores), "seconds": seconds, "paper_percent": printed, "report": None if report is None else str(report)}  # fmt: skip
        echo(json.dumps(record))
        return
    own = "" if job.as_printed else ", under its own settings"
    paper = f"; the paper prints {printed[0]:.2f} ± {printed[1]:.2f} (ten repetitions{own})" if printed else ""
    digits = 2 if share else 4
    around = "" if spread is None else f" ± {spread:.{digits}f}"
    console.print(f"\ntest {name} {mean:.{digits}f}{around} over {len(scores)} seed{'s'[: len(scores) > 1]}{paper}")
    console.print(f"it minimises  {job.objective}")
    console.print(f"{seconds:.1f} s; models in {order.out}{'' if report is None else f', report: {report}'}")


def _report(job: Job, order: Order, printed: Any) -> Path:
    from unspool import report

    return report.training(order.out, dataset=job.data, paper=printed, command=order.command)
