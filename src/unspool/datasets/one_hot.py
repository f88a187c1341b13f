"""Columns of text as numbers: one column of 0 and 1 for each category."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import scipy.sparse

from unspool.datasets.tables import Table
from unspool.errors import DataError, mention

#: A column of more categories than this names things, and does not sort them.
MOST = 10_000

#: Columns by name, with the categories that each has; None where they are seen from the data.
Wanted = Mapping[str, Sequence[str] | None]


def wanted(given: Sequence[str] | Wanted | None) -> dict[str, tuple[str, ...] | None]:
    """Names of columns, or names with categories, in one form.

    Example:
        >>> wanted(["plan"]), wanted({"plan": ["basic", "pro"]})
        ({'plan': None}, {'plan': ('basic', 'pro')})
    """
    if given is None:
        return {}
    if isinstance(given, Mapping):
        return {str(name): None if held is None else tuple(map(str, held)) for name, held in given.items()}
    return {str(name): None for name in ([given] if isinstance(given, str) else given)}


def category_name(column: str, category: str) -> str:
    """What the column of one category is called."""
    return f"{column}={category}"


def encoded(table: Table, column: int, known: Sequence[str] | None) -> tuple[Any, tuple[str, ...], int]:
    """A column as a sparse matrix with a column for each category, the categories, and how many cells are empty.

    An empty cell has none of the categories. Where they are known, another one is refused: a model has no weight for it.

    Example:
        >>> from pathlib import Path
        >>> table = Table(Path("x.csv"), ("plan",), (("pro", "basic", ""),), (2, 3, 4))
        >>> matrix, categories, empty = encoded(table, 0, None)
        >>> matrix.toarray().tolist(), categories, empty
        ([[0.0, 1.0], [1.0, 0.0], [0.0, 0.0]], ('basic', 'pro'), 1)
        >>> encoded(table, 0, ("basic",))
        Traceback (most recent call last):
            ...
        unspool.errors.DataError: x.csv, line 2, column 'plan': 'pro' is not among the 1 known categories (basic); ...
    """
    texts = table.texts(column)
    categories = tuple(sorted(set(texts) - {""})) if known is None else tuple(known)
    if not categories:
        raise DataError(f"{table.path}, {table.label(column)}", "all cells are empty", "leave the column out")
    if len(categories) > MOST:
        name = "" if table.header is None else table.header[column]
        raise DataError(
            f"{table.path}, {table.label(column)}",
            f"it has {len(categories)} categories, more than the {MOST} that get a column each",
            f"it seems to name the nodes; leave it out with {mention('drop_columns', name)}",
        )
    place = {category: i for i, category in enumerate(categories)}
    stranger = next((row for row, text in enumerate(texts) if text and text not in place), None)
    if stranger is not None:
        shown = ", ".join(categories[:6]) + (", ..." if len(categories) > 6 else "")
        raise DataError(
            f"{table.where(stranger)}, {table.label(column)}",
            f"{texts[stranger]!r} is not among the {len(categories)} known categories ({shown})",
            "correct it, or empty the cell, which then has none of them",
        )
    rows = np.array([row for row, text in enumerate(texts) if text], dtype=np.int64)
    cols = np.array([place[text] for text in texts if text], dtype=np.int64)
    matrix = scipy.sparse.csr_array((np.ones(rows.size), (rows, cols)), shape=(len(texts), len(categories)))
    return matrix, categories, len(texts) - rows.size


def columns_of(features: Sequence[str], categories: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """The columns of a table that gave these features.

    Example:
        >>> columns_of(("age", "plan=basic", "plan=pro"), {"plan": ("basic", "pro")})
        ('age', 'plan')
    """
    origin = {category_name(column, one): column for column, held in categories.items() for one in held}
    return tuple(dict.fromkeys(origin.get(name, name) for name in features))
