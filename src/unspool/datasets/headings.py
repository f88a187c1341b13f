"""Which line of a table is its header, and which column names the nodes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

from unspool.datasets.tables import Table, is_number, read_table
from unspool.errors import DataError, mention

IDS = ("id", "node", "node_id", "nodeid", "name")
LABELS = ("label", "class", "labels", "y", "category", "target")
#: What people and programs write for a number, a gap or a flag: hardly the name of a column.
_VALUE = re.compile(
    r"[\W\d_]*\d[\W\d_]*|0x[0-9a-f]+|n/?a|nan|null|none|missing|true|false|yes|no|inf|\?|-+", re.IGNORECASE
)


def headed(path: Path, named: Sequence[str | None], labels: bool = False, header: bool | None = None) -> Table:
    """A table with its header recognised: a first line of words above numbers, or one that names ids, labels or what was asked for.

    A first line that may be either is refused (numbers that count the columns, a number among words, a word that comes again
    below it); ``header`` says which.
    """
    table = read_table(path)
    if table.header is not None or header is False:
        return table
    first = table.first()
    if header or any(cell in named for cell in first):
        return table.with_header()
    known = [c for c, cell in enumerate(first) if cell.lower() in (*IDS, *LABELS, "split")]
    if not known and (labels or all(map(is_number, first))):
        if may_count(table, labels):
            raise _unclear(table, " (pandas numbers them like this)")
        return table
    if _may_be_data(table, known):
        raise _unclear(table)
    return table.with_header()


def _unclear(table: Table, why: str = "") -> DataError:
    first = table.first()
    shown = f"{', '.join(first[:4])}{', ...' if len(first) > 4 else ''}"
    return DataError(
        table.where(0),
        f"{shown} may be the names of the columns{why} or the first node",
        f"say which with {mention('header')}",
    )


def _may_be_data(table: Table, known: Sequence[int]) -> bool:
    """Whether a first row that is not all numbers may be a node all the same; ``known`` are the columns called as usual."""
    first = table.first()
    values = [c for c, cell in enumerate(first) if _VALUE.fullmatch(cell)]
    words = [c for c, cell in enumerate(first) if cell and c not in values]
    numbers = any(map(is_number, first))
    if not numbers and any(_all_numbers(table, c) for c in words):
        return bool(values) and not known
    if any(first[c] in _below(table, c) for c in (known if known else words)):
        return True
    if any(first[c].lower() in IDS for c in known):
        return False
    # Trap: y is a heading, and a yes above other letters.
    yes = [c for c in known if first[c].lower() == "y" and all(len(cell) < 2 for cell in _below(table, c))]
    return numbers or bool(yes) or (bool(values) and not known)


def _below(table: Table, column: int) -> Iterator[str]:
    return (str(cell).strip() for cell in table.columns[column][1:])


def _all_numbers(table: Table, column: int) -> bool:
    return table.rows > 1 and all(map(is_number, _below(table, column)))


def may_count(table: Table, labels: bool = False) -> bool:
    """Whether the first row may be a header that counts the columns: whole numbers one after another, found in no other row.

    Two columns count from 0, more from anywhere (years). With one column, and for labels, the other rows must be of another
    kind.
    """
    first, others = table.first(), range(1, table.rows)
    if not all(cell.isdecimal() and cell.isascii() for cell in first) or not others:
        return False
    if len(first) == 1 or labels:
        counted = [str(c) for c in range(len(first))]
        return first == counted and not any(str(table.columns[0][row]).strip().isdecimal() for row in others)
    if any(int(b) != int(a) + 1 for a, b in pairwise(first)) or (first[0] != "0" and len(first) < 3):
        return False
    return all([str(column[row]).strip() for column in table.columns] != first for row in others)


def id_place(table: Table, id_column: str | None) -> int | None:
    """Which column holds the nodes' names, if one does."""
    if id_column is not None:
        return table.find(id_column)
    if table.header is None:
        return None
    return next((c for c, name in enumerate(table.header) if name.lower() in IDS), None)


def node_ids(table: Table, id_column: str | None) -> list[str] | None:
    """The nodes' names in the order of the rows, if the table has them."""
    place = id_place(table, id_column)
    return None if place is None else unique_names(table, place)


def unique_names(table: Table, column: int) -> list[str]:
    """A column of names, each of which occurs once."""
    names = table.texts(column)
    seen: dict[str, int] = {}
    for row, node in enumerate(names):
        if not node:
            raise ValueError(f"{table.where(row)}, {table.label(column)}: the node's id is missing; correct the line")
        if node in seen:
            raise ValueError(f"{table.where(row)}: node {node!r} is in {table.line(seen[node])} already; keep one")
        seen[node] = row
    return names
