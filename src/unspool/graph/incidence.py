"""The incidence matrix B and the Laplacian L = BᵀB."""

from __future__ import annotations

import torch
from torch import Tensor

from unspool.graph.graph import Graph
from unspool.graph.normalise import Normalisation
from unspool.ops import Operator


def edge_list(graph: Graph) -> Tensor:
    """The undirected edges (i, j) with i < j, shape (2, edges), in the order of the rows of B.

    Example:
        >>> import unspool as us
        >>> us.graph.edge_list(us.graph.path(3))
        tensor([[0, 1],
                [1, 2]])
    """
    graph.require_incidence()
    row, col = graph.operator.rows(), graph.operator.forward.col.long()
    upper = row < col
    return torch.stack([row[upper], col[upper]])


def incidence(graph: Graph) -> Operator:
    r"""B with one row :math:`\sqrt{w_{ij}}\,(e_i/\sqrt{d_i} - e_j/\sqrt{d_j})` per edge (without normalisation, d = 1)."""
    i, j = edge_list(graph)
    row, col = graph.operator.rows(), graph.operator.forward.col.long()
    exact = graph.to(torch.float64).operator.forward.val[row < col]
    edge = torch.arange(i.numel(), device=i.device)
    if graph.normalisation is Normalisation.NONE:
        left = right = exact.sqrt()
    else:
        # A_ij = w / sqrt(d_i d_j), so w / d_i = A_ij sqrt(d_j / d_i).
        ratio = (graph.degree.to(j.device)[j] / graph.degree.to(i.device)[i]).sqrt()
        left, right = (exact * ratio).sqrt(), (exact / ratio).sqrt()
    values = torch.cat([left, -right]).to(graph.dtype)
    return Operator.from_entries(torch.cat([edge, edge]), torch.cat([i, j]), values, (i.numel(), graph.nodes))


def laplacian(graph: Graph) -> Operator:
    """L = scale · (I − S) as a sparse matrix."""
    smoother = graph.require_laplacian()
    row, col = smoother.rows(), smoother.forward.col.long()
    diagonal = torch.arange(graph.nodes, device=graph.device)
    value = torch.cat([-graph.scale * smoother.forward.val, smoother.forward.val.new_full((graph.nodes,), graph.scale)])
    key = torch.cat([row * graph.nodes + col, diagonal * (graph.nodes + 1)])
    unique, place = torch.unique(key, return_inverse=True)
    total = torch.zeros(unique.numel(), dtype=value.dtype, device=value.device).index_add_(0, place, value)
    return Operator.from_entries(unique // graph.nodes, unique % graph.nodes, total, (graph.nodes, graph.nodes))
