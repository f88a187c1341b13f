"""Lists of edges in files, read in pieces of bounded size: node ids are whole numbers from 0 on."""

from __future__ import annotations

import gzip
import io
import re
import warnings
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np

from unspool.datasets.tables import PARQUET, SOURCES, TARGETS, TEXT, WEIGHTS, check_file, is_number, suffix
from unspool.errors import DataError, mention

Array = np.ndarray[Any, Any]
Chunk = tuple[Array, Array, Array | None]
#: Names the place of an edge in its file, by its number in a chunk.
Where = Callable[[int], str]
#: How many edges, or bytes of text, are looked at together.
EDGES, BYTES = 1 << 19, 1 << 23
#: The largest node id that columns of a graph hold.
MOST = 2**31 - 2
#: Whole numbers and a weight, in columns: what needs no text to be kept.
_NUMBERS = re.compile(rb"[0-9.eE+\-, \t\r]*")


class _Layout(NamedTuple):
    """How lines of a text are laid out: which columns are the ends and the weight of an edge, and how many there are."""

    source: int
    target: int
    weight: int | None
    many: int

    @property
    def used(self) -> list[int]:
        """The columns that are read."""
        return [place for place in self[:3] if place is not None]


def edge_chunks(paths: Sequence[Path], weight: str | None = None, nodes: int | None = None) -> Iterator[Chunk]:
    """The edges of some files one after the other, in the same chunks every time.

    Args:
        paths: ``.npy`` with integers of shape (2, edges), Parquet, CSV, TSV or text (also ``.gz``), whose nodes are numbers.
        weight: the column with the weights, for tables with a header; a column called weight when omitted.
        nodes: how many nodes there are, where that is known.

    Example:
        >>> import tempfile, pathlib
        >>> file = pathlib.Path(tempfile.mkdtemp()) / "e.csv"
        >>> _ = file.write_text("source,target\\n0,1\\n1,2\\n")
        >>> [(s.tolist(), t.tolist(), w) for s, t, w in edge_chunks([file])]
        [([0, 1], [1, 2], None)]
    """
    for path in paths:
        check_file(path)
        for chunk, where in _chunks(path, weight):
            _check(chunk, where, nodes)
            yield chunk


def has_weights(paths: Sequence[Path], weight: str | None = None) -> bool:
    """Whether files bring weights; some that do and some that do not are refused."""
    said = {path: next(iter(edge_chunks([path], weight)), (None, None, None))[2] is not None for path in paths}
    if len(set(said.values())) > 1:
        lacking = next(path for path, has in said.items() if not has)
        raise DataError(str(lacking), "it has no weights, and other files have", "give all of them weights, or none")
    return any(said.values())


def _chunks(path: Path, weight: str | None) -> Iterable[tuple[Chunk, Where]]:
    kind = suffix(path)
    if kind == ".npy":
        return _from_array(path, weight)
    if kind in PARQUET:
        return _from_parquet(path, weight)
    if kind in TEXT:
        return _from_text(path, TEXT[kind], weight)
    raise ValueError(
        f"{path}: edges ending in {kind if kind else 'nothing'!r} are not read in pieces; use .npy, .parquet, .csv, .tsv or .txt"
    )


def _check(chunk: Chunk, where: Where, nodes: int | None) -> None:
    source, target, weight = chunk
    for ends in (source, target):
        if not ends.size:
            return
        if int(ends.min()) < 0:
            at = int(np.flatnonzero(ends < 0)[0])
            raise DataError(where(at), f"it names node {int(ends[at])}, but node ids count from 0")
        if int(ends.max()) > MOST:
            raise DataError(
                where(int(np.flatnonzero(ends > MOST)[0])), f"it names node {int(ends[ends > MOST][0])}, and ids end at {MOST}",
                "number the nodes that occur from 0 on",
            )  # fmt: skip
        if nodes is not None and int(ends.max()) >= nodes:
            at = int(np.flatnonzero(ends >= nodes)[0])
            raise DataError(
                where(at),
                f"it names node {int(ends[at])}, but node ids run from 0 to {nodes - 1}",
                f"{mention('nodes', nodes)} says so",
            )
    if weight is not None and (bad := np.flatnonzero(~np.isfinite(weight) | (weight < 0))).size:
        at = int(bad[0])
        raise DataError(where(at), f"the weight is {weight[at]:g}, but weights are finite and not negative")


def _counted(path: Path, what: str, seen: int) -> Where:
    return lambda at: f"{path.name}, {what} {seen + at}"


def _line(path: Path, text: bytes, passed: int, at: int) -> str:
    """The line of an edge in a text of which so many lines have passed; empty ones are no edges."""
    filled = (number for number, held in enumerate(text.splitlines(), start=passed + 1) if held.strip())
    return f"{path.name}, line {next(islice(filled, at, None))}"


