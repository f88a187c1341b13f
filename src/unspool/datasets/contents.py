"""What a named data set holds, as plain arrays, and the file such a set is kept in."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
import torch

from unspool.datasets.arrays import Array, Damaged, load_arrays
from unspool.datasets.components import sorted_edges
from unspool.datasets.dataset import Dataset
from unspool.datasets.features import as_features, check_finite, identity, to_numpy
from unspool.datasets.fingerprint import fingerprint
from unspool.files import write_whole

FORMAT = 1


@dataclass(frozen=True, eq=False)
class Contents:
    """The arrays of a data set, before any tensor is made of them.

    Attributes:
        title: the set's name in print.
        edge_index: sources above targets; repeats are dropped and the order is made canonical.
        features: an array, a SciPy ``csr_array``, or ``None`` for a bare graph.
        labels: a class number per node, -1 for none.
        classes: names of the classes.
        splits: per name, one code per node (0 none, 1 train, 2 valid, 3 test).
        notes: what the reader did.
    """

    title: str
    edge_index: Array
    features: Any
    labels: Array
    classes: tuple[str, ...]
    splits: Mapping[str, Array] = field(default_factory=dict[str, Array])
    notes: tuple[str, ...] = ()

    def dataset(self) -> Dataset:
        """As a data set without a split; ``ValueError`` where its parts do not fit each other."""
        self._check()
        edges = sorted_edges(self.edge_index, self.labels.size)
        notes = self.notes
        if self.features is None:
            features = identity(self.labels.size)
            notes = (*notes, "no features: every node has one of its own")
        else:
            features = as_features(self.features)
        return Dataset(
            name=self.title,
            edge_index=torch.from_numpy(edges),
            features=features,
            labels=torch.from_numpy(self.labels.astype(np.int64)),
            classes=self.classes,
            notes=notes,
            recorded={name: torch.from_numpy(codes.astype(np.uint8)) for name, codes in self.splits.items()},
        )

    def _check(self) -> None:
        nodes, index = self.labels.size, self.edge_index
        if self.labels.ndim != 1 or (nodes and self.labels.min() < -1):
            raise ValueError(f"labels of shape {self.labels.shape}, from {self.labels.min(initial=0)} on")
        if index.ndim != 2 or index.shape[0] != 2 or index.dtype.kind not in "iu":
            raise ValueError(f"links of {index.dtype}, of shape {index.shape}")
        if index.size and not 0 <= index.min() <= index.max() < nodes:
            raise ValueError(f"links from node {index.min()} to node {index.max()} among {nodes} nodes")
        if self.features is not None:
            if self.features.ndim != 2 or self.features.shape[0] != nodes:
                raise ValueError(f"features of shape {self.features.shape} for {nodes} nodes")
            check_finite(self.features)
        for name, codes in self.splits.items():
            if codes.shape != (nodes,):
                raise ValueError(f"a split {name} of shape {codes.shape} for {nodes} nodes")


class Corrupt(Exception):
    """A file that is not what it was when it was written; the message says how."""


def write(dataset: Dataset, path: Path, sources: Mapping[str, Any], compressed: bool = False) -> None:
    """Write a data set to one ``.npz`` file without pickled objects; the file appears whole or not at all.

    Args:
        dataset: without a split, weights or node names, as :meth:`Contents.dataset` makes it.
        path: where to.
        sources: what the set was read from, kept to notice when that changes.
        compressed: smaller and slower to read.
    """
    arrays: dict[str, Array] = {
        "edges": _narrow(dataset.edge_index.numpy()),
        "labels": _narrow(dataset.labels.numpy()),
    }
    matrix = to_numpy(dataset.features)
    if isinstance(matrix, np.ndarray):
        arrays["features"] = matrix
    else:
        ones = bool((matrix.data == 1).all())  # a bag of words needs no values
        arrays |= {"indptr": _narrow(matrix.indptr), "indices": _narrow(matrix.indices)}
        arrays |= {} if ones else {"values": matrix.data}
    if dataset.recorded:
        arrays["splits"] = np.stack([codes.numpy() for codes in dataset.recorded.values()])
    meta = {
        "format": FORMAT, "name": dataset.name, "shape": list(dataset.features.shape), "classes": dataset.classes,
        "notes": dataset.notes, "splits": list(dataset.recorded), "sources": dict(sources), "hash": dataset.hash,
    }  # fmt: skip
    meta["seal"] = _seal(meta, arrays.get("splits"))
    arrays["meta"] = np.frombuffer(json.dumps(meta).encode(), dtype=np.uint8)
    pack = np.savez_compressed if compressed else np.savez
    write_whole(path, lambda file: pack(file, **arrays))  # pyright: ignore[reportArgumentType]


def read(path: Path) -> tuple[Dataset, dict[str, Any]]:
    """Read what :func:`write` wrote, compare its hashes, and return it with its sources; or raise :class:`Corrupt`."""
    try:
        arrays = load_arrays(path)
        meta = json.loads(arrays["meta"].tobytes().decode())
        if meta["format"] != FORMAT:
            raise Corrupt(f"it has format {meta['format']}, this version reads {FORMAT}")
        dataset = _dataset(arrays, meta)
    except Damaged as problem:
        raise Corrupt(f"it cannot be read ({problem})") from None
    except (ValueError, KeyError, IndexError, TypeError, AttributeError, RuntimeError) as problem:
        raise Corrupt(f"it cannot be understood ({type(problem).__name__})") from None
    if dataset.hash != meta["hash"] or _seal(meta, arrays.get("splits")) != meta.get("seal"):
        raise Corrupt("its content does not match its hash")
    return dataset, meta["sources"]


def _dataset(arrays: dict[str, Array], meta: dict[str, Any]) -> Dataset:
    if "features" in arrays:
        features: Any = arrays["features"]
    else:
        indices, indptr = arrays["indices"].astype(np.int32), arrays["indptr"].astype(np.int64)
        values = arrays["values"] if "values" in arrays else np.ones(indices.size, dtype=np.float32)
        features = scipy.sparse.csr_array((values, indices, indptr), shape=tuple(meta["shape"]))
    codes = arrays.get("splits", ())
    return Dataset(
        name=meta["name"],
        edge_index=torch.from_numpy(arrays["edges"].astype(np.int64)),
        features=as_features(features),
        labels=torch.from_numpy(arrays["labels"].astype(np.int64)),
        classes=tuple(meta["classes"]),
        notes=tuple(meta["notes"]),
        recorded={name: torch.from_numpy(row.copy()) for name, row in zip(meta["splits"], codes, strict=True)},
    )


def _seal(meta: Mapping[str, Any], splits: Array | None) -> str:
    """A fingerprint of everything in the file that the content's hash does not cover."""
    return fingerprint(json.dumps({key: meta[key] for key in meta if key != "seal"}, sort_keys=True), splits)


def _narrow(numbers: Array) -> Array:
    """Whole numbers in as few bytes as they need."""
    low, high = (int(numbers.min()), int(numbers.max())) if numbers.size else (0, 0)
    kind = next(
        k
        for k in (np.uint8, np.int8, np.uint16, np.int32, np.int64)
        if np.iinfo(k).min <= low and high <= np.iinfo(k).max
    )
    return numbers.astype(kind)
