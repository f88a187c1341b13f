"""What a person or a program sees of a training job: live bars, a line now and then, or JSON lines."""

from __future__ import annotations

import json
import time
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

from rich.console import Console
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from unspool.cli.terminal import echo
from unspool.parallel import Event

#: Seconds between JSON events, and between lines where there is no terminal to redraw.
JSON_EVERY, LINE_EVERY = 1.0, 30.0


LiveT = TypeVar("LiveT", bound=Progress | Live)


class LiveScreen(Generic[LiveT]):
    """Something that moves on a terminal while a block runs, and elsewhere a line now and then."""

    def __init__(self, console: Console, as_json: bool) -> None:
        self.console, self.as_json = console, as_json
        self._reported_at = time.monotonic()
        self._live: LiveT | None = None

    def __enter__(self) -> Self:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()

    def _is_time(self) -> bool:
        """Whether the next line is due; asked when there is something to say."""
        moment = time.monotonic()
        if moment - self._reported_at < (JSON_EVERY if self.as_json else LINE_EVERY):
            return False
        self._reported_at = moment
        return True


class Screen(LiveScreen[Progress]):
    """Shows events: a bar per seed on a terminal, a line now and then elsewhere, JSON lines, or nothing."""

    def __init__(self, console: Console, as_json: bool) -> None:
        super().__init__(console, as_json)
        self._bars: dict[int, Any] = {}
        if console.is_terminal and not console.quiet:
            columns = (
                TextColumn("seed {task.fields[seed]}"), BarColumn(20), MofNCompleteColumn(), TextColumn("{task.fields[line]}"),
                TimeRemainingColumn(),
            )  # fmt: skip
            self._live = Progress(*columns, console=console, transient=True, refresh_per_second=5)

    def show(self, event: Event) -> None:
        """One event of a seed."""
        if event["event"] == "seed":
            self._ended(event)
        elif self._live is not None:
            self._move(event, self._live)
        else:
            self._now_and_then(event)

    def _ended(self, event: Event) -> None:
        if self._live is not None and event["seed"] in self._bars:
            self._live.remove_task(self._bars.pop(event["seed"]))
        if self.as_json:
            echo(json.dumps({name: value for name, value in event.items() if name not in ("line", "worker")}))
        else:
            self.console.print(f"seed {event['seed']}: {event['line']}")

    def _move(self, event: Event, live: Progress) -> None:
        if event["seed"] not in self._bars:
            self._bars[event["seed"]] = live.add_task("", total=event["of"], seed=event["seed"], line="")
        live.update(self._bars[event["seed"]], completed=event["epoch"], line=_line(event))

    def _now_and_then(self, event: Event) -> None:
        if not self._is_time():
            return
        if self.as_json:
            echo(json.dumps({name: value for name, value in event.items() if name != "worker"}))
        elif not self.console.quiet:
            where = f"seed {event['seed']}: epoch {event['epoch']} of {event['of']}"
            self.console.print(f"{where}, {_line(event)}, {event['seconds_left']:.0f} s left")


def _line(event: Event) -> str:
    return (
        f"{event['epochs_per_second']:.0f} epochs/s  loss {event['train_loss']:.3f}  valid {event['valid_loss']:.3f} / "
        f"{event['valid_score']:.3f}  best {event['best_valid_score']:.3f} (epoch {event['best_epoch']})"
    )
