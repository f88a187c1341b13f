"""ogbn-arxiv: OGB's own folder of compressed CSV files, and a file with the graph alone."""

from __future__ import annotations

import csv
import io
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from unspool.datasets.contents import Contents
from unspool.datasets.limits import TooLarge, gunzip
from unspool.datasets.readers.arrays import Array, Unreadable, listed_codes, numbered, open_npz, whole

ARXIV_CLASSES = "labelidx2arxivcategeory.csv.gz"
NOTE = "citations have a direction in the files; here every citation counts both ways"


def read_arxiv(folder: Path, title: str) -> Contents:
    """Read the folder that OGB's archive unpacks to: ``raw/*.csv.gz`` and ``split/time/*.csv.gz``."""
    raw = folder / "raw"
    pairs = _numbers(raw / "edge.csv.gz", np.int64, columns=2)
    features = _numbers(raw / "node-feat.csv.gz", np.float32)
    labels = _numbers(raw / "node-label.csv.gz", np.int64, columns=1)[:, 0]
    if features.shape[0] != labels.size or pairs.max() >= labels.size:
        raise Unreadable(
            f"{raw}: {features.shape[0]} rows of features, {labels.size} labels and node ids up to {pairs.max()} do not "
            "belong together; fetch the files again"
        )
    parts = [
        _numbers(folder / "split" / "time" / f"{part}.csv.gz", np.int64, 1)[:, 0] for part in ("train", "valid", "test")
    ]
    codes = listed_codes(labels.size, *parts)
    classes = _classes(folder / "mapping" / ARXIV_CLASSES, labels)
    return Contents(title, pairs.T, features, labels, classes, {"ogb": codes}, (NOTE,))


def read_arxiv_graph(folder: Path, title: str) -> Contents:
    """Read the graph, labels and split without the features, from one npz file."""
    arrays = open_npz(folder / "ogbn_arxiv_nofeat.npz", "indptr", "indices", "y", "train_idx", "valid_idx", "test_idx")
    citing = np.repeat(np.arange(arrays["indptr"].size - 1), np.diff(arrays["indptr"]))
    labels = whole(arrays["y"])
    codes = listed_codes(labels.size, arrays["train_idx"], arrays["valid_idx"], arrays["test_idx"])
    notes = (NOTE, "OGB's features are absent: accuracies do not compare with ogbn-arxiv's")
    index = np.stack([citing, arrays["indices"]]).astype(np.int64)
    return Contents(title, index, None, labels, _classes(folder / ARXIV_CLASSES, labels), {"ogb": codes}, notes)


def _numbers(path: Path, kind: Any, columns: int | None = None) -> Array:
    try:
        text = io.StringIO(gunzip(path).decode("utf-8"))
        table = np.loadtxt(text, delimiter=",", dtype=kind, ndmin=2, comments=None)
    except FileNotFoundError:
        raise FileNotFoundError(f"{path} is missing") from None
    except TooLarge:
        raise
    except (OSError, EOFError, ValueError, OverflowError, zlib.error) as problem:
        raise Unreadable(f"{path} is damaged ({problem}); fetch it again") from None
    if columns is not None and table.shape[1] != columns:
        raise Unreadable(f"{path} has {table.shape[1]} columns, not {columns}; fetch it again")
    return table


def _classes(path: Path, labels: Array) -> tuple[str, ...]:
    """The arXiv categories, such as ``cs.NA``, where the file that lists them is there."""
    if not path.is_file():
        return numbered(labels)
    try:
        rows = list(csv.reader(io.StringIO(gunzip(path).decode("utf-8"))))[1:]
    except (OSError, EOFError, UnicodeDecodeError, zlib.error, csv.Error) as problem:
        raise Unreadable(f"{path} is damaged ({problem}); fetch it again") from None
    return tuple(f"cs.{row[1].split()[-1].upper()}" for row in rows)
