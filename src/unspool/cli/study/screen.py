"""What a person or a program sees of a study while it runs: a live bar, a line now and then, or JSON lines."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.text import Text

from unspool import study
from unspool.cli import terminal
from unspool.cli.progress import LiveScreen


class StudyScreen(LiveScreen[Live]):
    """Shows how trials are getting on.

    Args:
        console: where to.
        as_json: JSON lines instead.
        before: how many trials were finished before this run.
        tell: a trial in words.
    """

    def __init__(self, console: Console, as_json: bool, before: int, tell: Callable[[study.Trial], str]) -> None:
        super().__init__(console, as_json)
        self.before, self.tell = before, tell
        self._bar = Progress(BarColumn(20), MofNCompleteColumn(), TextColumn("{task.fields[line]}"))
        self._task = self._bar.add_task("", total=None, line="")
        if console.is_terminal and not console.quiet:
            self._live = Live(self._bar, console=console, transient=True, refresh_per_second=5)

    def show(self, now: study.Progress) -> None:
        """One report of the engine."""
        done, total = self.before + now.done, self.before + now.total
        if self._live is not None:
            self._bar.update(self._task, completed=done, total=total, line=_speed(now))
            # Two lines: together they are wider than most terminals.
            self._live.update(Group(self._bar, Text(self._best(now), no_wrap=True, overflow="ellipsis")))
            return
        if not self._is_time():
            return
        if self.as_json:
            echo(self._record(now, done, total))
        elif not self.console.quiet:
            parts = (f"{done} of {total} trials", _speed(now), self._best(now))
            self.console.print(", ".join(part for part in parts if part), markup=False)

    def _best(self, now: study.Progress) -> str:
        return "" if now.best is None else f"best validation {now.best[0]:.4f}: {self.tell(now.best[1])}"

    def _record(self, now: study.Progress, done: int, total: int) -> dict[str, Any]:
        best = None if now.best is None else {"valid_score": now.best[0], "trial": now.best[1].to_plain()}
        return {
            "event": "progress", "done": done, "total": total, "running": now.running, "trials_per_second": now.trials_per_second,
            "epochs_per_second": now.epochs_per_second, "best": best, "seconds_left": now.seconds_left,
        }  # fmt: skip


def _speed(now: study.Progress) -> str:
    parts = [f"{now.running} running", f"{now.trials_per_second:.2g} trials/s", f"{now.epochs_per_second:.0f} epochs/s"]
    return ", ".join(parts if now.seconds_left is None else [*parts, f"{span(now.seconds_left)} left"])


def span(seconds: float) -> str:
    """A time in words.

    Example:
        >>> span(9.4), span(600), span(20_000)
        ('9 s', '10 min', '5.6 h')
    """
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"


def teller(trials: Iterable[study.Trial]) -> Callable[[study.Trial], str]:
    """Makes words of a trial: what tells it from the others, and its seed.

    Example:
        >>> from unspool import models
        >>> trials = study.grid(models.GCN, seed=range(2), dropout=[0.2, 0.5]).trials("texas")
        >>> teller(trials)(trials[-1])
        'dropout 0.5, seed 1'
    """
    seen: dict[str, set[str]] = {}
    for trial in trials:
        for name, value in _flat(trial).items():
            seen.setdefault(name, set()).add(repr(value))
    varied = [name for name, values in seen.items() if len(values) > 1]

    def words(trial: study.Trial) -> str:
        told = {"model": trial.name, **_flat(trial)}
        named = [f"{name} {_short(told[name])}" for name in varied if name in told and name != "model"]
        return ", ".join([trial.name] * ("model" in varied or not named) + named)

    return words


def _flat(trial: study.Trial) -> dict[str, Any]:
    told = trial.to_plain()
    return {"model": told["model"], **told["settings"], **told["config"], "seed": told["seed"]}


def _short(value: Any) -> str:
    if isinstance(value, Mapping):  # decay by group
        held: dict[str, float] = {**value}
        return "/".join(f"{v:g}" for v in sorted({v for v in held.values() if v})) or "0"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def echo(record: Mapping[str, Any]) -> None:
    """Print one JSON line; what is not a number is null, since NaN is not JSON."""
    terminal.echo(json.dumps(_finite(record), ensure_ascii=False))


def _finite(value: Any) -> Any:
    if isinstance(value, Mapping):
        held: dict[Any, Any] = {**value}
        return {name: _finite(one) for name, one in held.items()}
    if isinstance(value, list | tuple):
        return [_finite(one) for one in list[Any](value)]
    return None if isinstance(value, float) and not math.isfinite(value) else value
