"""``unspool study show``: everything about one trial, and how to train it alone."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.console import Console

from unspool.cli.study.again import again
from unspool.cli.study.file import columns, console_for, rows_of
from unspool.cli.study.screen import echo
from unspool.study import Row

#: Shorter beginnings of keys are slips of the pen.
LEAST = 4


def show(file: Path, wanted: str, data: Path | None, as_json: bool) -> None:
    """Print one trial."""
    row = _found(file, wanted)
    how = again(row, data)
    if as_json:
        result = None if row.result is None else vars(row.result)
        echo({
            "key": row.key, "number": row.number, "data": row.data, "mark": row.mark, "status": row.status.value,
            "trial": row.described, "result": result, "message": row.message, "finished_at": row.finished_at,
            "command": how.command, "python": how.python, "why_no_command": how.reason,
        })  # fmt: skip
        return
    console = console_for()
    _print(row, console)
    if how.command is not None:
        console.print(f"\nto train this trial alone:\n  {how.command}", markup=False)
        return
    console.print(f"\nno command trains this trial alone: {how.reason}", markup=False)
    if how.python is not None:
        console.print("in Python:\n", markup=False)
        console.print(how.python, markup=False)


def _found(file: Path, wanted: str) -> Row:
    """The trial with this number, or with a key that begins so."""
    rows = rows_of(file)
    if wanted.isdecimal():
        numbered = [row for row in rows if row.number == int(wanted)]
        if numbered:
            return numbered[0]
    fits = [row for row in rows if row.key.startswith(wanted.lower())] if len(wanted) >= LEAST else []
    if not fits:
        raise ValueError(
            f"{file} has no trial {wanted}; they are numbered {rows[0].number} to {rows[-1].number}, "
            "and unspool study export writes all keys"
        )
    if len(fits) > 1:
        raise ValueError(f"{len(fits)} keys begin with {wanted}; give more of it")
    return fits[0]


def _print(row: Row, console: Console) -> None:
    told = row.described
    printed = columns("trial", f"{row.number}")
    facts: dict[str, Any] = {
        "key": row.key, "status": row.status.value, "data": row.data, "fingerprint": row.mark, "model": told["model"],
        **told["settings"], **told["plan"], "rows of features": "scaled to sum 1" if told["normalise_rows"] else "as they are",
        "seed": told["seed"], "preset": told["preset"],
    }  # fmt: skip
    for name, value in facts.items():
        printed.add_row(name, _words(value))
    console.print(printed, soft_wrap=False)
    if row.message is not None:
        console.print(f"\nfailed: {row.message}", markup=False)
    if row.result is not None:
        found = row.result
        console.print(
            f"\nepoch {found.epoch} of {found.epochs} ({found.reason}): training loss {found.train_loss:.4f}, validation loss "
            f"{found.valid_loss:.4f}, validation score {found.valid_score:.4f}, test score {found.test_score:.4f}; "
            f"{found.seconds:.2f} s, finished {row.finished_at}",
            markup=False,
        )


def _words(value: Any) -> str:
    if isinstance(value, Mapping):
        held: dict[str, Any] = {**value}
        return ", ".join(f"{name} {one:g}" for name, one in held.items())
    return str(value)
