"""Data of your own in files: an edge list, and tables of features and labels."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

from unspool.datasets.arrays import Array, Damaged, load_arrays
from unspool.datasets.dataset import Dataset
from unspool.datasets.edge_files import EdgeFile, read_edges
from unspool.datasets.features import check_finite
from unspool.datasets.headings import LABELS, headed, id_place, node_ids, unique_names
from unspool.datasets.labels import BLANK, encode
from unspool.datasets.own import Splitting, attribute_labels, attribute_matrix, from_tensors
from unspool.datasets.places import Place
from unspool.datasets.split import Split
from unspool.datasets.tables import PARQUET, TEXT, Table, check_file, is_number, suffix

PARTS = {"train": 1, "valid": 2, "val": 2, "validation": 2, "test": 3}


def from_files(
    edges: Place,
    features: Place | None = None,
    labels: Place | None = None,
    *,
    edge_columns: Sequence[str] | None = None,
    id_column: str | None = None,
    feature_columns: Sequence[str] | None = None,
    label_column: str | None = None,
    split_column: str | None = None,
    target_columns: Sequence[str] | None = None,
    directed: bool | None = None,
    split: Splitting = None,
    name: str | None = None,
) -> Dataset:
    """Make a data set from files of your own.

    Nodes are those of the features, or of the labels where there are no features, or else of the edge list. A table whose
    header has ``id`` (``node``, ``node_id``, ``name``) speaks of nodes by name, in any order; another speaks of nodes 0, 1,
    2, ... in the order of its rows.

    Args:
        edges: CSV, TSV or text with two or three columns (source, target, weight; with or without such a header), Parquet,
            ``.npz`` (``edge_index`` or a SciPy matrix), ``.npy`` or GraphML.
        features: CSV, TSV or Parquet with one number per cell; ``.npy``; ``.npz`` of ``scipy.sparse.save_npz``.
        labels: CSV, TSV or Parquet with a class per node, named or numbered; ``.npy``. A cell that is empty or -1, or a node
            that is not listed, has no label.
        edge_columns: names of the source, target and weight columns, where they are called otherwise.
        id_column: the column with the nodes' names, where it is called otherwise.
        feature_columns: which columns are features; else all that are not ids, labels or splits. For GraphML: which node
            attributes are.
        label_column: the column with the classes; without ``labels``, a column of ``features`` or of GraphML's attributes.
        split_column: a column beside the labels that says train, valid or test.
        target_columns: columns of numbers to be predicted, in ``labels`` or else in ``features``, instead of classes; an empty
            cell is unknown.
        directed: which way edges run, as in :func:`~unspool.datasets.from_tensors`; GraphML that calls itself undirected is.
        split: as in :func:`~unspool.datasets.from_tensors`.
        name: what the set is called; else the name of the edge file.

    Example:
        >>> import tempfile, pathlib
        >>> place = pathlib.Path(tempfile.mkdtemp())
        >>> _ = (place / "friends.csv").write_text("source,target\\nada,bob\\nbob,cem\\n")
        >>> _ = (place / "people.csv").write_text("id,age,team\\nada,36,red\\nbob,41,\\ncem,29,blue\\ndee,50,red\\n")
        >>> data = from_files(place / "friends.csv", place / "people.csv", label_column="team", directed=False, split=lambda d: Split([0], [2], [3], 4))
        >>> data.names, data.labels.tolist(), data.classes
        (('ada', 'bob', 'cem', 'dee'), [1, -1, 0, 1], ('blue', 'red'))
        >>> _ = (place / "friends.csv").write_text("source,target\\nada,bob\\nbob,eve\\n")
        >>> from_files(place / "friends.csv", place / "people.csv", feature_columns=["age"])
        Traceback (most recent call last):
            ...
        ValueError: friends.csv, line 3: node 'eve' is not among the 4 nodes of people.csv; add it there, or drop the line
    """
    held = read_edges(Path(edges), edge_columns)
    if split_column is not None and labels is None and label_column is None and not target_columns:
        raise ValueError(f"split_column={split_column!r} stands beside labels; pass labels= or label_column= too")
    wanted = [column for column in (label_column, split_column, *(target_columns or ())) if column is not None]
    x = (
        None
        if features is None
        else _read_features(Path(features), id_column, feature_columns, [] if labels else wanted)
    )
    if target_columns:
        y = _find_targets(x, labels, id_column, target_columns, split_column)
    else:
        y = _find_labels(held, x, Path(edges), labels, id_column, label_column, split_column)
    called = Path(edges).name.split(".")[0] if name is None else name
    way = False if held.undirected else directed
    return _joined(held, x, y, feature_columns, split, called, way)


def _joined(
    held: EdgeFile,
    x: _Features | None,
    y: _Labels | None,
    columns: Sequence[str] | None,
    split: Splitting,
    name: str,
    directed: bool | None,
) -> Dataset:
    """One data set out of what three files say about nodes by name."""
    names, origin = _node_names(held, x, y)
    place = {node: row for row, node in enumerate(names)}
    hint = "; if the line is a header, name its columns with edge_columns=(..., ...)" if held.bare else ""
    ends = [_places(side, place, origin, held.where, hint) for side in (held.sources, held.targets)]
    matrix = _rows(x, held, names, columns)
    numbers, codes = _spread(y, place, origin)
    given = split if split is not None or codes is None else Split.from_codes(codes, name="from the file")
    plain = names == tuple(map(str, range(len(names))))
    aims = y is not None and y.classes is None
    return from_tensors(
        np.array(ends, dtype=np.int64).reshape(2, -1), matrix, None if aims else numbers, nodes=len(names),
        edge_weight=held.weights, classes=None if y is None else y.classes, names=None if plain else names,
        targets=numbers if aims else None, feature_names=columns if x is None else x.columns, directed=directed, split=given, name=name,
    )  # fmt: skip


def _find_labels(
    held: EdgeFile,
    x: _Features | None,
    edges: Path,
    labels: Place | None,
    id_column: str | None,
    label_column: str | None,
    split_column: str | None,
) -> _Labels | None:
    """Labels from their own file, from a column of the features, or from GraphML's attributes."""
    if labels is not None:
        return _read_labels(Path(labels), id_column, label_column, split_column)
    if label_column is None:
        return None
    if x is None:
        return _attribute_classes(edges, held, label_column)
    if x.table is None:
        raise ValueError(f"{x.path} has no columns, so no {label_column!r}; pass labels=")
    return _labels_of(x.table, id_column, label_column, split_column)


