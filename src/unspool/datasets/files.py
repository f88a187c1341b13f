"""Data of your own in files: an edge list, and tables of features and labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

from unspool.datasets.arrays import Array
from unspool.datasets.dataset import Dataset
from unspool.datasets.edge_files import EdgeFile, read_edges
from unspool.datasets.labels import blank_notes
from unspool.datasets.node_files import (
    Columns,
    Features,
    Labels,
    dropped,
    find_targets,
    labels_of,
    read_features,
    read_labels,
)
from unspool.datasets.numbers import names_in_order, numbered_places
from unspool.datasets.one_hot import Wanted, wanted
from unspool.datasets.own import Splitting, attribute_labels, attribute_matrix, from_tensors
from unspool.datasets.places import Place
from unspool.datasets.pyg_files import from_pyg_file
from unspool.datasets.split import Split
from unspool.datasets.tables import suffix
from unspool.errors import DataError, InputError, mention


def from_files(
    edges: Place,
    features: Place | None = None,
    labels: Place | None = None,
    *,
    edge_columns: Sequence[str] | None = None,
    weight_column: str | None = None,
    id_column: str | None = None,
    feature_columns: Sequence[str] | None = None,
    drop_columns: Sequence[str] = (),
    one_hot: Sequence[str] | Wanted = (),
    label_column: str | None = None,
    split_column: str | None = None,
    target_columns: Sequence[str] | None = None,
    label_columns: Sequence[str] | None = None,
    sample_weight_column: str | None = None,
    class_order: Sequence[str] | None = None,
    directed: bool | None = None,
    header: bool | None = None,
    split: Splitting = None,
    name: str | None = None,
) -> Dataset:
    """Make a data set from files of your own.

    Nodes are those of the features, or of the labels where there are no features, or else of the edge list. A table whose
    header has ``id`` (``node``, ``node_id``, ``name``) speaks of nodes by name, in any order; another speaks of nodes 0, 1,
    2, ... in the order of its rows.

    Args:
        edges: CSV, TSV or text with two or three columns (source, target, weight; with or without such a header), Parquet,
            ``.npz`` (``edge_index`` or a SciPy matrix), ``.npy``, GraphML, or a ``.pt`` file of ``torch.save`` with PyTorch Geometric's
            ``Data``, which brings features, labels and masks along.
        features: CSV, TSV or Parquet with one number per cell; ``.npy``; ``.npz`` of ``scipy.sparse.save_npz``.
        labels: CSV, TSV or Parquet with a class per node, named or numbered; ``.npy``. A cell that is empty or -1, or a node
            that is not listed, has no label.
        edge_columns: names of the source, target and weight columns, where they are called otherwise.
        weight_column: the column (GraphML: the attribute; ``.pt``: the number of the column of ``edge_attr``) with the weights of the
            edges, where it is not called weight. Columns that are not used stand in the notes of the data set.
        id_column: the column with the nodes' names, where it is called otherwise.
        feature_columns: which columns are features; else all that are not ids, labels or splits. For GraphML: which node
            attributes are.
        drop_columns: columns to leave out, of any of the tables.
        one_hot: columns of categories, each of which becomes one column of 0 and 1 per category; an empty cell has none. With a
            mapping from columns to categories, another category is refused (:attr:`Dataset.categories` is such a mapping).
        label_column: the column with the classes; without ``labels``, a column of ``features`` or of GraphML's attributes.
        split_column: a column beside the labels that says train, valid or test.
        target_columns: columns of numbers to be predicted, in ``labels`` or else in ``features``, instead of classes; an empty
            cell is unknown.
        label_columns: two or more columns of labels that a node may have at the same time, each 1 or 0 (yes or no, true or false), in
            ``labels`` or else in ``features``; an empty cell is unknown.
        sample_weight_column: a column beside the labels that says how much each node counts in training.
        class_order: the classes from the lowest to the highest, where they have an order to be learnt.
        directed: which way edges run, as in :func:`~unspool.datasets.from_tensors`; GraphML that calls itself undirected is.
        header: whether the first line of features and labels names their columns; seen from the line when omitted, and asked
            for where it cannot be seen.
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
        unspool.errors.DataError: friends.csv, line 3: node 'eve' is not among the 4 nodes of people.csv; add it there, or drop the line
    """
    columns = Columns(
        id_column,
        feature_columns,
        label_column,
        split_column,
        target_columns,
        header,
        label_columns,
        sample_weight_column,
        tuple(drop_columns),
        wanted(one_hot),
    )
    _check_answers(columns, labels)
    if suffix(Path(edges)) == ".pt":
        _check_alone(Path(edges), features, labels, columns)
        return from_pyg_file(
            Path(edges),
            weight_column=weight_column,
            drop_columns=columns.drop,
            directed=directed,
            split=split,
            name=name,
        )
    held = read_edges(Path(edges), edge_columns, weight_column)
    x = None if features is None else read_features(Path(features), columns, answers=labels is None)
    rows = target_columns or label_columns
    y = find_targets(x, labels, columns) if rows else find_labels(held, x, Path(edges), labels, columns)
    check_dropped(columns, held, x, y)
    called = Path(edges).name.split(".")[0] if name is None else name
    return join(held, x, y, columns, split, called, False if held.undirected else directed, class_order)


def check_dropped(columns: Columns, held: EdgeFile, x: Features | None, y: Labels | None) -> None:
    """Refuse a column to leave out that no table has, and categories without a table."""
    if columns.one_hot and (x is None or x.table is None):
        raise InputError(
            "one_hot", next(iter(columns.one_hot)), "a column of a table", f"give one with {mention('features')}"
        )
    tables = [part.table for part in (x, y) if part is not None and part.table is not None]
    known = [*(name for table in tables for name in table.header or ()), *held.unused]
    lacking = next((name for name in columns.drop if name not in known), None)
    if lacking is not None:
        have = ", ".join(dict.fromkeys(known)) if known else "no named columns"
        raise InputError("drop_columns", lacking, f"a column that can be left out; there are {have}")


def _check_alone(path: Path, features: Place | None, labels: Place | None, columns: Columns) -> None:
    """A Data object is a whole data set: nothing else is read beside it."""
    named = {"features": features, "labels": labels, "id_column": columns.id, "feature_columns": columns.features,
             "label_column": columns.label, "target_columns": columns.targets, "split_column": columns.split, "header": columns.header,
             "one_hot": columns.one_hot, "label_columns": columns.labels, "sample_weight_column": columns.weight}  # fmt: skip
    for argument, value in named.items():
        if value is not None and value != {}:
            shown = next(iter(value)) if isinstance(value, Mapping | list | tuple) else value
            raise InputError(
                argument, str(shown), f"nothing, as {path.name} brings features, labels and masks along", "leave it out"
            )


def _check_answers(columns: Columns, labels: Place | None) -> None:
    """Refuse columns beside an answer that is not there, and several answers."""
    for argument, value in (("split_column", columns.split), ("sample_weight_column", columns.weight)):
        if value is not None and labels is None and not (columns.label or columns.targets or columns.labels):
            raise InputError(
                argument,
                value,
                "labels or numbers as well",
                f"name them with {mention('labels')} or {mention('label_column')}",
            )
    said = {"label_column": columns.label, "label_columns": columns.labels, "target_columns": columns.targets}
    first, *others = [name for name, value in said.items() if value] or [""]
    if others:
        raise InputError(
            first, said[first], f"one answer to learn, and there is {mention(others[0])} too", "name one of them"
        )
    if columns.labels and len(columns.labels) < 2:
        raise InputError(
            "label_columns", list(columns.labels), "two or more columns of labels", "one is a label_column"
        )


@dataclass(frozen=True, eq=False)
class Signals:
    """Signals on a graph with all their digits, which the features of a data set, float32, do not keep.

    Attributes:
        dataset: the graph and the nodes' names; it has no features of its own.
        values: float64 of shape (nodes, signals).
        names: of the signals, where they have any.
        id_name: what the file calls the nodes' names, if it names them.
    """

    dataset: Dataset
    values: Array
    names: tuple[str, ...] | None
    id_name: str | None


def read_signals(edges: Place, features: Place, columns: Columns, gaps: bool = False) -> Signals:
    """Read signals for who needs all their digits; with ``gaps``, empty cells and NaN are missing values.

    Example:
        >>> import tempfile, pathlib
        >>> place = pathlib.Path(tempfile.mkdtemp())
        >>> _ = (place / "e.csv").write_text("source,target\\n0,1\\n1,0\\n")
        >>> _ = (place / "x.csv").write_text("a\\n0.1\\n16777217\\n")
        >>> read_signals(place / "e.csv", place / "x.csv", Columns()).values.ravel().tolist()
        [0.1, 16777217.0]
    """
    held, x = read_edges(Path(edges)), read_features(Path(features), columns, answers=False, gaps=gaps)
    check_dropped(columns, held, x, None)
    matrix = x.matrix.toarray() if scipy.sparse.issparse(x.matrix) else x.matrix
    bare = replace(x, matrix=np.zeros((matrix.shape[0], 1)), columns=None)
    way = False if held.undirected else None
    dataset = join(held, bare, None, columns, None, Path(edges).name.split(".")[0], way)
    return Signals(dataset, matrix.astype(np.float64), x.columns, x.id_name)


def join(
    held: EdgeFile,
    x: Features | None,
    y: Labels | None,
    columns: Columns,
    split: Splitting,
    name: str,
    directed: bool | None,
    class_order: Sequence[str] | None = None,
) -> Dataset:
    """One data set out of what three files say about nodes by name."""
    names, origin = node_names(held, x, y)
    place = {node: row for row, node in enumerate(names)}
    hint = f"; if the line is a header, name its columns: {mention('edge_columns')}" if held.bare else ""
    ends = [_places(side, place, origin, held.where, hint) for side in (held.sources, held.targets)]
    _check_heads(held, place)
    _check_first_line(held, x, y, columns)
    matrix = _rows(x, held, names, columns.features)
    _check_ids(x, y, columns)
    numbers, codes, weights = _spread(y, place, origin)
    given = split if split is not None or codes is None else Split.from_codes(codes, name="from the file")
    plain = names == tuple(map(str, range(len(names))))
    aims = y is not None and y.classes is None
    made = from_tensors(
        np.array(ends, dtype=np.int64).reshape(2, -1), matrix, None if aims else numbers, nodes=len(names),
        edge_weight=held.weights, classes=None if y is None else y.classes, names=None if plain else names,
        targets=numbers if aims else None, feature_names=columns.features if x is None else x.columns, directed=directed,
        sample_weight=weights, class_order=class_order, split=given, name=name,
    )  # fmt: skip
    left = [column for column in held.unused if column not in columns.drop]
    unused = (f"columns of the edges that are not used: {', '.join(left)}",) if left else ()
    notes = (*made.notes, *(() if y is None else y.notes), *unused, *(() if x is None else x.notes))
    return replace(made, notes=notes, categories={} if x is None else x.categories)


def _check_heads(held: EdgeFile, place: dict[str, int]) -> None:
    """Refuse edges whose first line was read as a header, where a node is called as one of its columns."""
    node = next((head for head in held.heads if head in place), None)
    if node is not None:
        pairs = (("source", "target"), ("src", "dst"), ("from", "to"), ("source_id", "target_id"))
        free = next((pair for pair in pairs if not place.keys() & set(pair)), ("citing", "cited"))
        raise ValueError(
            f"{held.file}: the first line, {', '.join(held.heads)}, may be the names of the columns or an edge, for a "
            f"node is called {node!r}; write {','.join(free)} above it if it is an edge, in its place if not"
        )


def _check_first_line(held: EdgeFile, x: Features | None, y: Labels | None, columns: Columns) -> None:
    """Refuse a table without names whose first line counts its columns, where the edges do not confirm that it is a node."""
    part = y if x is None else x
    if part is None or part.table is None or part.table.header is not None or columns.header is not None:
        return
    table, named = part.table, {*held.sources, *held.targets, *(held.nodes or ())}
    confirmed = "0" in named if part.ids is not None else str(table.rows - 1) in named
    if table.first() == [str(c) for c in range(len(table.columns))] and not confirmed:
        what = "node '0'" if part.ids is not None else f"node {table.rows - 1}, which would be the last,"
        raise DataError(
            table.where(0),
            f"{', '.join(table.first()[:4])} may be the names of the columns (pandas numbers them like this) or the first node, and {what} has no edge",
            f"say which with {mention('header')}",
        )


def _check_ids(x: Features | None, y: Labels | None, columns: Columns) -> None:
    """Refuse labels whose nodes are named in a column that nobody pointed at: by their order they would go to others."""
    if x is None or x.ids is None or y is None or y.ids is not None or y.table is None or y.table is x.table:
        return
    used = max(len(columns.targets or ()), len(columns.labels or ()), 1)
    beside = (columns.split is not None) + (columns.weight is not None)
    if len(y.table.columns) - len(dropped(y.table, columns)) > used + beside:
        have = "no header" if y.table.header is None else f"the columns {', '.join(y.table.header)}"
        raise DataError(
            f"{y.table.path}",
            f"it has {have}, and it is not clear which names the nodes",
            f"name it with {mention('id_column')}, or call it id",
        )


def find_labels(
    held: EdgeFile, x: Features | None, edges: Path, labels: Place | None, columns: Columns
) -> Labels | None:
    """Labels from their own file, from a column of the features, or from GraphML's attributes."""
    if labels is not None:
        return read_labels(Path(labels), columns)
    if columns.label is None:
        return None
    if x is None and columns.weight is not None:
        raise InputError("sample_weight_column", columns.weight, "a column of a table, and there is none")
    if x is None:
        return _attribute_classes(edges, held, columns.label)
    if x.table is None:
        raise DataError(
            f"{x.path}", f"it has no columns, so no {columns.label!r}", f"give a table with {mention('labels')}"
        )
    return labels_of(x.table, columns)


