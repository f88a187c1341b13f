"""Results on disk: one CSV file per experiment with one row per trial, the searches behind them, and the machine.

:func:`read` and :func:`write` are the one reader and the one writer. A file is always written whole, from the store of
the study, so that running again never leaves old rows between new ones.

>>> import tempfile
>>> folder = tempfile.mkdtemp()
>>> write(folder, "table2", [example_record(seed) for seed in range(3)])
PosixPath('.../table2.csv')
>>> found = read(folder)
>>> found.experiments, len(found.rows), found.rows[0].model
(('table2',), 3, 'GCN')
"""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from unspool.files import write_whole
from unspool.reproduce.measured import read_measured
from unspool.reproduce.records import EXPERIMENTS, Record, Results, Search, example_record

__all__ = [
    "EXPERIMENTS",
    "MACHINE",
    "SEARCHES",
    "Record",
    "Results",
    "Search",
    "example_record",
    "read",
    "read_machine",
    "read_rows",
    "read_searches",
    "write",
    "write_machine",
    "write_searches",
]  # fmt: skip

#: Where the numbers of the searches are, and those of the machine.
SEARCHES, MACHINE = "searches.csv", "machine.json"


#: The way out of a file that cannot be read.
_AGAIN = "move it away and run `unspool reproduce` again: the study has its trials"

COLUMNS = tuple(f.name for f in dataclasses.fields(Record))
_WHOLE = ("seed", "epoch", "epochs", "trials", "seeds")
_NUMBERS = ("rate", "train_loss", "valid_loss", "valid_score", "test_score", "seconds")
_OBJECTS = ("space", "chosen")


def write(folder: str | os.PathLike[str], experiment: str, rows: Iterable[Record]) -> Path:
    """Write all rows of one experiment, whole or not at all; what the file held before is gone.

    Example:
        >>> import tempfile
        >>> write(tempfile.mkdtemp(), "depth", []).read_text()[:18]
        'experiment,dataset'
    """
    if experiment not in EXPERIMENTS:
        raise ValueError(f"no experiment called {experiment!r} has results; there are {', '.join(EXPERIMENTS)}")
    held = list(rows)
    foreign = next((row for row in held if row.experiment != experiment), None)
    if foreign is not None:
        raise ValueError(
            f"a row of {foreign.experiment} does not belong into {experiment}.csv; write it to its own file"
        )
    return _write_csv(Path(folder) / f"{experiment}.csv", Record, held)


def write_searches(folder: str | os.PathLike[str], experiment: str, searches: Iterable[Search]) -> Path:
    """Write the searches of one experiment; those of others stay.

    Example:
        >>> import tempfile
        >>> write_searches(tempfile.mkdtemp(), "grid", []).name
        'searches.csv'
    """
    path = Path(folder) / SEARCHES
    others = [s for s in read_searches(folder) if s.experiment != experiment]
    return _write_csv(path, Search, [*others, *searches])


def write_machine(folder: str | os.PathLike[str], facts: Mapping[str, Any]) -> Path:
    """Write what is known about the machine and the runs.

    Example:
        >>> import tempfile
        >>> write_machine(tempfile.mkdtemp(), {"torch": "2.11"}).name
        'machine.json'
    """
    path = Path(folder) / MACHINE
    text = json.dumps(facts, indent=2, ensure_ascii=False) + "\n"
    write_whole(path, lambda file: file.write(text.encode()))
    return path


def read(folder: str | os.PathLike[str]) -> Results:
    """Everything that a folder of results holds; experiments that were not run are absent.

    Example:
        >>> import tempfile
        >>> read(tempfile.mkdtemp())
        Traceback (most recent call last):
            ...
        FileNotFoundError: no results in ...; run `unspool reproduce table2` first, or name another folder
    """
    place = Path(folder)
    files = [place / f"{name}.csv" for name in EXPERIMENTS]
    here = [file for file in files if file.is_file()]
    measured = read_measured(place)
    if not here and not measured:
        raise FileNotFoundError(f"no results in {place}; run `unspool reproduce table2` first, or name another folder")
    rows = [_record(cells, file) for file in here for cells in _lines(file, COLUMNS)]
    if not rows and not measured:
        raise FileNotFoundError(
            f"the files in {place} have no rows; run `unspool reproduce table2` first, or name another folder"
        )
    return Results(rows, read_searches(place), read_machine(place), measured)


