"""Which line of a table is its header, and which column names the nodes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from unspool.datasets.tables import Table, is_number, read_table

IDS = ("id", "node", "node_id", "nodeid", "name")
LABELS = ("label", "class", "labels", "y", "category", "target")


def headed(path: Path, named: Sequence[str | None], labels: bool = False) -> Table:
    """A table with its header recognised: a first line that is not all numbers, or that names ids, labels or what was asked for."""
    table = read_table(path)
    if table.header is not None:
        return table
    first = table.first()
    known = any(cell.lower() in (*IDS, *LABELS, "split") or cell in named for cell in first)
    if known or (not labels and not all(is_number(cell) for cell in first)):
        return table.with_header()
    return table


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