def _attribute_classes(path: Path, held: EdgeFile, column: str) -> Labels:
    if held.nodes is None or not held.attributes:
        raise InputError(
            "label_column",
            column,
            "a column of a table, and there is none",
            f"give one with {mention('labels')} or {mention('features')}",
        )
    numbers, classes = attribute_labels(held.attributes, held.nodes, column)
    notes = blank_notes([str(attributes.get(column, "")) for attributes in held.attributes])
    return Labels(numbers, classes, list(held.nodes), None, path, notes=notes)


def node_names(held: EdgeFile, x: Features | None, y: Labels | None) -> tuple[tuple[str, ...], str]:
    """The nodes in order, and the file that says so."""
    for part, rows in ((x, None if x is None else x.matrix.shape[0]), (y, None if y is None else len(y.numbers))):
        if part is not None and rows is not None and (part is x or part.ids is None):
            return tuple(part.ids) if part.ids is not None else tuple(map(str, range(rows))), part.path.name
    listed = [] if held.nodes is None else list(held.nodes)
    extra = [] if y is None or y.ids is None else y.ids
    if not listed and not extra and (numbered := names_in_order(held.sources, held.targets)) is not None:
        return numbered, "the edge file"
    names = list(dict.fromkeys([*listed, *held.sources, *held.targets, *extra]))
    if held.nodes is None and all(node.isdecimal() for node in names):
        names.sort(key=int)
    return tuple(names), "the edge file"


