"""The live line of a training run: epoch, rate, losses, best so far, time left."""

from __future__ import annotations

import json
import time
from types import TracebackType
from typing import Any

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from unspool.train import Epoch, Plan

#: Seconds between JSON events, and between lines where there is no terminal to redraw.
JSON_EVERY, LINE_EVERY = 1.0, 30.0


class Watcher:
    """Shows how a run goes: a bar on a terminal, a line now and then elsewhere, events as JSON lines, or nothing."""

    def __init__(self, console: Console, seed: int, plan: Plan, as_json: bool) -> None:
        self.console, self.seed, self.plan, self.as_json = console, seed, plan, as_json
        self.began = self.told = time.monotonic()
        self.first: int | None = None
        self._live: Progress | None = None
        self._bar: Any = None

    def __enter__(self) -> Watcher:
        if self.console.is_terminal and not self.console.quiet:
            columns = (
                TextColumn(f"seed {self.seed}"), BarColumn(20), MofNCompleteColumn(), TextColumn("{task.fields[line]}"),
                TimeRemainingColumn(),
            )  # fmt: skip
            self._live = Progress(*columns, console=self.console, transient=True, refresh_per_second=5)
            self._bar = self._live.add_task("", total=self.plan.epochs, line="")
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()

    def watch(self, now: Epoch, best: Epoch) -> None:
        """After each epoch."""
        moment = time.monotonic()
        if self.first is None:
            self.first = now.epoch - 1
        rate = (now.epoch - self.first) / max(moment - self.began, 1e-9)
        if self._live is not None:
            self._live.update(self._bar, completed=now.epoch, line=_line(now, best, rate))
        elif self.as_json and moment - self.told >= JSON_EVERY:
            left = (self.plan.epochs - now.epoch) / rate
            event = {"event": "progress", "seed": self.seed, "epoch": now.epoch, "of": self.plan.epochs, "rate": rate, "train_loss": now.train_loss, "valid_loss": now.valid_loss, "valid_score": now.valid_score, "best_epoch": best.epoch, "best_valid_score": best.valid_score, "seconds_left": left}  # fmt: skip
            click.echo(json.dumps(event))
            self.told = moment
        elif not self.console.quiet and moment - self.told >= LINE_EVERY:
            left = (self.plan.epochs - now.epoch) / rate
            self.console.print(
                f"seed {self.seed}: epoch {now.epoch} of {self.plan.epochs}, {_line(now, best, rate)}, {left:.0f} s left"
            )
            self.told = moment


def _line(now: Epoch, best: Epoch, rate: float) -> str:
    return (
        f"{rate:.0f} epochs/s  loss {now.train_loss:.3f}  valid {now.valid_loss:.3f} / {now.valid_score:.3f}  "
        f"best {best.valid_score:.3f} (epoch {best.epoch})"
    )