@dataclass(frozen=True, eq=False)
class _Features:
    matrix: Any
    ids: list[str] | None
    path: Path
    table: Table | None = None
    columns: tuple[str, ...] | None = None


@dataclass(frozen=True, eq=False)
class _Labels:
    """Class numbers and their names, or, without names, rows of numbers to be predicted."""

    numbers: Array
    classes: tuple[str, ...] | None
    ids: list[str] | None
    codes: Array | None
    path: Path
    table: Table | None = None

    def where(self, row: int) -> str:
        """The words that name a row."""
        return f"{self.path.name}, row {row}" if self.table is None else self.table.where(row)


def _read_features(path: Path, id_column: str | None, columns: Sequence[str] | None, skip: Sequence[str]) -> _Features:
    check_file(path)
    kind = suffix(path)
    if kind in (".npy", ".npz"):
        return _Features(_matrix(path), None, path)
    if kind not in TEXT and kind not in PARQUET:
        raise ValueError(
            f"{path}: features ending in {kind if kind else 'nothing'!r} are of no known format; use .csv, .tsv, .txt, .parquet, .npy or .npz"
        )
    table = headed(path, (id_column, *skip))
    ids = node_ids(table, id_column)
    if columns is not None:
        chosen = [table.find(column) for column in columns]
    else:
        left = [table.find(column) for column in skip]
        chosen = [c for c in range(len(table.columns)) if c not in left and c != id_place(table, id_column)]
    if not chosen:
        raise ValueError(f"{path} has no column of features beside the ids; add one, or leave features out")
    matrix = np.stack([table.numbers(column) for column in chosen], axis=1)
    named = None if table.header is None else tuple(table.header[column] for column in chosen)
    if named is not None and columns is None and any(not name.strip() for name in named):
        raise ValueError(
            f"{path} has a column without a name, perhaps an index that was written along; drop it, or list the features with feature_columns=..."
        )
    return _Features(matrix, ids, path, table, named)


