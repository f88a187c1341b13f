"""Cora and CiteSeer with edges changed by Metattack, as published with Pro-GNN: one file per set, an edge list per strength."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import scipy.sparse

from unspool.datasets.contents import Contents
from unspool.datasets.readers.arrays import Array, both_ways, numbered, open_npz, split_codes

#: The shares of edges that were changed, as the file writes them; the graph before the attack is the first.
STRENGTHS = ("0", "0.05", "0.1", "0.15", "0.2", "0.25")

_FEATURES = tuple(f"features_{part}" for part in ("data", "indices", "indptr", "shape"))
_PARTS = ("idx_train", "idx_val", "idx_test")


def read_attacked(path: Path, title: str, strength: str) -> Contents:
    """Read the graph of one strength: the same nodes, features, labels and split (10/10/80 %), other edges.

    Args:
        path: the npz file.
        title: the set's name in print.
        strength: one of :data:`STRENGTHS`.
    """
    edges = "edges" if strength == "0" else f"edges_meta_{strength}"
    arrays = open_npz(path, *_FEATURES, *_PARTS, "labels", edges)
    labels = arrays["labels"].astype(np.int64)
    index = arrays[edges].astype(np.int64)
    parts = tuple(arrays[name].astype(np.int64) for name in _PARTS)
    _check(path, labels.size, edges, index, parts)
    values = (arrays["features_data"].astype(np.float32), arrays["features_indices"], arrays["features_indptr"])
    try:
        rows, width = (int(number) for number in arrays["features_shape"])
        features = scipy.sparse.csr_array(values, shape=(rows, width))
        features.check_format()
    except (ValueError, IndexError, TypeError):
        raise ValueError(f"{path}: the features are not a sparse matrix; fetch it again") from None
    if rows != labels.size:
        raise ValueError(f"{path}: {rows} rows of features for {labels.size} nodes; fetch it again")
    masks = (np.isin(np.arange(labels.size), part) for part in parts)
    done = "before the attack" if strength == "0" else f"{float(strength):.0%} of the edges changed by Metattack"
    return Contents(
        title=title,
        edge_index=both_ways(index),
        features=features,
        labels=labels,
        classes=numbered(labels),
        splits={"attacked": split_codes(*masks)},
        notes=("the largest component of the older file", done, "every edge runs both ways"),
    )


def _check(path: Path, nodes: int, name: str, index: Array, parts: tuple[Array, ...]) -> None:
    if index.ndim != 2 or index.shape[0] != 2:
        raise ValueError(f"{path}: {name} has shape {index.shape}, expected two rows; fetch it again")
    for word, ids in ((name, index), *zip(_PARTS, parts, strict=True)):
        if ids.size == 0 or ids.min() < 0 or ids.max() >= nodes:
            raise ValueError(f"{path}: {word} is empty or names nodes that are not among the {nodes}; fetch it again")
    every = np.concatenate(parts)
    if np.unique(every).size != every.size:
        raise ValueError(f"{path}: a node is in two parts of the split; fetch it again")
