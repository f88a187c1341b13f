"""The command ``unspool train``: data in, trained models and honest numbers out."""

from __future__ import annotations

import csv
import io
import json
import statistics
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from unspool import train
from unspool.cli.progress import Watcher
from unspool.cli.source import Source
from unspool.cli.wish import Job, Wish, prepare
from unspool.files import write_whole
from unspool.models.checkpoint import check_device
from unspool.models.folder import CARD, load_folder, save_folder
from unspool.models.preset_tables import printed_accuracy
from unspool.report import machine


@dataclass(frozen=True)
class Order:
    """How the user wants it done."""

    seeds: int
    first_seed: int
    device: str
    out: Path
    resume: bool
    snapshot_every: float
    quiet: bool
    as_json: bool
    no_report: bool
    command: str


def run(wish: Wish, source: Source, order: Order) -> None:
    """Train the model for every seed, print and keep the results."""
    console = Console(highlight=False, quiet=order.as_json or order.quiet, soft_wrap=True)
    check_device(order.device)
    order.out.mkdir(parents=True, exist_ok=True)
    _check_place(order)
    job = prepare(wish, source)
    console.print("\n".join(job.lines()))
    began, scores, reason = time.monotonic(), [], ""
    for seed in range(order.first_seed, order.first_seed + order.seeds):
        place = order.out / f"seed{seed}"
        if order.resume and (score := _finished(place, job)) is not None:
            scores.append(score)
            console.print(f"seed {seed}: finished before, test {score:.4f}")
            continue
        score, reason = _one(job, order, seed, console)
        scores.append(score)
        if reason == "interrupted":
            console.print("interrupted: the best epoch so far is kept; --resume continues")
            break
    _summary(job, order, scores, time.monotonic() - began, console)
    if reason == "interrupted":
        raise click.exceptions.Exit(130)


def _check_place(order: Order) -> None:
    """Find out before the work whether the results can be kept."""
    probe = order.out / ".probe"
    try:
        write_whole(probe, lambda file: file.write(b"?"))
        probe.unlink()
    except OSError as problem:
        raise OSError(
            f"cannot write into {order.out}: {problem.strerror}; choose another place with --out"
        ) from problem


def _finished(place: Path, job: Job) -> float | None:
    """The test score of a run that came to its end, if there is one in this folder; one of another kind is refused."""
    if not (place / CARD).is_file():
        return None
    card = load_folder(place)[1]
    metrics = card.get("metrics", {})
    if metrics.get("reason") == "interrupted":
        return None
    for what, here, there in (
        ("model", job.how.model.__name__, card.get("model")),
        ("data", job.data.hash, card.get("data", {}).get("hash")),
        ("preset", job.how.name, card.get("preset", {}).get("name")),
    ):
        if there is not None and here != there:
            raise ValueError(
                f"{place} was trained with another {what} ({there}, not {here}); choose another --out, or leave --resume out"
            )
    return metrics.get("test_score")


def _one(job: Job, order: Order, seed: int, console: Console) -> tuple[float, str]:
    """Train one seed and keep it; its test score, and why it ended."""
    place = order.out / f"seed{seed}"
    place.mkdir(parents=True, exist_ok=True)
    snapshot = place / "run.pt"
    for rest in place.glob(".*.*"):  # what a killed process was writing
        rest.unlink()
    if not order.resume:
        snapshot.unlink(missing_ok=True)
        (place / CARD).unlink(missing_ok=True)
    data, task = job.repetition(seed)
    with Watcher(console, seed, job.plan, order.as_json) as watcher:
        model, run = train.run_seed(
            job.build,
            seed,
            task.to(order.device),
            job.plan,
            watch=watcher.watch,
            snapshot=snapshot,
            every=order.snapshot_every,
        )
    _write_history(place / "history.csv", run)
    metrics = {
        **asdict(run.best),
        "seed": seed,
        "epochs": len(run.history),
        "reason": run.reason,
        "seconds": run.seconds,
    }
    save_folder(model, place, **job.facts(data), device=order.device, hardware=machine(order.device), metrics=metrics)  # type: ignore[arg-type]
    if run.reason != "interrupted":
        snapshot.unlink(missing_ok=True)
    if order.as_json:
        click.echo(json.dumps({"event": "seed", **metrics, "folder": str(place)}))
    else:
        console.print(f"seed {seed}: {run}")
    return run.best.test_score, run.reason


def _write_history(path: Path, run: train.Run) -> None:
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(["epoch", "train_loss", "valid_loss", "valid_score", "test_score"])
    rows.writerows([e.epoch, *(f"{v:.6g}" for v in e.to_list()[1:])] for e in run.history)
    write_whole(path, lambda file: file.write(text.getvalue().encode()))


def _summary(job: Job, order: Order, scores: list[float], seconds: float, console: Console) -> None:
    name = job.task.loss.score_name
    share = name in ("accuracy", "AUC", "pairs in order")
    unit = 100 if share else 1
    mean = unit * statistics.fmean(scores)
    spread = unit * statistics.stdev(scores) if len(scores) > 1 else None
    printed = printed_accuracy(job.how.model.__name__, job.dataset) if name == "accuracy" and job.dataset else None
    report = None if order.no_report else _report(job, order, printed)
    if order.as_json:
        record = {"event": "summary", "score": name, "test_mean": mean, "test_std": spread, "seeds": len(scores), "seconds": seconds, "paper": printed, "report": None if report is None else str(report)}  # fmt: skip
        click.echo(json.dumps(record))
        return
    paper = f"; the paper prints {printed[0]:.2f} ± {printed[1]:.2f} (ten repetitions)" if printed else ""
    digits = 2 if share else 4
    around = "" if spread is None else f" ± {spread:.{digits}f}"
    console.print(f"\ntest {name} {mean:.{digits}f}{around} over {len(scores)} seed{'s'[: len(scores) > 1]}{paper}")
    console.print(f"it minimises  {job.objective}")
    console.print(f"{seconds:.1f} s; models in {order.out}{'' if report is None else f', report: {report}'}")


def _report(job: Job, order: Order, printed: Any) -> Path:
    from unspool import report

    return report.training(order.out, dataset=job.data, paper=printed, command=order.command)
