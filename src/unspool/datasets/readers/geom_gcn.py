"""Texas, Wisconsin, Cornell and Actor in the text layout of Geom-GCN (Pei et al., 2020)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import scipy.sparse

from unspool.datasets.contents import Contents
from unspool.datasets.readers.arrays import Array, Unreadable, numbered, ten_splits

NODES, EDGES = "out1_node_feature_label.txt", "out1_graph_edges.txt"


def read_webkb(folder: Path, title: str) -> Contents:
    """Read Texas, Wisconsin or Cornell: one line of 0/1 values per page, directed links between pages."""
    raw = folder / "raw"
    rows = _lines(raw / NODES, columns=3)
    features = np.array([row[1].split(",") for row in rows], dtype=np.float32)
    labels = np.array([row[2] for row in rows], dtype=np.int64)
    order = _ids(rows, raw / NODES)
    return _contents(raw, title, title.lower(), scipy.sparse.csr_array(features[order]), labels[order])


def read_actor(folder: Path, title: str) -> Contents:
    """Read Actor: the numbers of the words on each actor's page, directed links between pages."""
    raw = folder / "raw"
    rows = _lines(raw / NODES, columns=3)
    order = _ids(rows, raw / NODES)
    words = [np.array(rows[i][1].split(","), dtype=np.int64) for i in order]
    indptr = np.concatenate([[0], np.cumsum([w.size for w in words])])
    columns = np.concatenate(words)
    ones = np.ones(columns.size, dtype=np.float32)
    features = scipy.sparse.csr_array((ones, columns, indptr), shape=(len(rows), int(columns.max()) + 1))
    features.sum_duplicates()
    features.data[:] = 1
    labels = np.array([rows[i][2] for i in order], dtype=np.int64)
    return _contents(raw, title, "film", features, labels)


def _contents(raw: Path, title: str, prefix: str, features: object, labels: Array) -> Contents:
    pairs = np.array(_lines(raw / EDGES, columns=2), dtype=np.int64).T
    if pairs.min() < 0 or pairs.max() >= labels.size:
        raise Unreadable(f"{raw / EDGES} names node {pairs.max()}, but there are {labels.size}; fetch it again")
    return Contents(
        title=title,
        edge_index=pairs,
        features=features,
        labels=labels,
        classes=numbered(labels),
        splits=ten_splits(raw, prefix),
        notes=("links have a direction in the files; here every link counts both ways",),
    )


def _lines(path: Path, columns: int) -> list[list[str]]:
    """The tab-separated lines below the header."""
    rows = [line.split("\t") for line in path.read_text(encoding="utf-8").split("\n")[1:] if line]
    bad = next((number for number, row in enumerate(rows, start=2) if len(row) != columns), None)
    if bad is not None or not rows:
        where = "has no lines" if bad is None else f", line {bad}, has {len(rows[bad - 2])} columns, not {columns}"
        raise Unreadable(f"{path}{'' if bad else ' '}{where}; fetch it again")
    return rows


def _ids(rows: list[list[str]], path: Path) -> Array:
    """Positions of nodes 0, 1, 2, ... among the lines."""
    ids = np.array([row[0] for row in rows], dtype=np.int64)
    order = np.argsort(ids)
    if not np.array_equal(ids[order], np.arange(ids.size)):
        raise Unreadable(f"{path} does not list nodes 0 to {ids.size - 1} once each; fetch it again")
    return order
