"""Tables in files: CSV, TSV, text, Parquet. Every cell knows the line it came from, so that errors can name it."""

from __future__ import annotations

import csv
import gzip
import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

TEXT = {".csv": ",", ".tsv": "\t", ".txt": None}
PARQUET = (".parquet", ".pq")


@dataclass(frozen=True, eq=False)
class Table:
    """Columns of a file, with the line of each row.

    Attributes:
        path: the file.
        header: names of the columns, or ``None`` where the file has none.
        columns: one sequence per column: texts from text files, arrays from Parquet.
        lines: the line of each row in the file; ``None`` for Parquet, which has no lines.
    """

    path: Path
    header: tuple[str, ...] | None
    columns: tuple[Sequence[Any], ...]
    lines: tuple[int, ...] | None

    @property
    def rows(self) -> int:
        """Number of rows, without the header."""
        return len(self.columns[0]) if self.columns else 0

    def where(self, row: int) -> str:
        """The file and the line (or row) for a message."""
        return f"{self.path.name}, {f'row {row}' if self.lines is None else f'line {self.lines[row]}'}"

    def label(self, column: int) -> str:
        """The name of a column for a message."""
        return f"column {column + 1}" if self.header is None else f"column {self.header[column]!r}"

    def with_header(self) -> Table:
        """The same table with its first row read as the names of the columns."""
        if self.header is not None or self.lines is None:
            return self
        header = tuple(str(column[0]).strip() for column in self.columns)
        if self.rows == 1:
            raise ValueError(f"{self.path} holds a header and no rows; is it complete?")
        return Table(self.path, header, tuple(column[1:] for column in self.columns), self.lines[1:])

    def first(self) -> list[str]:
        """The first row as text."""
        return [str(column[0]).strip() for column in self.columns]

    def find(self, name: str) -> int:
        """The position of a named column, or a sentence with the names there are."""
        if self.header is None:
            raise ValueError(f"{self.path} has no header, so it has no column {name!r}; add a first line with names")
        if name not in self.header:
            raise ValueError(f"{self.path} has no column {name!r}; it has {', '.join(self.header)}")
        return self.header.index(name)

    def texts(self, column: int) -> list[str]:
        """A column as text; whole numbers without a decimal point, blanks as empty text."""
        return [_text(value) for value in self.columns[column]]

    def numbers(self, column: int) -> Array:
        """A column as float64, or a sentence that names the cell which is no number or is missing."""
        held = self.columns[column]
        try:
            values = np.array(held, dtype=np.float64)  # a copy: Parquet's arrays are read-only
        except (TypeError, ValueError):
            values = np.array([self._number(row, column) for row in range(self.rows)])
        bad = np.flatnonzero(~np.isfinite(values))
        if bad.size:
            raise ValueError(
                f"{self.where(int(bad[0]))}, {self.label(column)}: {values[bad[0]]} is no finite number; fill or drop it"
            )
        return values

    def _number(self, row: int, column: int) -> float:
        text = _text(self.columns[column][row])
        if not text:
            raise ValueError(f"{self.where(row)}, {self.label(column)}: the cell is empty; fill it or drop the row")
        try:
            return float(text)
        except ValueError:
            raise ValueError(
                f"{self.where(row)}, {self.label(column)}: {text!r} is no number; encode it, or leave the column out"
            ) from None


def read_table(path: Path) -> Table:
    """Read a text or Parquet file; text files keep their first line as a row until :meth:`Table.with_header`.

    Example:
        >>> import tempfile, pathlib
        >>> file = pathlib.Path(tempfile.mkdtemp()) / "nodes.csv"
        >>> _ = file.write_text("id,age\\nada,36\\nbob,old\\n")
        >>> read_table(file).with_header().numbers(1)
        Traceback (most recent call last):
            ...
        ValueError: nodes.csv, line 3, column 'age': 'old' is no number; encode it, or leave the column out
    """
    check_file(path)
    kind = suffix(path)
    if kind in PARQUET:
        return _parquet(path)
    rows, lines = _text_rows(path, TEXT[kind])
    if not rows:
        raise ValueError(f"{path} is empty; is it complete?")
    width = len(rows[0])
    for row, line in zip(rows, lines, strict=True):
        if len(row) != width:
            raise ValueError(
                f"{path.name}, line {line}: {len(row)} columns, but line {lines[0]} has {width}; mend the line"
            )
    return Table(path, None, tuple(zip(*rows, strict=True)), tuple(lines))


def check_file(path: Path) -> None:
    """A sentence if there is no such file, or nothing in it."""
    if not path.is_file():
        what = "is a folder, not a file" if path.is_dir() else "does not exist"
        raise FileNotFoundError(f"{path} {what}; check the path")
    if path.stat().st_size == 0:
        raise ValueError(f"{path} is empty; is it complete?")


def suffix(path: Path) -> str:
    """The ending that tells the format, in small letters, without ``.gz``."""
    return (Path(path.stem) if path.suffix.lower() == ".gz" else path).suffix.lower()


def is_number(text: str) -> bool:
    """Whether a text reads as a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def _text_rows(path: Path, separator: str | None) -> tuple[list[list[str]], list[int]]:
    rows: list[list[str]] = []
    lines: list[int] = []
    try:
        data = gzip.decompress(path.read_bytes()) if path.suffix.lower() == ".gz" else path.read_bytes()
        text = data.decode("utf-8-sig")
    except (OSError, EOFError) as problem:
        raise ValueError(f"{path} is damaged ({problem}); make it again") from None
    except UnicodeDecodeError:
        raise ValueError(f"{path} is no UTF-8 text; save it as UTF-8, or give it its true ending") from None
    if separator is None:  # any white space
        parsed = ((number, line.split()) for number, line in enumerate(text.splitlines(), start=1))
    else:
        reader = csv.reader(io.StringIO(text), delimiter=separator)
        parsed = ((reader.line_num, row) for row in reader)
    try:
        for number, row in parsed:
            if row and not row[0].lstrip().startswith("#") and any(cell.strip() for cell in row):
                rows.append(row)
                lines.append(number)
    except csv.Error as problem:
        raise ValueError(f"{path.name}, line {len(lines) + 1}: {problem}; mend the line") from None
    return rows, lines


def _parquet(path: Path) -> Table:
    try:
        from pyarrow import parquet  # pyright: ignore[reportMissingImports]
    except ImportError:
        raise ImportError(
            f"reading {path.name} needs pyarrow: pip install 'unspool[parquet]', or save the table as CSV"
        ) from None
    try:
        held = parquet.read_table(path)
    except Exception as problem:
        raise ValueError(f"{path} is damaged or no Parquet file ({type(problem).__name__}); make it again") from None
    if held.num_rows == 0 or held.num_columns == 0:
        raise ValueError(f"{path} is empty; is it complete?")
    columns = tuple(column.to_numpy() for column in held.columns)
    return Table(path, tuple(str(name) for name in held.column_names), columns, None)


def _text(value: Any) -> str:
    if value is None or (isinstance(value, float | np.floating) and np.isnan(value)):
        return ""
    if isinstance(value, float | np.floating) and float(value).is_integer():
        return str(int(value))
    return str(value).strip()
