"""``unspool study status``: how far a study is, now or every second."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from unspool.cli.study.open_study import columns, console_for, print_failures
from unspool.cli.study.screen import echo, span
from unspool.study import Access, Status, Store
from unspool.study.engine.progress import pause_after
from unspool.study.store import Tally

#: Seconds between two looks; more where a look takes long, so that watching costs a thirtieth of a core at most.
EVERY = 1.0


def show(file: Path, watch: bool, as_json: bool) -> None:
    """Say how far the study is; with ``watch`` again and again until every trial has ended."""
    console = console_for(quiet=as_json)
    with Store.open(file, Access.READ) as store:
        store.check()
        if watch and console.is_terminal and not as_json:
            with Live(console=console, transient=True, refresh_per_second=4) as live:
                _watch(store, lambda tally: live.update(Group(_counts(tally), *map(Text, _lines(store, tally)))))
        elif watch:
            _watch_lines(store, console, as_json)
        _say(store, store.tally(), console, as_json)


def _watch(store: Store, tell: Any) -> None:
    """Tell the counts, as often as it is cheap, until every trial has ended."""
    while True:
        began = time.process_time()
        tally = store.tally()
        if not tally.left:
            return
        tell(tally)
        time.sleep(pause_after(time.process_time() - began, EVERY))


def _watch_lines(store: Store, console: Console, as_json: bool) -> None:
    """A line whenever something has changed."""
    before: Mapping[str, Any] | None = None

    def tell(tally: Tally) -> None:
        nonlocal before
        if tally.counts != before:
            before = tally.counts
            _json(store, tally) if as_json else console.print(_one_line(tally))

    _watch(store, tell)


def _say(store: Store, tally: Tally, console: Console, as_json: bool) -> None:
    if as_json:
        _json(store, tally)
        return
    console.print(_counts(tally), soft_wrap=False)
    for line in _lines(store, tally):
        console.print(line, markup=False)
    print_failures(store.rows(failed=True), console)


def _counts(tally: Tally) -> Any:
    """One line for each set, and one for all where there are several."""
    printed = columns("dataset", *(status.value for status in Status), "trials")
    names = list(tally.counts)
    for name in names if len(names) < 2 else [*names, None]:
        many = [tally.of(status, name) for status in Status]
        printed.add_row("all" if name is None else name, *map(str, many), str(sum(many)))
    return printed


def _lines(store: Store, tally: Tally) -> list[str]:
    """Who is training, how fast, and what to do where nobody is."""
    left = tally.left
    if not left:
        return ["all trials have ended"] if tally.total else ["there are no trials yet"]
    workers = store.workers()
    if not workers:
        return [f"no process is training; run the same command again to train the {left} that wait"]
    lines = [f"process {pid} on {host} trains {many} trial{'s'[: many > 1]}" for host, pid, many in workers]
    return lines if tally.speed is None else [*lines, f"{tally.speed:.2g} trials/s, {span(left / tally.speed)} left"]


def _one_line(tally: Tally) -> str:
    parts = [f"{tally.of(status)} {status.value}" for status in Status if tally.of(status)]
    return ", ".join(parts if tally.speed is None else [*parts, f"{tally.speed:.2g} trials/s"])


def _json(store: Store, tally: Tally) -> None:
    sets = {name: {status.value: tally.of(status, name) for status in Status} for name in tally.counts}
    told = [{"host": host, "pid": pid, "trials": many} for host, pid, many in store.workers()]
    failed = [{"number": r.number, "key": r.key, "message": r.message} for r in store.rows(failed=True)]
    counts = {status.value: tally.of(status) for status in Status}
    echo({"file": str(store.path), **counts, "trials": tally.total, "datasets": sets, "trials_per_second": tally.speed, "workers": told, "failures": failed})  # fmt: skip
