"""Cora, CiteSeer and PubMed as Planetoid published them: pickled files, opened without running them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

from unspool.datasets.contents import Contents
from unspool.datasets.readers.arrays import Array, Unreadable, numbered, ten_splits
from unspool.datasets.readers.pickled import Foreign, unpickled

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


PARTS = ("x", "tx", "allx", "y", "ty", "ally", "graph", "test.index")
VALID = 500


def read_planetoid(folder: Path, title: str) -> Contents:
    """Read ``raw/ind.<name>.*``, and Geom-GCN's splits from ``geom-gcn/raw`` where they are."""
    raw, name = folder / "raw", title.lower()
    parts = {part: read_part(raw / f"ind.{name}.{part}") for part in PARTS}
    try:
        found = assembled(parts, title)
    except (ValueError, AttributeError, IndexError, TypeError) as problem:
        raise Unreadable(f"{raw}/ind.{name}.* do not belong together ({problem}); fetch the files again") from None
    return replace(found, splits={**found.splits, **ten_splits(folder / "geom-gcn" / "raw", name)})


def read_part(path: Path) -> Any:
    """One of the eight files: an array, a SciPy ``csr_array``, or neighbours by node."""
    return part_of(path.read_bytes(), path)


def part_of(data: bytes, path: Path) -> Any:
    """The same from the file's bytes; ``path`` is what to call it."""
    try:
        return np.array(data.split(), dtype=np.int64) if path.name.endswith("test.index") else unpickled(data)
    except Foreign as problem:
        raise Unreadable(f"{path} is not a Planetoid file: {problem}; nothing of it was run; fetch it again") from None
    except MemoryError:
        raise
    except Exception as problem:  # a flipped byte can make pickle fail in any way
        raise Unreadable(f"{path} is damaged ({type(problem).__name__}); fetch it again") from None


def assembled(parts: Mapping[str, Any], title: str) -> Contents:
    """The graph, the features, the labels and the public split, as PyG's Planetoid loader assembles them."""
    test, allx, tx = parts["test.index"], parts["allx"], parts["tx"]
    known, count, train = allx.shape[0], int(test.max()) + 1, parts["y"].shape[0]
    if int(test.min()) != known or np.unique(test).size != test.size or tx.shape[0] != test.size:
        raise ValueError(f"{test.size} test ids from {test.min()} on, {tx.shape[0]} of their rows, {known} rows before")
    if train + VALID > known or parts["ally"].shape[0] != known or parts["ty"].shape[0] != test.size:
        raise ValueError(f"{train} training rows, {parts['ally'].shape[0]} and {parts['ty'].shape[0]} labels")
    # Row k of tx belongs to the k-th line of test.index, whatever the order of the ids; CiteSeer's ids have gaps, whose nodes
    # keep zero features and a zero label row.
    place = np.full(count, known + test.size)
    place[:known], place[test] = np.arange(known), known + np.arange(test.size)
    nothing = scipy.sparse.csr_array((1, allx.shape[1]), dtype=np.float32)
    x: Any = scipy.sparse.vstack([allx, tx, nothing], format="csr", dtype=np.float32)
    y = np.concatenate([parts["ally"], parts["ty"], np.zeros((1, parts["ally"].shape[1]))])[place]
    codes = np.zeros(count, dtype=np.uint8)
    codes[:train], codes[train : train + VALID], codes[test] = 1, 2, 3
    labels = y.argmax(1)
    return Contents(
        title=title,
        edge_index=_pairs(parts["graph"], count),
        features=x[place],
        labels=labels,
        classes=CLASSES[title] if title in CLASSES else numbered(labels),
        splits={"public": codes},
        notes=(*NOTES, MISSING) if title == "CiteSeer" else NOTES,
    )


def _pairs(graph: Mapping[int, list[int]], count: int) -> Array:
    """The links, without those of a paper to itself."""
    sources = np.repeat(np.array(list(graph), dtype=np.int64), [len(others) for others in graph.values()])
    targets = np.array([other for others in graph.values() for other in others], dtype=np.int64)
    pairs = np.stack([sources, targets])
    if pairs.size and not 0 <= pairs.min() <= pairs.max() < count:
        raise ValueError(f"links to node {pairs.max()} of {count}")
    return pairs[:, pairs[0] != pairs[1]]
