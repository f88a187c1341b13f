"""Which line of a table is its header, and which column names the nodes."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

from unspool.datasets.tables import Table, is_number, read_table

IDS = ("id", "node", "node_id", "nodeid", "name")
LABELS = ("label", "class", "labels", "y", "category", "target")


def headed(path: Path, named: Sequence[str | None], labels: bool = False, header: bool | None = None) -> Table:
    """A table with its header recognised: a first line that is not all numbers, or that names ids, labels or what was asked for.

    A first line of numbers that counts its columns is refused, since it may be either; ``header`` says which.
    """
    table = read_table(path)
    if table.header is not None or header is False:
        return table
    first = table.first()
    known = any(cell.lower() in (*IDS, *LABELS, "split") or cell in named for cell in first)
    if header or known or (not labels and not all(is_number(cell) for cell in first)):
        return table.with_header()
    if may_count(table, labels):
        raise ValueError(
            f"{table.where(0)}: {', '.join(first[:4])}{', ...' if len(first) > 4 else ''} may be the names of the columns (pandas "
            f"counts them so) or the first node; say which with header=True or header=False"
        )
    return table


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
            raise ValueError(f"{table.where(row)}, {table.label(column)}: the node's id is missing; mend the line")
        if node in seen:
            raise ValueError(
                f"{table.where(row)}: node {node!r} stands in {table.where(seen[node]).split(', ')[-1]} already; keep one"
            )
        seen[node] = row
    return names
