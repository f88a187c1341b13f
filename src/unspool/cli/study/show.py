"""``unspool study show``: everything about one trial."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console

from unspool.cli.study.open_study import columns, console_for, find_row, is_diverged
from unspool.cli.study.screen import echo
from unspool.study import Row, Status
from unspool.study.results.commands import model_command, train_command


def show(file: Path, wanted: str, as_json: bool) -> None:
    """Print one trial, and the commands that write its network and that train it without the study."""
    row = find_row(file, wanted)
    has_network = row.status is Status.DONE and not is_diverged(row)
    command = model_command(file, row, f"out/trial{row.number}") if has_network else None
    again = train_command(row, f"out/trial{row.number}")
    if as_json:
        result = None if row.result is None else asdict(row.result) | {"ending": row.result.ending.name.lower()}
        echo({
            "key": row.key, "number": row.number, "data": asdict(row.data), "status": row.status.value, "trial": row.trial,
            "result": result, "message": row.message, "finished_at": row.finished_at, "command": command,
            "train_command": again,
        })  # fmt: skip
        return
    console = console_for()
    _print(row, console)
    if command is not None:
        console.print(f"\nto write its network (trained again, and checked):\n  {command}", markup=False)
    if again is not None:
        console.print(f"\nto train it without the study:\n  {again}", markup=False)


def _print(row: Row, console: Console) -> None:
    trial = row.trial
    printed = columns("trial", f"{row.number}")
    facts: dict[str, Any] = {
        "key": row.key, "status": row.status.value, "data": row.data.name, "fingerprint": row.data.fingerprint, "model": trial["model"],
        **trial["settings"], **trial["config"], "rows of features": "scaled to sum 1" if trial["normalise_rows"] else "as they are",
        "seed": trial["seed"], "preset": trial["preset"],
    }  # fmt: skip
    for name, value in facts.items():
        printed.add_row(name, _words(value))
    console.print(printed, soft_wrap=False)
    if row.message is not None:
        console.print(f"\nfailed: {row.message}", markup=False)
    if row.result is not None:
        found = row.result
        console.print(
            f"\nepoch {found.epoch} of {found.epochs} ({found.ending.value}): training loss {found.train_loss:.4f}, validation loss "
            f"{found.valid_loss:.4f}, validation score {found.valid_score:.4f}, test score {found.test_score:.4f}; "
            f"{found.seconds:.2f} s, finished {row.finished_at}",
            markup=False,
        )


def _words(value: Any) -> str:
    if isinstance(value, Mapping):
        held: dict[str, Any] = {**value}
        return ", ".join(f"{name} {one}" for name, one in held.items())
    return str(value)
