"""CS, Physics, Photo and Computers in the npz layout of gnn-benchmark (Shchur et al., 2018)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from unspool.datasets.arrays import compressed_rows
from unspool.datasets.contents import Contents
from unspool.datasets.readers.arrays import Array, both_ways, numbered, open_npz, whole, without_loops

_NEEDED = tuple(f"{matrix}_{part}" for matrix in ("attr", "adj") for part in ("data", "indices", "indptr", "shape"))


def read_gnn_benchmark(path: Path, title: str) -> Contents:
    """Read one file as PyTorch Geometric does: binary features, no self-loops, every edge both ways."""
    arrays = open_npz(path, *_NEEDED, "labels")
    features = _matrix(arrays, "attr")
    # Differs from the file, not from PyG: x[x > 0] = 1; what is negative would stay.
    features.data = np.where(features.data > 0, np.float32(1), features.data).astype(np.float32)
    links = _matrix(arrays, "adj").tocoo()
    index = np.stack([links.row, links.col]).astype(np.int64)
    labels = whole(arrays["labels"])
    return Contents(
        title=title,
        edge_index=both_ways(without_loops(index)),
        features=features,
        labels=labels,
        classes=numbered(labels),
        notes=("features binarised", "self-loops dropped", "every edge runs both ways"),
    )


def _matrix(arrays: dict[str, Array], prefix: str) -> Any:
    parts = (arrays[f"{prefix}_data"], arrays[f"{prefix}_indices"], arrays[f"{prefix}_indptr"])
    matrix = compressed_rows(*parts, shape=arrays[f"{prefix}_shape"].tolist())
    matrix.sum_duplicates()
    return matrix
