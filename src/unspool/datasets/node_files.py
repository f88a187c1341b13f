"""Tables and arrays about nodes: features, labels and numbers to predict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

from unspool.datasets.arrays import Array, Damaged, load_arrays, sparse_matrix
from unspool.datasets.features import check_finite
from unspool.datasets.headings import LABELS, headed, id_place, node_ids, unique_names
from unspool.datasets.indicator import NO, YES
from unspool.datasets.labels import BLANK, as_text, blank_notes, encode
from unspool.datasets.limits import TooLarge
from unspool.datasets.one_hot import category_name, encoded
from unspool.datasets.places import Place
from unspool.datasets.tables import PARQUET, TEXT, Table, check_file, check_header, is_number, suffix
from unspool.errors import UNSHOWN, DataError, InputError, mention

PARTS = {"train": 1, "valid": 2, "val": 2, "validation": 2, "test": 3}


@dataclass(frozen=True, eq=False)
class Features:
    """A row of numbers per node, in float64 or as the file has them, and where they come from."""

    matrix: Any
    ids: list[str] | None
    path: Path
    table: Table | None = None
    columns: tuple[str, ...] | None = None
    id_name: str | None = None
    categories: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Labels:
    """Class numbers and their names; without names, rows of numbers to be predicted; with both rows and names, several labels."""

    numbers: Array
    classes: tuple[str, ...] | None
    ids: list[str] | None
    codes: Array | None
    path: Path
    table: Table | None = None
    notes: tuple[str, ...] = ()
    weights: Array | None = None

    def where(self, row: int) -> str:
        """The words that name a row."""
        return f"{self.path.name}, row {row}" if self.table is None else self.table.where(row)


@dataclass(frozen=True)
class Columns:
    """Which columns of a table are what; see :func:`~unspool.datasets.from_files`."""

    id: str | None = None
    features: Sequence[str] | None = None
    label: str | None = None
    split: str | None = None
    targets: Sequence[str] | None = None
    header: bool | None = None
    labels: Sequence[str] | None = None
    weight: str | None = None
    drop: Sequence[str] = ()
    #: None where categories make no sense, as for signals.
    one_hot: Mapping[str, Sequence[str] | None] | None = None

    def __post_init__(self) -> None:
        named = {"id_column": (self.id,), "feature_columns": self.features, "one_hot": self.one_hot, "label_column": (self.label,),
                 "split_column": (self.split,), "target_columns": self.targets, "label_columns": self.labels,
                 "sample_weight_column": (self.weight,)}  # fmt: skip
        for argument, columns in named.items():
            both = next((column for column in columns or () if column in self.drop), None)
            if both is not None:
                raise InputError(
                    "drop_columns", both, f"a column that nothing else names, and {mention(argument, both)} does"
                )

    @property
    def answers(self) -> list[str]:
        """Those that are to be predicted, or say which nodes train, and how much they count."""
        named = (self.label, self.split, self.weight, *(self.targets or ()), *(self.labels or ()))
        return [column for column in named if column is not None]


def read_features(path: Path, columns: Columns, answers: bool, gaps: bool = False) -> Features:
    """Features from a table or an array; ``answers`` where the table holds the labels or targets too, ``gaps`` where values may be missing."""
    check_file(path)
    kind = suffix(path)
    if kind in (".npy", ".npz"):
        return Features(_matrix(path, gaps), None, path)
    if kind not in TEXT and kind not in PARQUET:
        raise ValueError(
            f"{path}: features ending in {kind if kind else 'nothing'!r} are not supported; use .csv, .tsv, .txt, .parquet, .npy or .npz"
        )
    skip = columns.answers if answers else []
    named = (columns.id, *skip, *(columns.features or ()), *(columns.one_hot or ()), *columns.drop)
    table = headed(path, named, header=columns.header)
    ids = node_ids(table, columns.id)
    left = [table.find(column) for column in (*skip, *dropped(table, columns))]
    named_by = id_place(table, columns.id)
    if columns.features is not None:
        chosen = [table.find(column) for column in columns.features]
        _check_chosen(columns.features, skip)
        if named_by is not None and named_by in chosen:
            raise DataError(
                f"{path}", f"{table.label(named_by)} names the nodes", f"take it out of {mention('feature_columns')}"
            )
    else:
        chosen = [c for c in range(len(table.columns)) if c not in left and c != named_by]
    if not chosen:
        raise DataError(
            f"{path}", "it has no column of features next to the ids", f"add one, or leave {mention('features')} out"
        )
    unsaid = answers and not columns.answers and columns.features is None
    hint = f", or is it the label? then {mention('label_column', 'NAME')}" if unsaid else ""
    held = _held(table, chosen, columns, gaps, hint)
    if ids is None:
        _check_order(table, held)
    id_name = None if named_by is None or table.header is None else table.header[named_by]
    return Features(held.matrix(), ids, path, table, held.names, id_name, held.categories, held.notes)


@dataclass(frozen=True, eq=False)
class _Held:
    """Columns of features one by one: numbers as arrays, categories as sparse matrices."""

    places: Sequence[int]
    blocks: Sequence[Any]
    names: tuple[str, ...] | None
    categories: Mapping[str, tuple[str, ...]]
    notes: tuple[str, ...]

    def matrix(self) -> Any:
        """All of them side by side; sparse where one is."""
        if not self.categories:
            return np.stack(self.blocks, axis=1)
        parts = [part if scipy.sparse.issparse(part) else part[:, None] for part in self.blocks]
        return scipy.sparse.csr_array(scipy.sparse.hstack([scipy.sparse.csr_array(part) for part in parts]))


def dropped(table: Table, columns: Columns) -> list[str]:
    """The columns of this table that are to be left out; another table may have the others."""
    return [name for name in columns.drop if table.header is not None and name in table.header]


def _held(table: Table, chosen: Sequence[int], columns: Columns, gaps: bool, hint: str) -> _Held:
    wanted = {} if columns.one_hot is None else columns.one_hot
    places = [table.find(name) for name in wanted]  # or a sentence that there is no header
    if table.header is None:
        return _Held(chosen, [table.numbers(column, gaps, hint) for column in chosen], None, {}, ())
    lacking = next((name for name, place in zip(wanted, places, strict=True) if place not in chosen), None)
    if lacking is not None:
        raise InputError("one_hot", lacking, "a column of features", "it has another use, or is not among the features")
    blocks, names, categories, notes = list[Any](), list[str](), dict[str, tuple[str, ...]](), list[str]()
    for column in chosen:
        name = table.header[column]
        if name not in wanted:
            if not name.strip() and columns.features is None:
                raise _nameless(table)
            blocks.append(table.numbers(column, gaps, hint, way=_way(name, columns)))
            names.append(name)
            continue
        block, categories[name], empty = encoded(table, column, wanted[name])
        blocks.append(block)
        names += [category_name(name, category) for category in categories[name]]
        notes.append(f"{name!r} is {len(categories[name])} columns, one for each category")
        notes += [f"{empty} empty cells of {name!r} have none of its categories"] if empty else []
    check_header(table.path, names)
    return _Held(chosen, blocks, tuple(names), categories, tuple(notes))


def _way(name: str, columns: Columns) -> str:
    """What to do about text in a column of features."""
    if not name.strip():
        return "encode it, or leave the column out"
    one_hot = f", or give each category a column with {mention('one_hot', name)}"
    return f"leave the column out with {mention('drop_columns', name)}{'' if columns.one_hot is None else one_hot}"


def _nameless(table: Table) -> DataError:
    return DataError(
        f"{table.path}", "a column has no name, perhaps an index that was written along",
        f"drop it, or list the features with {mention('feature_columns')}",
    )  # fmt: skip


def _check_chosen(features: Sequence[str], answers: Sequence[str]) -> None:
    twice = next((name for i, name in enumerate(features) if name in features[:i]), None)
    if twice is not None:
        raise InputError("feature_columns", UNSHOWN, f"each column once, and {twice!r} is named twice")
    both = next((name for name in features if name in answers), None)
    if both is not None:
        raise InputError(
            "feature_columns", UNSHOWN, f"columns to learn from, and {both!r} is what is to be predicted", "take it out"
        )


def _check_order(table: Table, held: _Held) -> None:
    """Refuse a column that numbers the nodes in another order than they stand in: it would pass for a feature."""
    count = np.arange(table.rows)
    for column, values in zip(held.places, held.blocks, strict=True):
        if scipy.sparse.issparse(values) or table.rows <= 2 or np.array_equal(values, count):
            continue
        if np.array_equal(np.sort(values), count):
            raise ValueError(
                f"{table.path}, {table.label(column)} holds each of 0 to {table.rows - 1} once, in another order than the rows: if these "
                "are the nodes, call the column id; if not, name the nodes in a column called id"
            )


def _matrix(path: Path, gaps: bool) -> Any:
    matrix: Any = _array(path) if suffix(path) == ".npy" else _sparse(path)
    if matrix.ndim != 2 or matrix.dtype.kind not in "fiub":
        raise ValueError(
            f"{path} holds {matrix.dtype} of shape {matrix.shape}: expected numbers of shape (nodes, features)"
        )
    known = np.where(np.isnan(matrix), 0, matrix) if gaps and isinstance(matrix, np.ndarray) else matrix
    check_finite(known, largest=float(np.finfo(np.float64).max))
    return matrix


def _array(path: Path) -> Array:
    try:
        return load_arrays(path)[""]
    except (Damaged, KeyError) as problem:
        raise ValueError(f"{path} is damaged or of another format ({problem}); write it with numpy.save") from None


def _sparse(path: Path) -> Any:
    try:
        return sparse_matrix(load_arrays(path))
    except TooLarge:
        raise
    except (Damaged, ValueError) as problem:
        raise ValueError(
            f"{path} is damaged or of another format ({problem}); write it with scipy.sparse.save_npz"
        ) from None


def read_labels(path: Path, columns: Columns) -> Labels:
    """Classes from a table or an array of their own."""
    check_file(path)
    kind = suffix(path)
    if kind == ".npy":
        if columns.split is not None:
            raise DataError(
                f"{path}", f"it has no columns, so no {columns.split!r}", f"use a table, or {mention('split')}"
            )
        if columns.weight is not None:
            raise DataError(f"{path}", f"it has no columns, so no {columns.weight!r}", "use a table")
        held = _array(path)
        if held.ndim != 1:
            raise ValueError(f"{path} holds labels of shape {held.shape}: expected one class per node")
        texts = [as_text(value, f"{path.name}, row {row}: the label") for row, value in enumerate(held.tolist())]
        numbers, classes = encode(texts, lambda row: f"{path.name}, row {row}: the label")
        return Labels(numbers, classes, None, None, path, notes=blank_notes(texts))
    if kind not in TEXT and kind not in PARQUET:
        raise ValueError(
            f"{path}: labels ending in {kind if kind else 'nothing'!r} are not supported; use .csv, .tsv, .txt, .parquet or .npy"
        )
    named = (columns.id, columns.label, columns.split, columns.weight)
    return labels_of(headed(path, named, labels=True, header=columns.header), columns)


def labels_of(table: Table, columns: Columns) -> Labels:
    """Classes from a column of a table."""
    ids = node_ids(table, columns.id)
    if ids is None and table.header is None and len(table.columns) == 2:
        ids = unique_names(table, 0)
    column = label_place(table, columns)
    where, texts = f"{table.label(column)}: the label", table.texts(column)
    numbers, classes = encode(texts, lambda row: f"{table.where(row)}, {where}")
    if not classes:
        raise ValueError(f"{table.path}, {table.label(column)} holds no label at all; is it the right column?")
    codes = None if columns.split is None else _codes(table, table.find(columns.split))
    return Labels(numbers, classes, ids, codes, table.path, table, blank_notes(texts), _weights(table, columns))


def find_targets(x: Features | None, labels: Place | None, columns: Columns) -> Labels:
    """Numbers to be predicted, or several labels, from columns of the labels or of the features."""
    several = bool(columns.labels)
    argument, targets = (
        ("label_columns" if several else "target_columns"),
        list(columns.labels or columns.targets or ()),
    )
    twice = next((name for i, name in enumerate(targets) if name in targets[:i]), None)
    if twice is not None:
        raise InputError(argument, UNSHOWN, f"each column once, and {twice!r} is named twice")
    if labels is not None:
        check_file(Path(labels))
        kind = suffix(Path(labels))
        if kind not in TEXT and kind not in PARQUET:
            raise ValueError(
                f"{labels} has no columns, so no {targets[0]!r}; use a table: .csv, .tsv, .txt or .parquet"
            )
        table = headed(Path(labels), (columns.id, *columns.answers), header=columns.header)
    elif x is None or x.table is None:
        raise InputError(
            argument, targets, "columns of a table, and there is none", f"give one with {mention('labels')}"
        )
    else:
        table = x.table
    read = _yes_or_no if several else _numbers_or_blank
    values = np.array([read(table, table.find(column)) for column in targets]).T
    codes = None if columns.split is None else _codes(table, table.find(columns.split))
    names = tuple(targets) if several else None
    ids = node_ids(table, columns.id)
    return Labels(values, names, ids, codes, table.path, table, weights=_weights(table, columns))


def _yes_or_no(table: Table, column: int) -> list[float]:
    """1, 0, or NaN where a cell is empty."""
    found: list[float] = []
    for row, text in enumerate(table.texts(column)):
        word = text.strip().lower()
        # Trap: -1 may mean no, and may mean that nobody knows.
        if word not in YES | NO | (BLANK - {"-1", "-1.0"}):
            raise DataError(
                f"{table.where(row)}, {table.label(column)}",
                f"{text!r} is not yes or no: of several labels, each is 1 or 0, yes or no, true or false",
                "leave the cell empty where it is not known",
            )
        found.append(1.0 if word in YES else 0.0 if word in NO else float("nan"))
    return found


def _weights(table: Table, columns: Columns) -> Array | None:
    """How much each row counts; NaN where a cell is empty."""
    if columns.weight is None:
        return None
    place, found = table.find(columns.weight), list[float]()
    for row, text in enumerate(table.texts(place)):
        blank = text.strip().lower() in BLANK - {"-1", "-1.0"}
        if not blank and not (is_number(text) and 0 <= float(text) < float("inf")):
            raise DataError(
                f"{table.where(row)}, {table.label(place)}",
                f"{text!r} is not a weight: weights are finite numbers of at least 0",
                "correct the line",
            )
        found.append(float("nan") if blank else float(text))
    return np.array(found)


def _numbers_or_blank(table: Table, column: int) -> list[float]:
    found: list[float] = []
    for row, text in enumerate(table.texts(column)):
        blank = text.strip().lower() in BLANK - {"-1", "-1.0"}
        if not blank and not is_number(text):
            raise DataError(
                f"{table.where(row)}, {table.label(column)}",
                f"{text!r} is not a number to predict",
                f"for classes use {mention('label_column')}",
            )
        found.append(float("nan") if blank else float(text))
    return found


def label_place(table: Table, columns: Columns) -> int:
    """Which column is the label: the one that was named, the one called so, or the only one left."""
    if columns.label is not None:
        return table.find(columns.label)
    beside = [table.find(column) for column in (columns.split, columns.weight) if column is not None]
    taken = {id_place(table, columns.id), *beside}
    taken |= {table.find(name) for name in dropped(table, columns)}
    left = [c for c in range(len(table.columns)) if c not in taken]
    if table.header is None and len(table.columns) <= 2:
        return len(table.columns) - 1
    named = [c for c in left if table.header is not None and table.header[c].lower() in LABELS]
    if len(named) == 1 or len(left) == 1:
        return named[0] if len(named) == 1 else left[0]
    have = "no header" if table.header is None else f"the columns {', '.join(table.header)}"
    raise DataError(
        f"{table.path}",
        f"it has {have}, and it is not clear which is the label",
        f"name it with {mention('label_column')}",
    )


def _codes(table: Table, column: int) -> Array:
    codes = np.zeros(table.rows, dtype=np.uint8)
    for row, text in enumerate(table.texts(column)):
        if text and text.lower() not in PARTS:
            raise ValueError(
                f"{table.where(row)}, {table.label(column)}: {text!r} is not a part; use train, valid, test or nothing"
            )
        codes[row] = PARTS[text.lower()] if text else 0
    return codes