def _from_array(path: Path, weight: str | None) -> Iterator[tuple[Chunk, Where]]:
    if weight is not None:
        raise DataError(
            f"{path}",
            f"an array has no columns with names, so no {weight!r}",
            f"use a table, or leave {mention('weight_column')} out",
        )
    try:
        index = np.load(path, mmap_mode="r", allow_pickle=False)
    except Exception as problem:
        raise ValueError(f"{path} is damaged or not a numpy file ({type(problem).__name__}); make it again") from None
    if index.ndim != 2 or index.shape[0] != 2 or index.dtype.kind not in "iu":
        raise ValueError(
            f"{path}: edge_index holds {index.dtype} of shape {index.shape}: expected integers of shape (2, edges)"
        )
    for start in range(0, index.shape[1], EDGES):
        piece = np.asarray(index[:, start : start + EDGES]).astype(np.int64)
        yield (piece[0], piece[1], None), _counted(path, "edge", start)


def _from_parquet(path: Path, weight: str | None) -> Iterator[tuple[Chunk, Where]]:
    try:
        from pyarrow import parquet  # pyright: ignore[reportMissingImports]
    except ImportError:
        raise ImportError(
            f"reading {path.name} needs pyarrow: pip install 'unspool[parquet]', or save the table as CSV"
        ) from None
    try:
        file = parquet.ParquetFile(path)
        names = [str(name) for name in file.schema_arrow.names]
    except Exception as problem:
        raise ValueError(f"{path} is damaged or not a Parquet file ({type(problem).__name__}); make it again") from None
    places, seen = _columns(path, names, weight), 0
    for batch in file.iter_batches(batch_size=EDGES, columns=[names[place] for place in places if place is not None]):
        columns = [batch.column(names[place]) for place in places if place is not None]
        for column, name in zip(columns[:2], (names[places[0]], names[places[1]]), strict=True):
            if column.null_count or column.type not in _whole_types():
                gaps = " with gaps" if column.null_count else ""
                raise DataError(f"{path}, column {name!r}", f"it holds {column.type}{gaps}", _WAY)
        arrays = [column.to_numpy(zero_copy_only=False) for column in columns]
        weights = arrays[2].astype(np.float64) if len(arrays) == 3 else None
        yield (arrays[0].astype(np.int64), arrays[1].astype(np.int64), weights), _counted(path, "row", seen)
        seen += arrays[0].size


_WAY = "node ids are whole numbers from 0 on here; number the nodes, or read named ones with --edges of unspool train"


def _whole_types() -> tuple[Any, ...]:
    import pyarrow  # pyright: ignore[reportMissingImports]

    return tuple(getattr(pyarrow, f"{sign}int{bits}")() for sign in ("", "u") for bits in (8, 16, 32, 64))


def _columns(path: Path, names: Sequence[str], weight: str | None) -> tuple[int, int, int | None]:
    small = [name.strip().lower() for name in names]
    found = [next((i for i, name in enumerate(small) if name in known), None) for known in (SOURCES, TARGETS, WEIGHTS)]
    if found[0] is None or found[1] is None:
        raise DataError(f"{path}", f"it has no columns source and target (it has {', '.join(names)})", "call them so")
    if weight is not None and weight not in names:
        raise DataError(
            f"{path}",
            f"it has no column {weight!r}; it has {', '.join(names)}",
            f"name another with {mention('weight_column')}",
        )
    return found[0], found[1], found[2] if weight is None else list(names).index(weight)


def _from_text(path: Path, separator: str | None, weight: str | None) -> Iterator[tuple[Chunk, Where]]:
    with gzip.open(path) if path.suffix.lower() == ".gz" else path.open("rb") as file:
        places: _Layout | None = None
        line, rest = 0, b""
        while True:
            block = _block(path, file)
            text = rest + block
            cut = len(text) if not block else text.rfind(b"\n") + 1
            text, rest = text[:cut], text[cut:]
            if places is None and text:
                text, passed, places = _head(path, text, separator, weight)
                line += passed
            if text.strip() and places is not None:
                yield _parsed(path, text, separator, places, line), partial(_line, path, text, line)
                line += text.count(b"\n")
            if not block:
                return


def _block(path: Path, file: IO[bytes] | gzip.GzipFile) -> bytes:
    try:
        return file.read(BYTES)
    except (gzip.BadGzipFile, EOFError, zlib.error) as problem:
        raise DataError(f"{path}", f"it is damaged ({problem})", "make it again") from None


