"""Edge lists in files: which two names each line joins, and how strongly."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from unspool.datasets.arrays import Array, Damaged, load_arrays, sparse_matrix
from unspool.datasets.numbers import Numbers
from unspool.datasets.quick_edges import quick_edges
from unspool.datasets.tables import (
    PARQUET,
    SOURCES,
    TARGETS,
    TEXT,
    WEIGHTS,
    Table,
    check_file,
    is_number,
    read_table,
    suffix,
)  # fmt: skip
from unspool.errors import DataError, InputError, mention


@dataclass(frozen=True, eq=False)
class EdgeFile:
    """The edges of a file, by name.

    Attributes:
        sources: the name of each edge's first node.
        targets: the name of its second node.
        weights: a number per edge, or ``None``.
        where: from an edge's position to the words that name it in the file.
        nodes: names of nodes the file lists, whether or not they have edges; ``None`` where it lists edges only.
        attributes: what the file says about each of those nodes.
        bare: whether the first line was read as an edge though it may be a header.
        heads: the first line, where it was read as a header and may be an edge.
        file: the name of the file, where it is a table.
        undirected: whether the file calls its graph undirected.
        unused: names of columns, or of attributes of edges, that are neither ends nor weight.
    """

    sources: Sequence[str]
    targets: Sequence[str]
    weights: Array | None
    where: Callable[[int], str]
    nodes: tuple[str, ...] | None = None
    attributes: Sequence[Mapping[str, str]] = field(default_factory=tuple[Mapping[str, str], ...])
    bare: bool = False
    heads: tuple[str, ...] = ()
    file: str = ""
    undirected: bool = False
    unused: tuple[str, ...] = ()


def read_edges(path: Path, columns: Sequence[str] | None = None, weight: str | None = None) -> EdgeFile:
    """Read an edge list: CSV, TSV, white-space text (also ``.gz``), Parquet, ``.npz``, ``.npy`` or GraphML.

    Args:
        path: the file.
        columns: names of the source, target and, if any, weight column, for tables with other names.
        weight: the name of the weight column, or of the edge attribute of GraphML, where it is not called weight.
    """
    check_file(path)
    kind = suffix(path)
    if kind in TEXT and columns is None and weight is None and (found := _quickly(path, TEXT[kind])) is not None:
        return found
    if kind in TEXT or kind in PARQUET:
        return _from_table(read_table(path, comments=True), columns, weight)
    if kind in (".npz", ".npy"):
        if weight is not None:
            raise InputError(
                "weight_column", weight, f"a table or GraphML, and {path.name} is neither", "call it edge_weight there"
            )
        return _from_arrays(path)
    if kind == ".graphml":
        from unspool.datasets.graphml import read_graphml

        return read_graphml(path, weight)
    if kind == ".pt":
        from unspool.datasets.pyg_files import read_pyg_edges

        return _numbered(path, *read_pyg_edges(path, weight))
    raise ValueError(
        f"{path}: edges ending in {kind if kind else 'nothing'!r} are not supported; "
        "use .csv, .tsv, .txt, .parquet, .npz, .npy, .graphml or .pt"
    )


def _quickly(path: Path, separator: str | None) -> EdgeFile | None:
    """A large file of numbered edges; None of any other."""
    held = quick_edges(path, separator)
    if held is None:
        return None
    above = 1 if held.header is None else 2

    def where(edge: int) -> str:
        return f"{path.name}, line {edge + above}"

    if held.header is None:
        return EdgeFile(held.columns[0], held.columns[1], None, where, bare=True, file=path.name)
    small = [word.lower() for word in held.header]
    found = [next((i for i, word in enumerate(small) if word in known), None) for known in (SOURCES, TARGETS)]
    if found[0] is None or found[1] is None:
        return None
    heads = (held.header[found[0]], held.header[found[1]])
    return EdgeFile(held.columns[found[0]], held.columns[found[1]], None, where, heads=heads, file=path.name)


def _from_table(table: Table, columns: Sequence[str] | None, named: str | None) -> EdgeFile:
    first = table.first() if table.header is None else []
    if table.header is None and (
        columns is not None or named in first or any(cell.lower() in SOURCES for cell in first)
    ):
        table = table.with_header()
    source, target, weight = _columns(table, columns, named)
    weights = None if weight is None else _weights(table, weight)
    guessed = table.header is not None and columns is None and first and (weight is None or is_number(first[weight]))
    unused = (
        () if table.header is None else [c for i, c in enumerate(table.header) if i not in (source, target, weight)]
    )
    return EdgeFile(
        _ends(table, source), _ends(table, target), weights, table.where, bare=table.header is None,
        heads=(first[source], first[target]) if guessed else (), file=table.path.name, unused=tuple(unused),
    )  # fmt: skip


def _columns(table: Table, columns: Sequence[str] | None, named: str | None) -> tuple[int, int, int | None]:
    if named is not None and columns is not None and len(columns) == 3:
        raise InputError(
            "weight_column", named, f"nothing, as {mention('edge_columns')} names the weight, too", "name it once"
        )
    if columns is not None:
        if len(columns) not in (2, 3):
            raise InputError("edge_columns", list(columns), "source, target and, if any, weight")
        places = [table.find(name) for name in (*columns, *([] if named is None else [named]))]
        return places[0], places[1], places[2] if len(places) == 3 else None
    source, target, weight = _usual_columns(table)
    return source, target, weight if named is None else table.find(named)


def _usual_columns(table: Table) -> tuple[int, int, int | None]:
    """Which columns are which, by their names or, without names, by their order."""
    if table.header is not None:
        small = [name.lower() for name in table.header]
        found = [
            next((i for i, name in enumerate(small) if name in known), None) for known in (SOURCES, TARGETS, WEIGHTS)
        ]
        if found[0] is None or found[1] is None:
            raise DataError(
                f"{table.path}", f"it has no columns source and target (it has {', '.join(table.header)})",
                f"name them: {mention('edge_columns')}",
            )  # fmt: skip
        return found[0], found[1], found[2]
    width = len(table.columns)
    if width not in (2, 3):
        raise DataError(
            "", f"{table.path} has {width} column{'s' if width > 1 else ''}, not 2 or 3 (source, target, weight)",
            "is the separator right?" if width == 1 else f"if the first line is a header, name two of its columns: {mention('edge_columns')}",
        )  # fmt: skip
    first = tuple(table.first())
    if width == 3 and not is_number(first[2]):
        raise DataError(
            table.where(0), f"the third column is {first[2]!r}, which is not a weight",
            f"if this line is a header, name its columns: {mention('edge_columns')}",
        )  # fmt: skip
    if table.rows > 1 and not any(map(is_number, first)) and all(is_number(str(table.columns[c][1])) for c in (0, 1)):
        raise DataError(
            table.where(0),
            f"{', '.join(map(repr, first))} looks like a header",
            f"name its columns: {mention('edge_columns')}",
        )
    _check_counting(table, first)
    return 0, 1, 2 if width == 3 else None


def _check_counting(table: Table, first: tuple[str, ...]) -> None:
    """Refuse a first line 0, 1, 2, or 0, 1 above names: pandas counts columns so, and it would pass for an edge."""
    ends = (str(table.columns[c][row]).strip() for row in range(1, table.rows) for c in (0, 1))
    if first == ("0", "1", "2") or (first == ("0", "1") and table.rows > 1 and not any(e.isdecimal() for e in ends)):
        weight = "; if it is an edge, write its weight as 2.0" if len(first) == 3 else ""
        raise ValueError(
            f"{table.where(0)}: {', '.join(first)} may be the names of the columns, as pandas numbers them: call them source, target "
            f"and weight{weight}"
        )


def _ends(table: Table, column: int) -> Sequence[str]:
    held = table.columns[column]
    if isinstance(held, np.ndarray) and np.can_cast(held.dtype, np.int64) and held.dtype.kind in "iu":
        return Numbers(held)
    names = table.texts(column)
    if "" in names:
        raise ValueError(
            f"{table.where(names.index(''))}, {table.label(column)}: the node is missing; correct the line"
        )
    return names


def _weights(table: Table, column: int) -> Array:
    weights = table.numbers(column)
    bad = np.flatnonzero(weights < 0)
    if bad.size:
        raise ValueError(
            f"{table.where(int(bad[0]))}: the weight is {weights[bad[0]]:g}, but weights must not be negative; "
            "for dissimilar neighbours give signed weights to EdgeSmoothness instead"
        )
    return weights


def _from_arrays(path: Path) -> EdgeFile:
    try:
        arrays = load_arrays(path)
    except Damaged as problem:
        raise ValueError(f"{path} is damaged or not a numpy file ({problem}); make it again") from None
    arrays = {"edge_index": arrays[""]} if "" in arrays else arrays
    if {"indices", "indptr", "shape"} <= set(arrays) or {"row", "col", "shape"} <= set(arrays):
        return _from_matrix(path, arrays)
    index = arrays["edge_index"] if "edge_index" in arrays else arrays["edges"].T if "edges" in arrays else None
    if index is None:
        raise ValueError(
            f"{path} holds {', '.join(arrays)}: expected edge_index of shape (2, edges), or a matrix of scipy.sparse.save_npz"
        )
    if index.ndim != 2 or index.shape[0] != 2 or index.dtype.kind not in "iu":
        raise ValueError(
            f"{path}: edge_index holds {index.dtype} of shape {index.shape}: expected integers of shape (2, edges)"
        )
    weights = arrays.get("edge_weight")
    if weights is not None and weights.dtype.kind not in "fiub":
        raise ValueError(f"{path}: edge_weight holds {weights.dtype}: expected numbers")
    if weights is not None and weights.shape != (index.shape[1],):
        count = "is 1 edge" if index.shape[1] == 1 else f"are {index.shape[1]} edges"
        raise ValueError(f"{path}: edge_weight has shape {weights.shape}, but there {count}")
    return _numbered(path, index, weights, None)


def _from_matrix(path: Path, arrays: dict[str, Array]) -> EdgeFile:
    try:
        matrix = sparse_matrix(arrays).tocoo()
    except ValueError as problem:
        raise ValueError(f"{path} is damaged ({problem}); write it with scipy.sparse.save_npz") from None
    if matrix.shape[0] != matrix.shape[1]:
        raise ValueError(f"{path}: the adjacency matrix has shape {matrix.shape}: it must be square")
    index = np.stack([matrix.col, matrix.row])
    weights = None if (matrix.data == 1).all() else matrix.data.astype(np.float64)
    return _numbered(path, index, weights, matrix.shape[0])


def _numbered(path: Path, index: Array, weights: Array | None, nodes: int | None) -> EdgeFile:
    if weights is not None and (~np.isfinite(weights) | (weights < 0)).any():
        bad = int(np.flatnonzero(~np.isfinite(weights) | (weights < 0))[0])
        raise ValueError(
            f"{path.name}, edge {bad}: the weight is {weights[bad]:g}, but weights are finite and not negative"
        )
    names = None if nodes is None else tuple(map(str, range(nodes)))
    ends = [Numbers(side) if np.can_cast(side.dtype, np.int64) else list(map(str, side.tolist())) for side in index]
    return EdgeFile(ends[0], ends[1], weights, lambda edge: f"{path.name}, edge {edge}", names)