def read_rows(folder: str | os.PathLike[str], experiment: str) -> list[Record]:
    """The rows of one experiment; none where it was not run."""
    file = Path(folder) / f"{experiment}.csv"
    return [_record(cells, file) for cells in _lines(file, COLUMNS)] if file.is_file() else []


def read_searches(folder: str | os.PathLike[str]) -> list[Search]:
    """The searches of all experiments; none where nothing was searched."""
    path = Path(folder) / SEARCHES
    if not path.is_file():
        return []
    names = [f.name for f in dataclasses.fields(Search)]
    found: list[dict[str, Any]] = [{n: _value(n, line[n]) for n in names} for line in _lines(path, names)]
    for values in found:
        values["settings"] = int(values["settings"])
    return [Search(**values) for values in found]


def read_machine(folder: str | os.PathLike[str]) -> dict[str, Any]:
    """What ``machine.json`` holds; nothing where there is none.

    Example:
        >>> read_machine("nowhere")
        {}
    """
    file = Path(folder) / MACHINE
    if not file.is_file():
        return {}
    try:
        told: Any = json.loads(file.read_text(encoding="utf-8"))
    except (ValueError, UnicodeDecodeError):
        told = None
    kinds = {"machines": list, "experiments": dict, "not_run": dict}
    if not isinstance(told, dict) or any(not isinstance(told.get(n, kind()), kind) for n, kind in kinds.items()):
        raise ValueError(f"{file} is no file of results, or was cut off; move it away: trials are not counted in it")
    return told


# -- files -------------------------------------------------------------------------------------------------------------


def _write_csv(path: Path, kind: type[Any], rows: Sequence[Any]) -> Path:
    names = [f.name for f in dataclasses.fields(kind)]
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(names)
    writer.writerows([_cell(name, getattr(row, name)) for name in names] for row in rows)
    write_whole(path, lambda file: file.write(text.getvalue().encode()))
    return path


def _cell(name: str, value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, Mapping):
        return json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    if isinstance(value, float):
        # Seven digits are all that float32 has; settings keep theirs, since they are names as well.
        return repr(value) if name in ("rate", "decay", "dropout") else f"{value:.7g}"
    return str(value)


def _lines(path: Path, columns: Sequence[str]) -> list[dict[str, str]]:
    try:
        with path.open(encoding="utf-8", newline="") as file:
            reader = csv.DictReader(file)
            missing = [name for name in columns if name not in (reader.fieldnames or ())]
            lines = [] if missing else list(reader)
    except (UnicodeDecodeError, csv.Error):
        raise ValueError(f"{path} is no CSV file; {_AGAIN}") from None
    if missing:
        raise ValueError(
            f"{path} has no column {missing[0]!r}: it is no file of results, or one of another version; {_AGAIN}"
        )
    short = next((number for number, line in enumerate(lines, 2) if None in line.values() or None in line), None)
    if short is not None:
        raise ValueError(f"{path}: row {short} is cut off; {_AGAIN}")
    return lines


def _record(cells: Mapping[str, str], path: Path) -> Record:
    try:
        values: dict[str, Any] = {name: _value(name, cells[name]) for name in COLUMNS}
        values["settings"] = json.loads(cells["settings"])
        values["depth"] = int(cells["depth"]) if cells["depth"] else None
        values["dropout"] = float(cells["dropout"]) if cells["dropout"] else None
        values["decay"] = _decay(cells["decay"])
    except (ValueError, TypeError) as problem:
        raise ValueError(f"{path}: a row cannot be read ({problem}); {_AGAIN}") from None
    wrong = next((n for n in ("valid_score", "test_score") if values[n] > 1 or math.isinf(values[n])), None)
    if wrong is not None:
        raise ValueError(f"{path}: {wrong} is {values[wrong]:g}, and a score is at most 1; {_AGAIN}")
    return Record(**values)


def _value(name: str, text: str) -> Any:
    if name in _WHOLE:
        return int(text)
    if name in _NUMBERS:
        return float(text) if text else math.nan
    return json.loads(text) if name in _OBJECTS else text


def _decay(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text  # by group, in words
