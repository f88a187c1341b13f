"""The npz layout of Platonov et al. (2023): filtered chameleon and squirrel, and the heterophilous benchmarks."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from unspool.datasets.contents import Contents
from unspool.datasets.readers.arrays import both_ways, numbered, open_npz, split_codes, whole


def read_platonov(path: Path, title: str) -> Contents:
    """Read one file: dense features, every undirected edge once, ten splits."""
    masks = ("train_masks", "val_masks", "test_masks")
    arrays = open_npz(path, "node_features", "node_labels", "edges", *masks)
    labels = whole(arrays["node_labels"])
    folds = zip(*(arrays[name] for name in masks), strict=True)
    return Contents(
        title=title,
        edge_index=both_ways(arrays["edges"].T.astype(np.int64)),
        features=arrays["node_features"].astype(np.float32),
        labels=labels,
        classes=numbered(labels),
        splits={f"fold-{number}": split_codes(*parts) for number, parts in enumerate(folds)},
        notes=("every edge runs both ways",),
    )
