"""Data made worse on purpose: rows of features replaced, edges added between random nodes.

A share of 0.3 means 30 per cent of the nodes, or as many new edges as 30 per cent of those that are there. The same seed
makes the same corruption, and a larger share corrupts the nodes of a smaller one too.
"""

from __future__ import annotations

from dataclasses import replace
from enum import Enum
from typing import Any

import numpy as np
import scipy.sparse
import torch

from unspool.datasets import Dataset
from unspool.datasets.features import Features, pack, sparse, to_numpy
from unspool.ops.features import SparseFeatures

Array = np.ndarray[Any, Any]


class Kind(Enum):
    """What is done: ``FEATURES``: rows become those of other nodes. ``NOISE``: rows become Gaussian noise. ``EDGES``: edges are added."""

    FEATURES = "features"
    NOISE = "noise"
    EDGES = "edges"


def corrupt(data: Dataset, kind: Kind, share: float, seed: int = 0) -> Dataset:
    """The same data, made worse.

    Args:
        data: what is corrupted; labels and splits stay.
        kind: what is done.
        share: of the nodes or of the edges, from 0 to 1.
        seed: of the choice.

    Example:
        >>> from unspool import datasets
        >>> data = datasets.contextual_sbm(nodes=60, classes=2, seed=0)
        >>> worse = corrupt(data, Kind.FEATURES, 0.5)
        >>> int((worse.features != data.features).any(1).sum())
        30
        >>> more = corrupt(data, Kind.EDGES, 0.5).statistics().edges / data.statistics().edges
        >>> 1.3 < more <= 1.5
        True
    """
    if not 0 <= share <= 1:
        raise ValueError(f"share={share}: expected a number between 0 and 1")
    if share == 0:
        return data
    random = np.random.default_rng([seed, list(Kind).index(kind)])
    note = f"{kind.value} corrupted: {100 * share:g} % (seed {seed})"
    if kind is Kind.EDGES:
        return replace(data, **_more_edges(data, share, random), notes=(*data.notes, note))
    hit = random.permutation(data.nodes)[: round(share * data.nodes)]
    make = _swapped if kind is Kind.FEATURES else _noisy
    return replace(data, features=make(data.features, hit, random), notes=(*data.notes, note))


def _swapped(features: Features, hit: Array, random: np.random.Generator) -> Features:
    """Rows of ``hit`` become those of other nodes, which keep theirs."""
    nodes = int(features.shape[0])
    others = random.integers(nodes - 1, size=nodes)  # drawn for all nodes, so that shares are nested
    rows = np.arange(nodes)
    rows[hit] = (others + (others >= np.arange(nodes)))[hit]
    if isinstance(features, SparseFeatures):
        return sparse(to_numpy(features)[rows]).to(features.device)
    return features[torch.as_tensor(rows, device=features.device)]


def _noisy(features: Features, hit: Array, random: np.random.Generator) -> Features:
    """Rows of ``hit`` become Gaussian noise, as long on average as the rows of X and with as many entries."""
    held = to_numpy(features)
    nodes, width = held.shape
    dense = isinstance(held, np.ndarray)
    entries = width if dense else max(1, round(held.nnz / nodes))
    squares = float((held**2).sum()) if dense else float((held.data**2).sum())
    size = (squares / nodes / entries) ** 0.5
    # Drawn node by node in the order of ``hit``, so that shares are nested.
    noise = random.normal(0, size, (hit.size, entries)).astype(np.float32)
    if dense:
        changed = held.copy()
        changed[hit] = noise
        return pack(changed).to(features.device)
    columns = np.stack([random.choice(width, entries, replace=False) for _ in hit])
    kept = np.ones(nodes, dtype=np.float32)
    kept[hit] = 0
    places = (np.repeat(hit, entries), columns.ravel())
    added: Any = scipy.sparse.csr_array((noise.ravel(), places), shape=held.shape)
    return sparse(scipy.sparse.diags_array(kept) @ held + added).to(features.device)


def _more_edges(data: Dataset, share: float, random: np.random.Generator) -> dict[str, Any]:
    """Pairs of different nodes; a pair that is there already counts among the added ones and changes nothing."""
    many = round(share * data.statistics().edges)
    ends = random.integers(data.nodes, size=(many, 2))  # row by row, so that shares are nested
    ends[:, 1] = np.where(ends[:, 0] == ends[:, 1], (ends[:, 1] + 1) % data.nodes, ends[:, 1])
    new = torch.as_tensor(ends.T.copy(), device=data.edge_index.device)
    both = torch.cat([data.edge_index, new, new.flip(0)], 1)  # an edge runs both ways, whoever reads the list
    changed: dict[str, Any] = {"edge_index": both.unique(dim=1)}
    if data.edge_weight is not None:
        raise ValueError(f"{data.name} has weighted edges; which weight a random edge has is not decided")
    return changed
