"""What finds links without a network: common neighbours, Adamic–Adar, the inner product of features; all as inner products."""

from __future__ import annotations

from enum import Enum
from typing import Any

import numpy as np
import scipy.sparse

from unspool.datasets.features import Features, to_numpy
from unspool.graph import Graph

Array = np.ndarray[Any, Any]
#: One row per node, dense or sparse; the score of a pair is the inner product of its rows.
Rows = Any

#: So many numbers are held at once.
BLOCK = 1 << 22


class LinkBaseline(Enum):
    r"""A score of pairs that nobody has to train, on the same graph as the network.

    ``COMMON_NEIGHBOURS``: how many neighbours both have. ``ADAMIC_ADAR``: the same, each neighbour w weighed by
    :math:`1/\log d_w`. ``FEATURES``: :math:`x_u^\top x_v`.
    """

    COMMON_NEIGHBOURS = "common neighbours"
    ADAMIC_ADAR = "Adamic–Adar"
    FEATURES = "inner product of features"

    def rows(self, graph: Graph, x: Features) -> Rows:
        """A row per node whose inner products are the scores.

        Example:
            >>> import torch, unspool as us
            >>> rows = LinkBaseline.COMMON_NEIGHBOURS.rows(us.graph.path(3), torch.eye(3))
            >>> inner_products(rows, np.array([0, 0]), np.array([2, 1])).tolist()
            [1.0, 0.0]
        """
        if self is LinkBaseline.FEATURES:
            held = to_numpy(x)
            return held.tocsr().astype(np.float64) if scipy.sparse.issparse(held) else held.astype(np.float64)
        near = neighbours(graph)
        if self is LinkBaseline.COMMON_NEIGHBOURS:
            return near
        degree = np.diff(near.indptr)
        # A node with one neighbour is common to nobody; two of them share its weight.
        weight = np.where(degree > 1, 1 / np.sqrt(np.log(np.maximum(degree, 2))), 0.0)
        return (near @ scipy.sparse.diags_array(weight)).tocsr()


def neighbours(graph: Graph) -> Any:
    """Who is linked with whom: a sparse matrix of ones, without self-loops."""
    matrix = scipy.sparse.coo_array(graph.to("cpu").to_scipy())
    apart = (matrix.row != matrix.col) & (matrix.data != 0)
    ones = np.ones(int(apart.sum()))
    return scipy.sparse.csr_array((ones, (matrix.row[apart], matrix.col[apart])), shape=matrix.shape)


def inner_products(rows: Rows, one: Array, other: Array) -> Array:
    """⟨row of one, row of other⟩ for pairs, a block at a time; NaN where ``other`` is −1.

    Args:
        rows: one per node.
        one: nodes, shape (pairs,).
        other: nodes, shape (pairs,) or (pairs, others), where each of ``one`` meets several.
    """
    if scipy.sparse.issparse(rows):
        return _sparse_products(rows, one, other)
    wide = other.reshape(len(one), -1)
    found = np.empty(wide.shape)
    step = max(1, BLOCK // max(1, wide.shape[1] * rows.shape[1]))
    for first in range(0, len(one), step):
        part = slice(first, first + step)
        found[part] = np.einsum("pc,poc->po", rows[one[part]], rows[wide[part]])
    found[wide < 0] = np.nan
    return found.reshape(other.shape)


def _sparse_products(rows: Any, one: Array, other: Array) -> Array:
    if other.ndim == 1:
        step, parts = 4096, list[Array]()
        for first in range(0, len(one), step):
            part = slice(first, first + step)
            parts.append(np.asarray(rows[one[part]].multiply(rows[other[part]]).sum(axis=1)).reshape(-1))
        return np.concatenate(parts) if parts else np.empty(0)
    found, turned = np.empty(other.shape), rows.T.tocsr()
    step = max(1, BLOCK // rows.shape[0])
    for first in range(0, len(one), step):
        part = slice(first, first + step)
        whole = (rows[one[part]] @ turned).toarray()
        found[part] = np.take_along_axis(whole, np.maximum(other[part], 0), axis=1)
    found[other < 0] = np.nan
    return found
