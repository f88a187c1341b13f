"""The command ``unspool train``: data in, trained models and honest numbers out."""

from __future__ import annotations

import json
import statistics
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from unspool import datasets, models, train
from unspool.models.folder import CARD, load_folder, save_folder
from unspool.models.preset_tables import printed_accuracy


@dataclass(frozen=True)
class Order:
    """What the user asked for."""

    model: str
    dataset: str
    data: Path | None
    preset: str
    seeds: int
    epochs: int | None
    select: str | None
    device: str
    out: Path
    resume: bool
    quiet: bool
    as_json: bool


def run(order: Order) -> None:
    """Train the model for every seed, print and keep the results."""
    console = Console(highlight=False, quiet=order.as_json or order.quiet, soft_wrap=True)
    kind = _model(order.model)
    how = models.preset(kind, order.dataset, order.preset)
    changes: dict[str, Any] = {} if order.epochs is None else {"epochs": order.epochs}
    if order.select is not None:
        changes["select"] = train.Select.VALIDATION_LOSS if order.select == "loss" else train.Select.VALIDATION_ACCURACY
    plan = how.plan(**changes)
    data = datasets.load(order.dataset, root=order.data)
    data = data.row_normalised() if how.normalise_features else data
    console.print(f"{data}\n{kind.__name__}, preset {how.name}: {_settings(how.settings)}, rate {plan.rate:g}")
    console.print(f"keeps {plan.select.value}; stops {plan.stop.value}; up to {plan.epochs} epochs")
    began, scores = time.monotonic(), []
    for seed in range(order.seeds):
        place = order.out / f"seed{seed}"
        if order.resume and (score := _finished(place)) is not None:
            scores.append(score)
            console.print(f"seed {seed}: finished before, test {score:.4f}")
            continue
        run, model = _one(order, how, plan, data, seed, console)
        scores.append(run.best.test_score)
        facts = {
            "preset": {"name": how.name, "rate": plan.rate, "decay": dict(how.decay), "select": plan.select.value},
            "data": {"name": data.name, "hash": data.hash, "split": data.split.hash if data.split else None, "notes": list(data.notes)},
            "metrics": {**asdict(run.best), "seed": seed, "epochs": len(run.history), "reason": run.reason},
        }  # fmt: skip
        save_folder(model, place, **facts)
        if run.reason != "interrupted":
            (place / "run.pt").unlink(missing_ok=True)
        if order.as_json:
            print(json.dumps({"seed": seed, **asdict(run.best), "reason": run.reason, "folder": str(place)}))
        else:
            console.print(f"seed {seed}: {run}")
        if run.reason == "interrupted":
            console.print("interrupted: the best epoch so far is kept; --resume continues")
            break
    _summary(order, kind, scores, time.monotonic() - began, console)


def _finished(place: Path) -> float | None:
    """The test score of a run that came to its end, if there is one in this folder."""
    if not (place / CARD).is_file():
        return None
    metrics = load_folder(place)[1].get("metrics", {})
    return metrics.get("test_score") if metrics.get("reason") != "interrupted" else None


def _one(order: Order, how: Any, plan: Any, data: Any, seed: int, console: Console) -> tuple[train.Run, Any]:
    torch.manual_seed(seed)
    model = how.build(data.features.shape[1], len(data.classes)).to(order.device)
    task = train.Task.of(data).to(order.device)
    place = order.out / f"seed{seed}"
    place.mkdir(parents=True, exist_ok=True)
    snapshot = place / "run.pt"
    if not order.resume:
        snapshot.unlink(missing_ok=True)
    columns = (TextColumn("seed " + str(seed)), BarColumn(30), MofNCompleteColumn(), TextColumn("{task.fields[line]}"), TimeRemainingColumn())  # fmt: skip
    with Progress(*columns, console=console, transient=True, refresh_per_second=5) as live:
        bar, began = live.add_task("", total=plan.epochs, line=""), time.monotonic()

        def watch(now: train.Epoch, best: train.Epoch) -> None:
            rate = now.epoch / max(time.monotonic() - began, 1e-9)
            line = f"{rate:.0f} epochs/s  loss {now.train_loss:.3f}  valid {now.valid_loss:.3f} / {now.valid_score:.3f}  best {best.valid_score:.3f} (epoch {best.epoch})"
            live.update(bar, completed=now.epoch, line=line)

        return train.fit(model, task, plan, watch=watch, snapshot=snapshot), model


def _summary(order: Order, kind: Any, scores: list[float], seconds: float, console: Console) -> None:
    mean = 100 * statistics.fmean(scores)
    spread = f" ± {100 * statistics.stdev(scores):.2f}" if len(scores) > 1 else ""
    printed = printed_accuracy(kind.__name__, order.dataset.lower())
    paper = f"; the paper prints {printed[0]:.2f} ± {printed[1]:.2f} (ten repetitions)" if printed else ""
    if order.as_json:
        print(json.dumps({"test_mean": mean, "seeds": len(scores), "seconds": seconds, "paper": printed}))
    else:
        console.print(
            f"test accuracy {mean:.2f}{spread} over {len(scores)} seed{'s' if len(scores) > 1 else ''}{paper}"
        )
        console.print(f"{seconds:.1f} s; models in {order.out}")
        console.print(f"it minimises {load_folder(order.out / 'seed0')[0].objective}")


def _model(name: str) -> Any:
    known = {m.__name__.lower(): m for m in models.MODELS}
    if name.lower() not in known:
        raise ValueError(f"no model called {name!r}: there are {', '.join(m.__name__ for m in models.MODELS)}")
    return known[name.lower()]


def _settings(settings: Any) -> str:
    return ", ".join(f"{k} {v}" for k, v in settings.items())
