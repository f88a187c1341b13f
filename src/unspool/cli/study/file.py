"""What the commands that read a study share: opening it, choosing trials, and how lists are printed."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table as Printed

from unspool import study
from unspool.cli.terminal import Terminal
from unspool.study import Access, Row, Status, Store
from unspool.study.results.export import score_of

#: So wide are lists where no terminal says how wide it is.
WIDE = 160
#: So many failures are printed.
FAILURES = 5


def console_for(quiet: bool = False) -> Console:
    """A console that keeps lists in one piece where the output goes into a file or a pipe."""
    plain = Terminal(quiet=quiet, soft_wrap=True)
    return plain if sys.stdout.isatty() else Terminal(quiet=quiet, soft_wrap=True, width=WIDE)


def rows_of(file: Path, dataset: str | None = None) -> list[Row]:
    """The trials in a file, or those on one set; nobody is kept waiting."""
    with Store.open(file, Access.READ) as store:
        rows = store.rows()
    if not rows:
        raise ValueError(f"{file} holds no trials; run the study first")
    if dataset is None:
        return rows
    wanted = dataset.lower()
    # Two sets of one name are told apart by how their fingerprints begin, as tables print them.
    found = [row for row in rows if wanted in (row.data.lower(), f"{row.data} {row.mark[:6]}".lower())]
    if not found:
        known = ", ".join(dict.fromkeys(row.data for row in rows))
        raise ValueError(f"--dataset {dataset}: {file} has no trials on it; there are {known}")
    return found


def table_of(file: Path, dataset: str | None = None, where: Sequence[str] = ()) -> study.Table:
    """The trials of a file that were asked for, at least one of them finished."""
    rows = rows_of(file, dataset)
    table = study.Table.of(rows, score_of(rows[0].mark, "accuracy"))
    if not len(table):
        raise ValueError(f"no trial of {file} has finished yet; see unspool study status {shlex.quote(str(file))}")
    for pair in where:
        table = table.filter(**named(table, "--where", pair))
        if not len(table):
            raise ValueError(f"--where {pair}: no such trial has finished")
    return table


def on_one_set(table: study.Table, file: Path) -> study.Table:
    """The same table, refused where it speaks of several sets."""
    names = list(dict.fromkeys(best.data for best in table.groups()))
    if len(names) > 1:
        raise ValueError(f"{file} holds trials on {' and '.join(names)}; name one with --dataset")
    return table


def named(table: study.Table, option: str, text: str) -> dict[str, Any]:
    """``GCN``, ``dropout=0.5`` or both, with a comma between them, as settings of a table.

    Example:
        >>> from unspool import datasets, models
        >>> grid = study.grid(models.MLP, seed=0, hidden=8, dropout=[0.2, 0.5], epochs=5)
        >>> found = study.run(grid, datasets.contextual_sbm(nodes=60, classes=2, seed=0))
        >>> named(found.table, "A", "mlp,dropout=0.5")
        {'model': 'MLP', 'dropout': 0.5}
    """
    records, found = table.records(), dict[str, Any]()
    for part in text.split(","):
        name, sign, value = part.partition("=")
        name, value = (name.strip().replace("-", "_"), value.strip()) if sign else ("model", part.strip())
        if name not in table.columns:
            raise ValueError(f"{option} {part}: no setting is called {name!r}; there are {', '.join(table.columns)}")
        known = list(dict.fromkeys(record[name] for record in records))
        fits = [one for one in known if _fits(one, value)]
        if not fits:
            told = ", ".join(str(one) for one in known[:20])
            raise ValueError(f"{option} {part}: no finished trial has {name} {value}; there are {told}")
        found[name] = fits[0]
    return found


def _fits(value: Any, text: str) -> bool:
    """Whether a setting is what was typed."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        try:
            return float(text) == value
        except ValueError:
            return False
    return str(value).lower() == text.lower() or str(value).lower().endswith(f".{text.lower()}")


def next_steps(file: Path, table: study.Table) -> list[str]:
    """Commands that are worth a try after a study."""
    name = shlex.quote(str(file))
    kinds = [best.model for best in table.best_each("model")]
    steps = [f"best {name} --each model" if len(kinds) > 1 else f"best {name}"]
    ended = [row.number for row in table.rows if row.result is not None]
    steps += [f"show {name} {ended[0]}"] if ended else []
    steps += [f"compare {name} {kinds[0]} {kinds[1]}"] if len(set(kinds)) > 1 else []
    steps += [f"importance {name}", f"plot {name}"] if len(table.groups()) > 1 else []
    return [f"  unspool study {step}" for step in steps]


def print_failures(rows: Sequence[Row], console: Console) -> None:
    """How many trials failed, and why; equal messages once."""
    told: dict[str, list[int]] = {}
    for row in rows:
        if row.status is Status.FAILED:
            told.setdefault(row.message if row.message is not None else "no message", []).append(row.number)
    if not told:
        return
    many = sum(len(numbers) for numbers in told.values())
    console.print(f"{many} trial{'s'[: many > 1]} failed (--retry-failed trains them again):", markup=False)
    for message, numbers in list(told.items())[:FAILURES]:
        which = f"trial {numbers[0]}" + (f" and {len(numbers) - 1} more" if len(numbers) > 1 else "")
        console.print(f"  {which}: {' '.join(message.split())[:300]}", markup=False)
    if len(told) > FAILURES:
        console.print(f"  and {len(told) - FAILURES} other messages")


def columns(*heads: str) -> Printed:
    """An empty list with these headings, without lines around it."""
    printed = Printed(box=None, pad_edge=False, header_style="bold")
    for head in heads:
        # Trap: no_wrap would cut digits off in a narrow terminal, and 0.2989 would pass for 0.298.
        printed.add_column(head, overflow="fold")
    return printed