def _places(names: Sequence[str], place: dict[str, int], origin: str, where: Any, hint: str = "") -> Array | list[int]:
    numbered = numbered_places(names, place)
    try:
        return [place[node] for node in names] if numbered is None else numbered
    except KeyError:
        row = next(row for row, node in enumerate(names) if node not in place)
        raise DataError(
            where(row),
            f"node {names[row]!r} is not among the {len(place)} nodes of {origin}",
            f"add it there, or drop the line{hint if row == 0 else ''}",
        ) from None


def _rows(x: Features | None, held: EdgeFile, names: tuple[str, ...], columns: Sequence[str] | None) -> Any:
    if x is not None:
        return x.matrix
    if columns is None:
        return None
    if held.nodes is None or not held.attributes:
        raise InputError(
            "feature_columns",
            list(columns),
            "columns of a table, and there is none",
            f"give one with {mention('features')}",
        )
    return attribute_matrix(held.attributes, names, columns)


def _spread(y: Labels | None, place: dict[str, int], origin: str) -> tuple[Array | None, Array | None, Array | None]:
    """Labels, parts and weights in the order of the nodes; nodes that the file does not list have none."""
    if y is None:
        return None, None, None
    if y.ids is None:
        if len(y.numbers) != len(place):
            raise ValueError(
                f"{y.path.name} has {len(y.numbers)} labels for the {len(place)} nodes of {origin}; give one row per node, or an id column"
            )
        return y.numbers, y.codes, y.weights
    where = _places(y.ids, place, origin, y.where)

    def wide(values: Array | None, blank: float) -> Array | None:
        if values is None:
            return None
        every = np.full((len(place), *values.shape[1:]), blank, dtype=values.dtype)
        every[where] = values
        return every

    numbers = wide(y.numbers, np.nan if y.numbers.dtype.kind == "f" else -1)
    return numbers, wide(y.codes, 0), wide(y.weights, np.nan)
