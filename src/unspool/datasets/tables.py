"""Tables in files: CSV, TSV, text, Parquet. Every cell knows the line it came from, so that errors can name it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from unspool.datasets.limits import TooLarge, check_size
from unspool.datasets.text_rows import text_rows
from unspool.errors import DataError

Array = np.ndarray[Any, Any]

#: What the columns of edges are called.
SOURCES = frozenset({"source", "src", "from", "u", "node1", "source_id", "head", "citing"})
TARGETS = frozenset({"target", "dst", "to", "v", "node2", "target_id", "tail", "cited"})
WEIGHTS = frozenset({"weight", "w", "weights", "edge_weight"})

TEXT = {".csv": ",", ".tsv": "\t", ".txt": None}
PARQUET = (".parquet", ".pq")
_WAY = "encode it, or leave the column out"


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
        return f"{self.path.name}, {self.line(row)}"

    def line(self, row: int) -> str:
        """The same without the file."""
        return f"row {row}" if self.lines is None else f"line {self.lines[row]}"

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
        check_header(self.path, header)
        return Table(self.path, header, tuple(column[1:] for column in self.columns), self.lines[1:])

    def first(self) -> list[str]:
        """The first row as text."""
        return [str(column[0]).strip() for column in self.columns]

    def find(self, name: str) -> int:
        """The position of a named column, or a sentence with the names there are."""
        if self.header is None:
            raise ValueError(f"{self.path} has no header, so it has no column {name!r}; add a first line with names")
        if name not in self.header:
            odd = len(self.header) == 1 and any(sign in self.header[0] for sign in ";|\t")
            ask = "; is the separator right?" if odd else ""
            raise ValueError(f"{self.path} has no column {name!r}; it has {', '.join(self.header)}{ask}")
        return self.header.index(name)

    def texts(self, column: int) -> list[str]:
        """A column as text; whole numbers without a decimal point, blanks as empty text."""
        return [_text(value) for value in self.columns[column]]

    def numbers(self, column: int, gaps: bool = False, hint: str = "", way: str = _WAY) -> Array:
        """A column as float64, or a sentence that names the cell which is not a number or is missing; ``hint`` ends it.

        With ``gaps`` a missing cell is NaN; ``way`` is what to do about text.
        """
        held = self.columns[column]
        # Trap: numpy makes nanoseconds of a date and, as Python does, 10 of 1_0 and 3 of ٣.
        plain = held.dtype.kind in "fiub" if isinstance(held, np.ndarray) else all(map(_is_plain, held))
        try:
            values = np.array(held, dtype=np.float64) if plain else None  # a copy: Parquet's arrays are read-only
        except (TypeError, ValueError):
            values = None
        if values is None:
            values = np.array([self._number(row, column, gaps, hint, way) for row in range(self.rows)])
        bad = np.flatnonzero(np.isinf(values) if gaps else ~np.isfinite(values))
        if bad.size:
            raise ValueError(
                f"{self.where(int(bad[0]))}, {self.label(column)}: {values[bad[0]]} is not a finite number; fill or drop it"
            )
        return values

    def _number(self, row: int, column: int, gaps: bool, hint: str, way: str) -> float:
        text = _text(self.columns[column][row])
        if gaps and text.lower() in ("", "nan", "na"):
            return float("nan")
        if not text:
            raise DataError(
                f"{self.where(row)}, {self.label(column)}", "the cell is empty", f"fill it or drop the row{hint}"
            )
        if not is_number(text):
            raise DataError(
                f"{self.where(row)}, {self.label(column)}",
                f"{text!r} is not a number",
                f"{way}{hint}",
            )
        return float(text)


def read_table(path: Path, comments: bool = False) -> Table:
    """Read a text or Parquet file; text files keep their first line as a row until :meth:`Table.with_header`.

    ``comments`` where lines at the top that begin with # may be comments.

    Example:
        >>> import tempfile, pathlib
        >>> file = pathlib.Path(tempfile.mkdtemp()) / "nodes.csv"
        >>> _ = file.write_text("id,age\\nada,36\\nbob,old\\n")
        >>> read_table(file).with_header().numbers(1)
        Traceback (most recent call last):
            ...
        unspool.errors.DataError: nodes.csv, line 3, column 'age': 'old' is not a number; encode it, or leave the column out
    """
    check_file(path)
    kind = suffix(path)
    if kind in PARQUET:
        return _parquet(path)
    rows, lines = text_rows(path, TEXT[kind], comments)
    if not rows:
        raise ValueError(f"{path} is empty; is it complete?")
    width = len(rows[0])
    for row, line in zip(rows, lines, strict=True):
        if len(row) != width:
            raise ValueError(
                f"{path.name}, line {line}: {len(row)} columns, but line {lines[0]} has {width}; correct the line"
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
    """Whether a text reads as a number, in ASCII; Python's 1_0 does not.

    Example:
        >>> is_number("1e-3"), is_number("1_0")
        (True, False)
    """
    try:
        float(text)
    except ValueError:
        return False
    return _is_plain(text)


def _is_plain(text: str) -> bool:
    return "_" not in text and text.isascii()


def check_header(path: Path, header: Sequence[str]) -> None:
    """Refuse two columns of one name: nobody could tell which is meant."""
    twice = next((name for i, name in enumerate(header) if name and name in header[:i]), None)
    if twice is not None:
        raise ValueError(f"{path} has two columns called {twice!r}; rename one")


def _parquet(path: Path) -> Table:
    try:
        from pyarrow import parquet  # pyright: ignore[reportMissingImports]
    except ImportError:
        raise ImportError(
            f"reading {path.name} needs pyarrow: pip install 'unspool[parquet]', or save the table as CSV"
        ) from None
    try:
        held = _within_limits(path, parquet.ParquetFile(path))
    except TooLarge:
        raise
    except Exception as problem:
        raise ValueError(f"{path} is damaged or not a Parquet file ({type(problem).__name__}); make it again") from None
    if held.num_rows == 0 or held.num_columns == 0:
        raise ValueError(f"{path} is empty; is it complete?")
    header = tuple(str(name) for name in held.column_names)
    check_header(path, header)
    return Table(path, header, tuple(_column(column) for column in held.columns), None)


def _within_limits(path: Path, file: Any) -> Any:
    """The table, refused while it unpacks to more than is allowed: a column of a million equal cells takes a few bytes."""
    import pyarrow  # pyright: ignore[reportMissingImports]

    check_size(path, 8 * file.metadata.num_rows * max(file.metadata.num_columns, 1))
    batches, size = list[Any](), 0
    for batch in file.iter_batches(batch_size=1 << 14):
        size += batch.nbytes
        check_size(path, size)
        batches.append(batch)
    return pyarrow.Table.from_batches(batches, schema=file.schema_arrow)


def _column(column: Any) -> Any:
    """A column as an array; whole numbers with gaps as objects, since numpy would round the large ones."""
    import pyarrow  # pyright: ignore[reportMissingImports]

    if column.null_count and pyarrow.types.is_integer(column.type):
        return np.array(column.to_pylist(), dtype=object)
    return column.to_numpy()


def _text(value: Any) -> str:
    if value is None or (isinstance(value, float | np.floating) and np.isnan(value)):
        return ""
    if isinstance(value, float | np.floating) and float(value).is_integer():
        return str(int(value))
    return str(value).strip()
