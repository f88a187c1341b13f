"""Which labelled nodes are learnt from and which choose the epoch."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def hold_out(ids: Array, strata: Array, share: float, seed: int) -> tuple[Array, Array]:
    """Split labelled nodes into those learnt from and those that choose the epoch, class by class.

    Every class keeps at least one node to learn from. A share of zero holds nothing back.

    Args:
        ids: the labelled nodes.
        strata: their classes; all zero where there are none.
        share: how much of each class is held back.
        seed: of the draw.

    Example:
        >>> train, valid = hold_out(np.arange(10), np.repeat([0, 1], 5), 0.2, seed=0)
        >>> train.size, valid.size
        (8, 2)
    """
    if share == 0:
        return ids, ids[:0]
    random = np.random.default_rng(seed)
    groups = [random.permutation(ids[strata == value]) for value in np.unique(strata)]
    sizes = [min(int(share * group.size + 0.5), group.size - 1) for group in groups]
    largest = int(np.argmax([group.size for group in groups]))
    if sum(sizes) == 0:
        sizes[largest] = min(1, groups[largest].size - 1)
    if sum(sizes) == 0:
        raise ValueError(
            f"{ids.size} labelled node{'s are' if ids.size > 1 else ' is'} too few to hold some back for choosing the epoch: "
            "set valid_share=0, or pass valid=... to fit"
        )
    valid = np.concatenate([group[:size] for group, size in zip(groups, sizes, strict=True)])
    return np.setdiff1d(ids, valid), np.sort(valid)


def given_out(ids: Array, valid: Array) -> tuple[Array, Array]:
    """Take the nodes ``valid`` out of the labelled ones, to choose the epoch with.

    Example:
        >>> given_out(np.array([0, 3, 5]), np.array([4]))
        Traceback (most recent call last):
            ...
        ValueError: node 4 is in valid but has no label: give it one in y, or take it out of valid
    """
    bare = np.setdiff1d(valid, ids)
    if bare.size:
        raise ValueError(f"node {bare[0]} is in valid but has no label: give it one in y, or take it out of valid")
    if valid.size == 0:
        raise ValueError(
            "valid is empty: leave it out to hold back a share of the labelled nodes, or set valid_share=0"
        )
    train = np.setdiff1d(ids, valid)
    if train.size == 0:
        raise ValueError("valid holds all labelled nodes: leave some to learn from")
    return train, np.unique(valid)
