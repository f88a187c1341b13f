"""``unspool study status``: how far a study is, now or every second."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from unspool.cli.study.open_study import columns, console_for, print_failures
from unspool.cli.study.screen import echo, span
from unspool.study import Access, Row, Status, Store

#: Seconds between two looks, and the seconds that the speed is taken from.
EVERY, RECENT = 1.0, 60.0
_OPEN = (Status.WAITING, Status.RUNNING)


def show(file: Path, watch: bool, as_json: bool) -> None:
    """Say how far the study is; with ``watch`` again and again until every trial has ended."""
    console = console_for(quiet=as_json)
    with Store.open(file, Access.READ) as store:
        rows = store.rows()
        if not watch:
            _say(store, rows, console, as_json)
            return
        if console.is_terminal and not as_json:
            with Live(console=console, transient=True, refresh_per_second=4) as live:
                while _unfinished(rows):
                    live.update(Group(_counts(rows), *map(Text, _lines(store, rows))))
                    time.sleep(EVERY)
                    rows = store.rows()
        else:
            rows = _watch_lines(store, rows, console, as_json)
        _say(store, rows, console, as_json)


def _watch_lines(store: Store, rows: list[Row], console: Console, as_json: bool) -> list[Row]:
    """A line whenever something has changed."""
    before: Counter[Status] | None = None
    while _unfinished(rows):
        now = Counter(row.status for row in rows)
        if now != before:
            before = now
            _json(store, rows) if as_json else console.print(_one_line(rows))
        time.sleep(EVERY)
        rows = store.rows()
    return rows


def _unfinished(rows: Sequence[Row]) -> bool:
    return any(row.status in _OPEN for row in rows)


def _say(store: Store, rows: Sequence[Row], console: Console, as_json: bool) -> None:
    if as_json:
        _json(store, rows)
        return
    console.print(_counts(rows), soft_wrap=False)
    for line in _lines(store, rows):
        console.print(line, markup=False)
    print_failures(rows, console)


def _counts(rows: Sequence[Row]) -> Any:
    """One line for each set, and one for all where there are several."""
    printed = columns("dataset", *(status.value for status in Status), "trials")
    names = list(dict.fromkeys(row.data.name for row in rows))
    for name in names if len(names) < 2 else [*names, None]:
        held = [row for row in rows if name is None or row.data.name == name]
        many = Counter(row.status for row in held)
        printed.add_row("all" if name is None else name, *(str(many[status]) for status in Status), str(len(held)))
    return printed


def _lines(store: Store, rows: Sequence[Row]) -> list[str]:
    """Who is training, how fast, and what to do where nobody is."""
    left = sum(row.status in _OPEN for row in rows)
    if not left:
        return ["all trials have ended"] if rows else ["there are no trials yet"]
    workers = store.workers()
    if not workers:
        return [f"no process is training; run the same command again to train the {left} that wait"]
    lines = [f"process {pid} on {host} trains {many} trial{'s'[: many > 1]}" for host, pid, many in workers]
    speed = rate(rows)
    return lines if speed is None else [*lines, f"{speed:.2g} trials/s, {span(left / speed)} left"]


def _one_line(rows: Sequence[Row]) -> str:
    many, speed = Counter(row.status for row in rows), rate(rows)
    parts = [f"{many[status]} {status.value}" for status in Status if many[status]]
    return ", ".join(parts if speed is None else [*parts, f"{speed:.2g} trials/s"])


def rate(rows: Sequence[Row], now: datetime | None = None) -> float | None:
    """Trials that ended in the last minute, for each second; None where none did.

    Example:
        >>> rate([]) is None
        True
    """
    moment = datetime.now(UTC) if now is None else now
    ends = sorted(datetime.fromisoformat(row.finished_at) for row in rows if row.finished_at is not None)
    ages = [(moment - end).total_seconds() for end in ends]
    recent = sum(age <= RECENT for age in ages)
    # A study that began ten seconds ago has no minute behind it; the clock of the file counts whole seconds.
    return recent / min(RECENT, max(ages[0], 1.0)) if recent else None


def _json(store: Store, rows: Sequence[Row]) -> None:
    names = list(dict.fromkeys(row.data.name for row in rows))
    sets = {name: {s.value: sum(r.data.name == name and r.status is s for r in rows) for s in Status} for name in names}
    told = [{"host": host, "pid": pid, "trials": many} for host, pid, many in store.workers()]
    failed = [{"number": r.number, "key": r.key, "message": r.message} for r in rows if r.status is Status.FAILED]
    counts = {status.value: sum(row.status is status for row in rows) for status in Status}
    echo({"file": str(store.path), **counts, "trials": len(rows), "datasets": sets, "trials_per_second": rate(rows), "workers": told, "failures": failed})  # fmt: skip
