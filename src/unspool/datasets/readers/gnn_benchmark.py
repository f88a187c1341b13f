"""CS, Physics, Photo and Computers in the npz layout of gnn-benchmark (Shchur et al., 2018)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import scipy.sparse

from unspool.datasets.contents import Contents
from unspool.datasets.readers.arrays import Array, both_ways, numbered, open_npz, without_loops

_NEEDED = tuple(f"{matrix}_{part}" for matrix in ("attr", "adj") for part in ("data", "indices", "indptr", "shape"))


def read_gnn_benchmark(path: Path, title: str) -> Contents:
    """Read one file as PyTorch Geometric does: binary features, no self-loops, every edge both ways."""
    arrays = open_npz(path, *_NEEDED, "labels")
    features = _matrix(arrays, "attr")
    # Differs from the file, not from PyG: x[x > 0] = 1; what is negative would stay.
    features.data = np.where(features.data > 0, np.float32(1), features.data).astype(np.float32)
    links = _matrix(arrays, "adj").tocoo()
    index = np.stack([links.row, links.col]).astype(np.int64)
    labels = arrays["labels"].astype(np.int64)
    return Contents(
        title=title,
        edge_index=both_ways(without_loops(index)),
        features=features,
        labels=labels,
        classes=numbered(labels),
        notes=("features binarised", "self-loops dropped", "every edge runs both ways"),
    )


def _matrix(arrays: dict[str, Array], prefix: str) -> scipy.sparse.csr_array[np.float32, tuple[int, int]]:
    parts = (arrays[f"{prefix}_data"], arrays[f"{prefix}_indices"], arrays[f"{prefix}_indptr"])
    matrix = scipy.sparse.csr_array(parts, shape=tuple(arrays[f"{prefix}_shape"]))
    matrix.sum_duplicates()
    return matrix
