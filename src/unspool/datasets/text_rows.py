"""Lines of text as rows of cells: nothing vanishes but blank lines and the comments at the top of an edge list."""

from __future__ import annotations

import csv
import io
import zlib
from collections.abc import Iterator
from pathlib import Path

from unspool.datasets.limits import TooLarge, gunzip

Line = tuple[int, list[str]]


def text_rows(path: Path, separator: str | None, comments: bool) -> tuple[list[list[str]], list[int]]:
    """The rows of a text file (also ``.gz``) and the line of each.

    Args:
        path: the file.
        separator: between cells; None for any white space.
        comments: whether lines at the top that begin with # are comments, as in the edge lists of SNAP.
    """
    rows = _with_blanks(list(_parsed(path, _content(path), separator)))
    if comments:
        rows = _without_comments(rows)
    _check_marks(path, rows, comments)
    return [row for _, row in rows], [number for number, _ in rows]


def _content(path: Path) -> str:
    try:
        data = gunzip(path) if path.suffix.lower() == ".gz" else path.read_bytes()
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ValueError(f"{path} is not UTF-8 text; save it as UTF-8, or give it its true ending") from None
    except TooLarge:
        raise
    except (OSError, EOFError, zlib.error) as problem:
        raise ValueError(f"{path} is damaged ({problem}); make it again") from None


def _parsed(path: Path, text: str, separator: str | None) -> Iterator[Line]:
    if separator is None:  # any white space
        yield from ((number, line.split()) for number, line in enumerate(text.splitlines(), start=1))
        return
    # Trap: a quote that is never closed swallows all lines up to the next one; strict reading notices most of that.
    reader, number = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True), 0
    try:
        for row in reader:
            broken = next((cell for cell in row if "\n" in cell or "\r" in cell), None)
            if broken is not None:
                raise csv.Error("a cell goes on over several lines; is a quote missing?")
            number = reader.line_num
            yield number, row
    except csv.Error as problem:
        raise ValueError(f"{path.name}, line {number + 1}: {problem}; correct the line") from None


def _with_blanks(rows: list[Line]) -> list[Line]:
    """Without blank lines; but where there is one column, a blank line inside is an empty cell, and the node has no value."""
    full = [i for i, (_, row) in enumerate(rows) if any(cell.strip() for cell in row)]
    if not full:
        return []
    inside = rows[full[0] : full[-1] + 1]
    if max(len(row) for _, row in inside) > 1:
        tail = [line for line in rows[full[-1] + 1 :] if len(line[1]) > 1]  # cells that are all empty are still a row
        return [line for line in [*inside, *tail] if line[1]]
    return [(number, row if row else [""]) for number, row in inside]


def _marked(line: Line) -> bool:
    return line[1][0].lstrip().startswith("#")


def _without_comments(rows: list[Line]) -> list[Line]:
    """Without the lines at the top that begin with # and a space, or have another number of cells than the edges."""
    width = next((len(line[1]) for line in rows if not _marked(line)), None)
    start = 0
    while start < len(rows) and _marked(rows[start]):
        told, wide = rows[start][1][0].lstrip()[1:], len(rows[start][1])
        if told and not told[0].isspace() and wide == (wide if width is None else width):
            break
        start += 1
    return rows[start:]


def _check_marks(path: Path, rows: list[Line], comments: bool) -> None:
    """Refuse lines of which nobody can tell whether they are comments: #3 among numbers, # and a space, # in the first line."""
    marked = [i for i, line in enumerate(rows) if _marked(line)]
    if len(marked) == len(rows):  # names that begin with #
        return
    for i in marked:
        number, row = rows[i]
        if i > 0 and row[0].lstrip()[1:2].isalpha():
            continue
        if not comments:
            way = "tables of nodes have no comments; drop the line, or the # if it is not a comment"
        elif i == 0:
            way = "write a space after it if the line is a comment, or give the file a header (source, target) if it is an edge"
        else:
            way = "comments are allowed at the top only; drop the line, or the # if it is not a comment"
        raise ValueError(f"{path.name}, line {number} begins with #: {way}")
