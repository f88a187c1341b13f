"""Opening raw files: every way they can be damaged ends in one sentence that names the file."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from unspool.datasets.arrays import Array, Damaged, load_arrays


class Unreadable(ValueError):
    """A raw file that is not what it should be; the message names it."""


def open_npz(path: Path, *needed: str) -> dict[str, Array]:
    """All arrays of an ``.npz`` file, read without unpickling; ``needed`` must be among them."""
    try:
        arrays = load_arrays(path)
    except Damaged as problem:
        raise Unreadable(f"{path} is damaged or no npz file ({problem}); fetch it again") from None
    lacking = [name for name in needed if name not in arrays]
    if lacking:
        raise Unreadable(f"{path} holds no array {lacking[0]!r} (it has {', '.join(arrays)}); fetch it again")
    return arrays


def whole(numbers: Array) -> Array:
    """Class numbers as int64; a fraction would be cut off."""
    if numbers.dtype.kind not in "iub" and not np.array_equal(numbers, np.floor(numbers)):
        raise ValueError("class numbers that are not whole")
    return numbers.astype(np.int64)


def split_codes(train: Array, valid: Array, test: Array) -> Array:
    """Three masks as one code per node: 0 none, 1 train, 2 valid, 3 test."""
    masks = [mask.astype(bool) for mask in (train, valid, test)]
    if any(not np.array_equal(mask, given) for mask, given in zip(masks, (train, valid, test), strict=True)):
        raise ValueError("masks with other numbers than 0 and 1")
    if np.any(np.sum(masks, axis=0) > 1):
        raise ValueError("masks that overlap")
    train, valid, test = masks
    return (train.astype(np.uint8) + 2 * valid.astype(np.uint8) + 3 * test.astype(np.uint8)).astype(np.uint8)


def listed_codes(nodes: int, *parts: Array) -> Array:
    """Lists of nodes as such codes."""
    codes = np.zeros(nodes, dtype=np.uint8)
    for code, part in enumerate(parts, start=1):
        if part.size and not 0 <= part.min() <= part.max() < nodes:
            raise ValueError(f"a split names node {part.max()} of {nodes}")
        if codes[part].any():
            raise ValueError("parts of a split that overlap")
        codes[part] = code
    return codes


def both_ways(edge_index: Array) -> Array:
    """Every edge and its reverse."""
    return np.concatenate([edge_index, edge_index[::-1]], axis=1)


def without_loops(edge_index: Array) -> Array:
    """The edges whose ends differ."""
    return edge_index[:, edge_index[0] != edge_index[1]]


def numbered(labels: Array) -> tuple[str, ...]:
    """Names for classes that have none: their numbers."""
    return tuple(str(number) for number in range(int(labels.max()) + 1))


def ten_splits(folder: Path, prefix: str) -> dict[str, Array]:
    """Geom-GCN's ten splits of a set, those that are there."""
    found: dict[str, Array] = {}
    for number in range(10):
        path = folder / f"{prefix}_split_0.6_0.2_{number}.npz"
        if path.is_file():
            masks = open_npz(path, "train_mask", "val_mask", "test_mask")
            found[f"geom-gcn-{number}"] = split_codes(masks["train_mask"], masks["val_mask"], masks["test_mask"])
    return found
