"""Tables that commands write: CSV, TSV or Parquet, whole or not at all."""

from __future__ import annotations

import csv
import importlib.util
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from unspool.cli.paths import check_folder
from unspool.files import write_whole

ENDINGS = (".csv", ".tsv", ".parquet")


def check_table(out: Path, also: tuple[str, ...] = ()) -> None:
    """Find out before the work whether the table can be written."""
    endings = (*ENDINGS, *also)
    if out.suffix.lower() not in endings:
        raise ValueError(
            f"--out {out}: tables are written as {', '.join(endings[:-1])} or {endings[-1]}; choose one of these endings"
        )
    if out.suffix.lower() == ".parquet" and importlib.util.find_spec("pyarrow") is None:
        raise ValueError("writing Parquet needs pyarrow: pip install 'unspool[parquet]', or choose .csv")
    check_folder(out.parent)


def write_table(out: Path, named: Sequence[tuple[str, Any]], exact: bool = False) -> None:
    """Write named columns of equal length; numbers with nine digits, which float32 has, or with ``exact`` with all they have."""
    columns = dict(named)
    if len(columns) < len(named):
        twice = next(name for i, (name, _) in enumerate(named) if name in dict(named[:i]))
        raise ValueError(f"{out} would have two columns called {twice!r}; rename one in the data")
    if out.suffix.lower() == ".parquet":
        import pyarrow
        import pyarrow.parquet

        table: Any = pyarrow.table({name: pyarrow.array(list(values)) for name, values in columns.items()})
        write_whole(out, lambda file: pyarrow.parquet.write_table(table, file))
        return
    text = io.StringIO(newline="")
    rows = csv.writer(text, delimiter="," if out.suffix.lower() == ".csv" else "\t", lineterminator="\n")
    rows.writerow(columns)
    held = [[_cell(value, exact) for value in values] for values in columns.values()]
    rows.writerows(zip(*held, strict=True))
    write_whole(out, lambda file: file.write(text.getvalue().encode()))


def _cell(value: Any, exact: bool) -> str:
    if not isinstance(value, float | np.floating):
        return str(value)
    return repr(float(value)) if exact else f"{float(value):.9g}"
