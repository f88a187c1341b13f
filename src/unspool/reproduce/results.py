"""Results on disk: one CSV file per experiment, the searches behind them, and the machine.

:func:`read` and :func:`write` are the one reader and the one writer. A file is always written whole, so that running again never leaves old
rows between new ones.

>>> import tempfile
>>> folder = tempfile.mkdtemp()
>>> write(folder, "table2", [example_record(seed) for seed in range(3)])
PosixPath('.../table2.csv')
>>> found = read(folder)
>>> found.experiments, len(found.records), found.records[0].model
(('table2',), 3, 'GCN')
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from unspool.files import one_at_a_time, write_whole
from unspool.reproduce.csv_rows import read_rows, write_rows
from unspool.reproduce.records import EXPERIMENTS, MEASURED, Measurement, Record, Results, Search, example_record

__all__ = [
    "MACHINE", "SEARCHES", "example_record", "keep_measurements", "read", "read_machine", "read_measurements", "read_records",
    "read_searches", "write", "write_machine", "write_searches",
]  # fmt: skip

#: Where the numbers of the searches are, and those of the machine.
SEARCHES, MACHINE = "searches.csv", "machine.json"
#: The way out of a file that cannot be read.
_AGAIN = "move it away and run `unspool reproduce` again: the study has its trials"

Folder = str | os.PathLike[str]


def write(folder: Folder, experiment: str, records: Iterable[Record]) -> Path:
    """Write all records of one experiment, whole or not at all; what the file held before is gone.

    Example:
        >>> import tempfile
        >>> write(tempfile.mkdtemp(), "depth", []).read_text()[:18]
        'experiment,dataset'
    """
    if experiment not in EXPERIMENTS:
        raise ValueError(f"no experiment called {experiment!r} has results; there are {', '.join(EXPERIMENTS)}")
    held = list(records)
    foreign = next((record for record in held if record.experiment != experiment), None)
    if foreign is not None:
        raise ValueError(f"a record of {foreign.experiment} does not belong into {experiment}.csv")
    return write_rows(Path(folder) / f"{experiment}.csv", Record, held)


def read(folder: Folder) -> Results:
    """Everything that a folder of results holds; experiments that were not run are absent.

    Example:
        >>> import tempfile
        >>> read(tempfile.mkdtemp())
        Traceback (most recent call last):
            ...
        FileNotFoundError: no results in ...; run `unspool reproduce table2` first, or name another folder
    """
    records = [record for name in EXPERIMENTS for record in read_records(folder, name)]
    measurements = [one for name in MEASURED for one in read_measurements(folder, name)]
    if not records and not measurements:
        raise FileNotFoundError(f"no results in {folder}; run `unspool reproduce table2` first, or name another folder")
    return Results(records, read_searches(folder), read_machine(folder), measurements)


def read_records(folder: Folder, experiment: str) -> list[Record]:
    """The records of one experiment; none where it was not run."""
    file = Path(folder) / f"{experiment}.csv"
    found = read_rows(file, Record, _AGAIN) if file.is_file() else []
    for record in found:
        for name in ("valid_score", "test_score"):
            score = getattr(record.result, name)
            if score > 1 or math.isinf(score):
                raise ValueError(f"{file}: {name} is {score:g}, and a score is at most 1; {_AGAIN}")
    return found


# -- searches ----------------------------------------------------------------------------------------------------------


def write_searches(folder: Folder, experiment: str, searches: Iterable[Search]) -> Path:
    """Write the searches of one experiment; those of others stay.

    Example:
        >>> import tempfile
        >>> write_searches(tempfile.mkdtemp(), "grid", []).name
        'searches.csv'
    """
    others = [one for one in read_searches(folder) if one.experiment != experiment]
    return write_rows(Path(folder) / SEARCHES, Search, [*others, *searches])


def read_searches(folder: Folder) -> list[Search]:
    """The searches of all experiments; none where nothing was searched."""
    path = Path(folder) / SEARCHES
    return read_rows(path, Search, _AGAIN) if path.is_file() else []


# -- single numbers ----------------------------------------------------------------------------------------------------


def read_measurements(folder: Folder, experiment: str) -> list[Measurement]:
    """The measurements of one experiment; none where nothing was measured.

    Example:
        >>> read_measurements("nowhere", "signals")
        []
    """
    file = _measured_file(folder, experiment)
    command = "robust" if experiment in ("signals", "damage") else experiment
    way_out = f"move it away and run `unspool reproduce {command}` again"
    found = read_rows(file, Measurement, way_out) if file.is_file() else []
    for number, one in enumerate(found, 2):
        if not (math.isfinite(one.value) and math.isfinite(one.condition.amount)):
            raise ValueError(f"{file}: row {number} cannot be read; {way_out}")
    return found


def keep_measurements(folder: Folder, experiment: str, new: Sequence[Measurement]) -> None:
    """Put numbers into the file of an experiment: groups that are there already are replaced, others stay.

    Example:
        >>> import tempfile
        >>> from unspool.reproduce.records import example_measurement
        >>> folder = tempfile.mkdtemp()
        >>> keep_measurements(folder, "signals", [example_measurement(seed) for seed in range(2)])
        >>> [one.value for one in read_measurements(folder, "signals")]
        [0.11, 0.12]
    """
    file, groups = _measured_file(folder, experiment), {one.group for one in new}
    with one_at_a_time(folder):  # other processes may add other groups
        held = [one for one in read_measurements(folder, experiment) if one.group not in groups]
        write_rows(file, Measurement, [*held, *new])


def _measured_file(folder: Folder, experiment: str) -> Path:
    if experiment not in MEASURED:
        raise ValueError(f"no experiment called {experiment!r} measures anything; there are {', '.join(MEASURED)}")
    return Path(folder) / f"{experiment}.csv"


# -- the machine -------------------------------------------------------------------------------------------------------


def write_machine(folder: Folder, facts: Mapping[str, Any]) -> Path:
    """Write what is known about the machine and the runs.

    Example:
        >>> import tempfile
        >>> write_machine(tempfile.mkdtemp(), {"not_run": {}}).name
        'machine.json'
    """
    path = Path(folder) / MACHINE
    text = json.dumps(facts, indent=2, ensure_ascii=False) + "\n"
    write_whole(path, lambda file: file.write(text.encode()))
    return path


def read_machine(folder: Folder) -> dict[str, Any]:
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
        raise ValueError(f"{file} is not a file of results, or was cut off; move it away: trials are not counted in it")
    return told
