"""Data made worse on purpose: rows of features replaced, edges added between random nodes.

A share of 0.3 means 30 per cent of the nodes, or as many new edges as 30 per cent of those that are there. The same seed
makes the same corruption, and a larger share corrupts the nodes of a smaller one too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse
import torch

from unspool.datasets import Dataset
from unspool.datasets.features import Features, as_features, sparse, take_rows, to_numpy
from unspool.errors import InputError
from unspool.reproduce.conditions import CLEAN, Condition, Factor, Phase

Array = np.ndarray[Any, Any]


#: What can be done: rows of features become those of other nodes, or Gaussian noise, or edges are added. The order is part of the seeds.
CORRUPTIONS = (Factor.FEATURES, Factor.NOISE, Factor.EDGES)


def corrupt(data: Dataset, factor: Factor, share: float, seed: int = 0) -> Dataset:
    """The same data, made worse.

    Args:
        data: what is corrupted; labels and splits stay.
        factor: what is done, one of :data:`CORRUPTIONS`.
        share: of the nodes or of the edges, from 0 to 1.
        seed: of the choice.

    Example:
        >>> from unspool import datasets
        >>> data = datasets.contextual_sbm(nodes=60, classes=2, seed=0)
        >>> worse = corrupt(data, Factor.FEATURES, 0.5)
        >>> int((worse.features != data.features).any(1).sum())
        30
        >>> more = corrupt(data, Factor.EDGES, 0.5).statistics().edges / data.statistics().edges
        >>> 1.3 < more <= 1.5
        True
    """
    if not 0 <= share <= 1:
        raise InputError("share", share, "a number between 0 and 1")
    if share == 0:
        return data
    random = np.random.default_rng([seed, CORRUPTIONS.index(factor)])
    note = f"{factor.value} corrupted: {100 * share:g} % (seed {seed})"
    if factor is Factor.EDGES:
        return replace(data, **_more_edges(data, share, random), notes=(*data.notes, note))
    hit = random.permutation(data.nodes)[: round(share * data.nodes)]
    make = _swapped if factor is Factor.FEATURES else _noisy
    return replace(data, features=make(data.features, hit, random), notes=(*data.notes, note))


def corruptions(how: Mapping[str, Any], phase: Phase) -> list[Condition]:
    """Every kind with every share, as a data file lists them; clean data once, and after training in each kind, with the same networks.

    Example:
        >>> how = {"kinds": ["features", "edges"], "shares": [0, 10]}
        >>> [str(one) for one in corruptions(how, Phase.ALWAYS)]
        ['clean data', 'features 10 %', 'edges 10 %']
        >>> [str(one) for one in corruptions(how, Phase.AFTER_TRAINING)]
        ['features 0 %', 'features 10 %', 'edges 0 %', 'edges 10 %']
    """
    kinds, worse = [Factor[word.upper()] for word in how["kinds"]], sorted(set(how["shares"]) - {0})
    if phase is Phase.ALWAYS:
        made = [Condition(factor, float(share)) for factor in kinds for share in worse]
        return [CLEAN, *made] if 0 in how["shares"] else made
    return [Condition(factor, float(share), phase) for factor in kinds for share in (0, *worse)]


def _swapped(features: Features, hit: Array, random: np.random.Generator) -> Features:
    """Rows of ``hit`` become those of other nodes, which keep theirs."""
    nodes = int(features.shape[0])
    others = random.integers(nodes - 1, size=nodes)  # drawn for all nodes, so that shares are nested
    rows = np.arange(nodes)
    rows[hit] = (others + (others >= np.arange(nodes)))[hit]
    return take_rows(features, rows)


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
        return as_features(changed).to(features.device)
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
