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
from unspool.models import registry
from unspool.study import Access, Row, Status, Store
from unspool.study.results.commands import model_command
from unspool.train import Ending

#: So wide are lists where no terminal says how wide it is.
WIDE = 160
#: The shortest beginning of a key that is looked for.
SHORTEST = 4
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
    found = [
        row for row in rows if wanted in (row.data.name.lower(), f"{row.data.name} {row.data.fingerprint[:6]}".lower())
    ]
    if not found:
        known = ", ".join(dict.fromkeys(row.data.name for row in rows))
        raise ValueError(f"--dataset {dataset}: {file} has no trials on it; it has {known}")
    return found


def find_row(file: Path, wanted: str) -> Row:
    """The trial with this number, or with a key that begins so."""
    rows = rows_of(file)
    if wanted.isdecimal():
        numbered = [row for row in rows if row.number == int(wanted)]
        if numbered:
            return numbered[0]
    fits = [row for row in rows if row.key.startswith(wanted.lower())] if len(wanted) >= SHORTEST else []
    if not fits:
        raise ValueError(
            f"{file} has no trial {wanted}; they are numbered {rows[0].number} to {rows[-1].number}, "
            "and unspool study export writes all keys"
        )
    if len(fits) > 1:
        raise ValueError(f"{len(fits)} keys begin with {wanted}; give more of it")
    return fits[0]


def table_of(file: Path, dataset: str | None = None, where: Sequence[str] = ()) -> study.TrialTable:
    """The trials of a file that were asked for, at least one of them finished."""
    rows = rows_of(file, dataset)
    table = study.TrialTable.of(rows)
    if not len(table):
        raise ValueError(f"no trial of {file} has finished yet; see unspool study status {shlex.quote(str(file))}")
    for pair in where:
        table = table.filter(**named(table, "--where", pair))
        if not len(table):
            raise ValueError(f"--where {pair}: no such trial has finished")
    return table


def on_one_set(table: study.TrialTable, file: Path) -> study.TrialTable:
    """The same table, refused where it speaks of several sets."""
    names = list(dict.fromkeys(best.data for best in table.groups()))
    if len(names) > 1:
        raise ValueError(f"{file} holds trials on {' and '.join(names)}; name one with --dataset")
    return table


def named(table: study.TrialTable, option: str, text: str) -> dict[str, Any]:
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
        if not fits and name == "model" and value.lower() in {one.lower() for one in registry.registered()}:
            fits = [one for one in known if one == registry.name_of(registry.find_model(value))]
        if not fits:
            told = ", ".join(str(one) for one in known[:20])
            raise ValueError(f"{option} {part}: no finished trial has {name} {value}; the values are {told}")
        found[name] = fits[0]
    return found


def _fits(value: Any, text: str) -> bool:
    """Whether a setting is what was typed."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        try:
            return float(text) == value
        except ValueError:
            return False
    shown = str(value).lower()
    return shown == text.lower() or shown.endswith((f":{text.lower()}", f".{text.lower()}"))


def next_steps(file: Path, table: study.TrialTable) -> list[str]:
    """Commands that are worth a try after a study."""
    name = shlex.quote(str(file))
    kinds = [best.model for best in table.best_each("model")]
    steps = [f"best {name} --each model" if len(kinds) > 1 else f"best {name}"]
    ended = [row.number for row in table.rows if row.result is not None]
    steps += [f"show {name} {ended[0]}", *_hand_over(table, file)] if ended else []
    steps += [f"compare {name} {kinds[0]} {kinds[1]}"] if len(set(kinds)) > 1 else []
    steps += [f"report {name}"] if len(table.groups()) > 1 else []
    return [f"  unspool study {step}" for step in steps]


def _hand_over(table: study.TrialTable, file: Path) -> list[str]:
    best = table.leaders(1)[0].numbers
    row = next((row for row in table.rows if row.number in best and not is_diverged(row)), None)
    return [] if row is None else [model_command(file, row, "out/best").removeprefix("unspool study ")]


def is_diverged(row: Row) -> bool:
    """Whether a trial has ended without a network."""
    return row.result is not None and row.result.ending is Ending.DIVERGED


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


def check_names(table: study.TrialTable, option: str, names: Sequence[str]) -> None:
    """Refuse names of settings that no trial has."""
    for name in names:
        if name not in table.columns:
            raise ValueError(f"{option} {name}: there is no such setting; the settings are {', '.join(table.columns)}")
