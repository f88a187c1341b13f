"""Cora, CiteSeer and PubMed as Planetoid published them: pickled files, which PyTorch Geometric opens for us."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

from unspool.datasets.contents import Contents
from unspool.datasets.readers.arrays import numbered, split_codes, ten_splits

#: In Planetoid's order, recovered from the sizes of the classes.
CLASSES = {
    "Cora": (
        "Theory", "Reinforcement Learning", "Genetic Algorithms", "Neural Networks", "Probabilistic Methods",
        "Case Based", "Rule Learning",
    ),
    "CiteSeer": ("AI", "ML", "IR", "DB", "Agents", "HCI"),
}  # fmt: skip

NOTES = ("repeated links and self-loops dropped",)
MISSING = "15 papers without data: features zero and, as in PyG, the first class"


def read_planetoid(folder: Path, title: str) -> Contents:
    """Read ``raw/ind.<name>.*`` with PyG, and Geom-GCN's splits from ``geom-gcn/raw`` where they are."""
    data = _opened(folder / "raw", title)
    masks = [np.asarray(getattr(data, name)) for name in ("train_mask", "val_mask", "test_mask")]
    labels = np.asarray(data.y)
    splits = {"public": split_codes(*masks)} | ten_splits(folder / "geom-gcn" / "raw", title.lower())
    return Contents(
        title=title,
        edge_index=np.asarray(data.edge_index),
        features=scipy.sparse.csr_array(np.asarray(data.x)),
        labels=labels,
        classes=CLASSES[title] if title in CLASSES else numbered(labels),
        splits=splits,
        notes=(*NOTES, MISSING) if title == "CiteSeer" else NOTES,
    )


def _opened(raw: Path, title: str) -> Any:
    # The files are pickles. We never unpickle files from outside ourselves; PyG, whose format they are, does.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of PyG, and of numpy about pickles from 2016
        try:
            from torch_geometric.io import read_planetoid_data
        except ImportError:
            raise ImportError(
                f"{title} lies in {raw} as pickled files, which PyTorch Geometric reads (once; then a cache is used); "
                "pip install 'unspool[pyg]'"
            ) from None
        try:
            return read_planetoid_data(str(raw), title.lower())
        except Exception as problem:
            raise ValueError(
                f"PyTorch Geometric cannot read {raw}/ind.{title.lower()}.* ({type(problem).__name__}: {problem}); "
                "fetch the files again"
            ) from None
