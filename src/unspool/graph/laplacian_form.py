"""How the Laplacian BᵀB comes from A: where there is none, and S with L = ℓ (I − S) where nothing is normalised."""

from __future__ import annotations

import torch
from torch import Tensor

from unspool.graph.edges import Edges
from unspool.graph.normalise import Normalisation
from unspool.ops import Operator


def why_no_laplacian(exact: Operator, undirected: bool, degree: Tensor, how: Normalisation) -> str | None:
    """Why BᵀB = L fails on a graph with this matrix A, or None.

    Args:
        exact: A.
        undirected: whether the weights before normalisation are symmetric.
        degree: their row sums.
        how: the normalisation.
    """
    if not undirected:
        return "this graph is directed, so no Laplacian BᵀB exists and smoothness is not defined; build it without directed=True"
    if how is Normalisation.RANDOM_WALK and not exact.symmetric:
        return "under random-walk normalisation I − A is not symmetric, so it is not BᵀB; use Normalisation.SYMMETRIC (same eigenvalues)"
    bare = torch.nonzero(degree == 0).flatten()
    if how is not Normalisation.NONE and bare.numel():
        return (
            f"node {int(bare[0])} has no edge and no self-loop, so I − A is not BᵀB there; build the graph with loops=1"
        )
    return None


def rescaled(edges: Edges, degree: Tensor) -> tuple[Operator, float]:
    """S and ℓ with D − W = ℓ (I − S) and the spectrum of S in [-1, 1] (Gershgorin: λ ≤ 2 max d)."""
    off = edges.row != edges.col
    plain = torch.zeros_like(degree).index_add_(0, edges.row[off], edges.weight[off])
    scale = float(plain.max()) if float(plain.max()) > 0 else 1.0
    everyone = torch.arange(edges.nodes)
    row, col = torch.cat([edges.row[off], everyone]), torch.cat([edges.col[off], everyone])
    value = torch.cat([edges.weight[off] / scale, 1.0 - plain / scale])
    return Operator.from_entries(row, col, value, (edges.nodes, edges.nodes)), scale