def _head(path: Path, text: bytes, separator: str | None, weight: str | None) -> tuple[bytes, int, _Layout | None]:
    """The text without comments at its top and without a header, how many lines these are, and which column is which, None while there are comments alone."""
    held, line = io.BytesIO(text.removeprefix(b"\xef\xbb\xbf")), 0
    while True:
        start = held.tell()
        first = held.readline()
        if not first or not (first.lstrip().startswith(b"#") or not first.strip()):
            break
        line += 1
    if not first:
        return b"", line, None
    cells = [cell.strip() for cell in first.decode("utf-8", "replace").split(separator)]
    if _NUMBERS.fullmatch(first.strip()) and any(cells):
        if weight is not None:
            raise DataError(
                f"{path}", f"it has no header, so it has no column {weight!r}", "add a first line with names"
            )
        if len(cells) not in (2, 3):
            raise DataError(
                f"{path}, line {line + 1}",
                f"it has {len(cells)} columns, not 2 or 3 (source, target, weight)",
                "correct it, or add a header",
            )
        return held.getvalue()[start:], line, _Layout(0, 1, 2 if len(cells) == 3 else None, len(cells))
    places = _columns(path, [cell.strip('"') for cell in cells], weight)
    return held.getvalue()[held.tell() :], line + 1, _Layout(*places, len(cells))


def _parsed(path: Path, text: bytes, separator: str | None, places: _Layout, line: int) -> Chunk:
    columns = places.used
    quick = quickly(text, separator, columns, places.many)
    if quick is not None:
        return quick
    kind = np.dtype([("s", np.int64), ("t", np.int64), ("w", np.float64)][: len(columns)])
    try:
        _check_columns(text, separator, places.many)
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # numpy would cut 1.5 to a whole number, and warn
            held: Any = np.loadtxt(_lines(text), kind, comments=None, delimiter=separator, usecols=columns, ndmin=1)
    except Exception:
        _name_the_line(path, text, separator, places, line)
        raise
    return held["s"], held["t"], held["w"] if len(columns) == 3 else None


def _check_columns(text: bytes, separator: str | None, many: int) -> None:
    """Refuse lines of more or fewer cells than the first, of which numpy would read the first ones."""
    lines = sum(1 for held in text.splitlines() if held.strip())
    cells = len(text.split()) if separator is None else text.count(separator.encode()) + lines
    if cells != many * lines:
        raise ValueError("lines of other lengths")  # which one is found out by whoever looks


def quickly(text: bytes, separator: str | None, columns: Sequence[int], many: int) -> Chunk | None:
    """The same by pyarrow, ten times as fast; None where it is not installed, or does not read every cell as a number, or lines are of other lengths."""
    sign = separator if separator is not None else "\t" if b" " not in text else " "
    try:
        from pyarrow import csv, float64, int64  # pyright: ignore[reportMissingImports]

        names = [f"f{column}" for column in columns]
        held = csv.read_csv(
            io.BytesIO(text),
            csv.ReadOptions(column_names=[f"f{column}" for column in range(many)], use_threads=False),
            csv.ParseOptions(delimiter=sign),
            csv.ConvertOptions(
                column_types=dict(zip(names, (int64(), int64(), float64()), strict=False)),
                include_columns=names,
                null_values=[],
            ),
        )
    except Exception:  # whatever it is, numpy says it with the line
        return None
    arrays = [column.to_numpy() for column in held.columns]
    return arrays[0], arrays[1], arrays[2] if len(arrays) == 3 else None


def _lines(text: bytes) -> IO[str]:
    return io.TextIOWrapper(io.BytesIO(text), encoding="utf-8", errors="replace")


def _name_the_line(path: Path, text: bytes, separator: str | None, places: _Layout, line: int) -> None:
    """Find the first line that cannot be read, and say so."""
    for number, held in enumerate(_lines(text), start=line + 1):
        cells = [cell.strip() for cell in held.rstrip("\r\n").split(separator)]
        if not held.strip():
            continue
        for place in places[:2]:
            if place < len(cells) and not re.fullmatch(r"[+-]?[0-9]{1,18}", cells[place]):
                raise DataError(f"{path.name}, line {number}", f"{cells[place]!r} is not a node id", _WAY)
        if len(cells) != places.many:
            columns = f"{len(cells)} column{'s'[: len(cells) > 1]}"
            raise DataError(
                f"{path.name}, line {number}", f"it has {columns}, not {places.many} as the first", "correct the line"
            )
        if places.weight is not None and not is_number(cells[places.weight]):
            raise DataError(
                f"{path.name}, line {number}", f"the weight {cells[places.weight]!r} is not a number", "correct it"
            )
    raise ValueError(f"{path.name}: the lines from {line + 1} on cannot be read as edges; is the separator right?")
