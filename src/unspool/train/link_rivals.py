"""The pairs that a held-back link is ranked against."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse

Array = np.ndarray[Any, Any]

#: So many rivals has a link, or all there are.
RIVALS = 500
#: So many links of a test set are ranked at most, drawn by the seed where there are more.
RANKED = 5000


@dataclass(frozen=True, eq=False)
class Rivals:
    """Links with the nodes that compete for one of their ends.

    Attributes:
        kept, found: the ends of each link; the rivals share the first.
        others: nodes that are not linked with ``kept`` anywhere in the whole graph, each once, shape (links, rivals); −1 where there are
            no more.
    """

    kept: Array
    found: Array
    others: Array


def draw_rivals(asked: Array, links: Array, nodes: int, seed: int) -> Rivals:
    """Draw rivals for the links of a test set: one end stays, drawn by the seed, the other is a uniform draw without repeats.

    A link one of whose ends is linked with every node keeps its other end; one both of whose ends are is not ranked.

    Args:
        asked: the links to rank, shape (asked, 2); :data:`RANKED` of them at most are.
        links: all links of the whole graph, each once, shape (links, 2), so that no link passes for a rival.
        nodes: how many nodes there are.
        seed: the same seed draws the same rivals.

    Example:
        >>> rivals = draw_rivals(np.array([[0, 1]]), np.array([[0, 1], [1, 2], [0, 3]]), nodes=5, seed=0)
        >>> sorted({int(rivals.kept[0]), int(rivals.found[0])}), sorted(o for o in rivals.others[0].tolist() if o >= 0)
        ([0, 1], [3, 4])
    """
    rng = np.random.default_rng([seed, 1])  # another stream than that of the pairs for AUC
    asked = asked if len(asked) <= RANKED else asked[rng.permutation(len(asked))[:RANKED]]
    both = np.concatenate([links, links[:, ::-1]])
    near = scipy.sparse.csr_array((np.ones(len(both), np.int8), (both[:, 0], both[:, 1])), shape=(nodes, nodes))
    degree = np.diff(near.indptr)
    end = rng.integers(0, 2, len(asked))
    end = np.where(degree[asked[np.arange(len(asked)), end]] == nodes - 1, 1 - end, end)
    kept, found = asked[np.arange(len(asked)), end], asked[np.arange(len(asked)), 1 - end]
    others = np.full((len(asked), min(RIVALS, nodes)), -1, dtype=np.int64)
    for row, node in enumerate(kept.tolist()):
        taken = near.indices[near.indptr[node] : near.indptr[node + 1]]
        # Neighbours and the node itself are left out of a draw that is larger by as many.
        drawn = rng.choice(nodes, min(nodes, RIVALS + taken.size + 1), replace=False)
        free = drawn[~np.isin(drawn, taken) & (drawn != node)][:RIVALS]
        others[row, : free.size] = free
    ranked = others[:, 0] >= 0
    return Rivals(kept[ranked], found[ranked], others[ranked])