def _matrix(path: Path) -> Any:
    matrix: Any = _array(path) if suffix(path) == ".npy" else _sparse(path)
    if matrix.ndim != 2 or matrix.dtype.kind not in "fiub":
        raise ValueError(
            f"{path} holds {matrix.dtype} of shape {matrix.shape}: expected numbers of shape (nodes, features)"
        )
    check_finite(matrix)
    return matrix


def _array(path: Path) -> Array:
    try:
        return load_arrays(path)[""]
    except (Damaged, KeyError) as problem:
        raise ValueError(f"{path} is damaged or of another format ({problem}); write it with numpy.save") from None


def _sparse(path: Path) -> Any:
    try:
        return scipy.sparse.load_npz(io.BytesIO(path.read_bytes())).tocsr()  # opens no pickles
    except Exception as problem:  # a flipped byte can make it fail in any way
        kind = type(problem).__name__
        raise ValueError(
            f"{path} is damaged or of another format ({kind}); write it with scipy.sparse.save_npz"
        ) from None


def _read_labels(path: Path, id_column: str | None, label_column: str | None, split_column: str | None) -> _Labels:
    check_file(path)
    kind = suffix(path)
    if kind == ".npy":
        if split_column is not None:
            raise ValueError(f"{path} has no columns, so no {split_column!r}; use a table, or pass split=")
        held = _array(path)
        if held.ndim != 1:
            raise ValueError(f"{path} holds labels of shape {held.shape}: expected one class per node")
        texts = ["" if isinstance(v, float) and np.isnan(v) else str(v) for v in held.tolist()]
        return _Labels(*encode(texts, lambda row: f"{path.name}, row {row}: the label"), None, None, path)
    if kind not in TEXT and kind not in PARQUET:
        raise ValueError(
            f"{path}: labels ending in {kind if kind else 'nothing'!r} are of no known format; use .csv, .tsv, .txt, .parquet or .npy"
        )
    return _labels_of(
        headed(path, (id_column, label_column, split_column), labels=True), id_column, label_column, split_column
    )


def _labels_of(table: Table, id_column: str | None, label_column: str | None, split_column: str | None) -> _Labels:
    ids = node_ids(table, id_column)
    if ids is None and table.header is None and len(table.columns) == 2:
        ids = unique_names(table, 0)
    column = _label_place(table, id_column, label_column, split_column)
    where = f"{table.label(column)}: the label"
    numbers, classes = encode(table.texts(column), lambda row: f"{table.where(row)}, {where}")
    if not classes:
        raise ValueError(f"{table.path}, {table.label(column)} holds no label at all; is it the right column?")
    codes = None if split_column is None else _codes(table, table.find(split_column))
    return _Labels(numbers, classes, ids, codes, table.path, table)


def _find_targets(
    x: _Features | None,
    labels: Place | None,
    id_column: str | None,
    columns: Sequence[str],
    split_column: str | None,
) -> _Labels:
    """Numbers to be predicted, from columns of the labels or of the features."""
    if labels is not None:
        check_file(Path(labels))
        table = headed(Path(labels), (id_column, split_column, *columns))
    elif x is None or x.table is None:
        raise ValueError(f"target_columns={list(columns)}, but there is no table to find them in; pass labels=")
    else:
        table = x.table
    values = np.array([_numbers_or_blank(table, table.find(column)) for column in columns]).T
    codes = None if split_column is None else _codes(table, table.find(split_column))
    return _Labels(values, None, node_ids(table, id_column), codes, table.path, table)


def _numbers_or_blank(table: Table, column: int) -> list[float]:
    found: list[float] = []
    for row, text in enumerate(table.texts(column)):
        blank = text.strip().lower() in BLANK - {"-1", "-1.0"}
        if not blank and not is_number(text):
            raise ValueError(
                f"{table.where(row)}, {table.label(column)}: {text!r} is no number to predict; for classes use label_column"
            )
        found.append(float("nan") if blank else float(text))
    return found


def _label_place(table: Table, id_column: str | None, label_column: str | None, split_column: str | None) -> int:
    if label_column is not None:
        return table.find(label_column)
    taken = {id_place(table, id_column), None if split_column is None else table.find(split_column)}
    left = [c for c in range(len(table.columns)) if c not in taken]
    if table.header is None and len(table.columns) <= 2:
        return len(table.columns) - 1
    named = [c for c in left if table.header is not None and table.header[c].lower() in LABELS]
    if len(named) == 1 or len(left) == 1:
        return named[0] if len(named) == 1 else left[0]
    have = "no header" if table.header is None else f"the columns {', '.join(table.header)}"
    raise ValueError(f"{table.path} has {have}: which is the label? Name it with label_column=...")


def _codes(table: Table, column: int) -> Array:
    codes = np.zeros(table.rows, dtype=np.uint8)
    for row, text in enumerate(table.texts(column)):
        if text and text.lower() not in PARTS:
            raise ValueError(
                f"{table.where(row)}, {table.label(column)}: {text!r} is no part; use train, valid, test or nothing"
            )
        codes[row] = PARTS[text.lower()] if text else 0
    return codes


def _attribute_classes(path: Path, held: EdgeFile, column: str) -> _Labels:
    if held.nodes is None or not held.attributes:
        raise ValueError(f"label_column={column!r}, but there is no table to find it in; pass labels= or features=")
    numbers, classes = attribute_labels(held.attributes, held.nodes, column)
    return _Labels(numbers, classes, list(held.nodes), None, path)


def _node_names(held: EdgeFile, x: _Features | None, y: _Labels | None) -> tuple[tuple[str, ...], str]:
    """The nodes in order, and the file that says so."""
    for part, rows in ((x, None if x is None else x.matrix.shape[0]), (y, None if y is None else len(y.numbers))):
        if part is not None and rows is not None and (part is x or part.ids is None):
            return tuple(part.ids) if part.ids is not None else tuple(map(str, range(rows))), part.path.name
    listed = [] if held.nodes is None else list(held.nodes)
    extra = [] if y is None or y.ids is None else y.ids
    names = list(dict.fromkeys([*listed, *held.sources, *held.targets, *extra]))
    if held.nodes is None and all(node.isdecimal() for node in names):
        names.sort(key=int)
    return tuple(names), "the edge file"


def _places(names: Sequence[str], place: dict[str, int], origin: str, where: Any, hint: str = "") -> list[int]:
    try:
        return [place[node] for node in names]
    except KeyError:
        row = next(row for row, node in enumerate(names) if node not in place)
        raise ValueError(
            f"{where(row)}: node {names[row]!r} is not among the {len(place)} nodes of {origin}; add it there, or drop the line"
            f"{hint if row == 0 else ''}"
        ) from None


def _rows(x: _Features | None, held: EdgeFile, names: tuple[str, ...], columns: Sequence[str] | None) -> Any:
    if x is not None:
        return x.matrix
    if columns is None:
        return None
    if held.nodes is None or not held.attributes:
        raise ValueError(f"feature_columns={list(columns)}, but there is no table to find them in; pass features=")
    return attribute_matrix(held.attributes, names, columns)


def _spread(y: _Labels | None, place: dict[str, int], origin: str) -> tuple[Array | None, Array | None]:
    """Labels and parts in the order of the nodes; nodes that the file does not list have none."""
    if y is None:
        return None, None
    if y.ids is None:
        if len(y.numbers) != len(place):
            raise ValueError(
                f"{y.path.name} has {len(y.numbers)} labels for the {len(place)} nodes of {origin}; give one row per node, or an id column"
            )
        return y.numbers, y.codes
    where = _places(y.ids, place, origin, y.where)
    blank = -1 if y.classes is not None else np.nan
    numbers = np.full((len(place), *y.numbers.shape[1:]), blank, dtype=y.numbers.dtype)
    numbers[where] = y.numbers
    if y.codes is None:
        return numbers, None
    codes = np.zeros(len(place), dtype=np.uint8)
    codes[where] = y.codes
    return numbers, codes
