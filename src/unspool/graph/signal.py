"""Checking signals before anything is computed with them."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from unspool.graph.graph import Graph
from unspool.ops.spmm import check_signal


def check_input(x: Any, graph: Any) -> None:
    """Refuse signals that do not fit the graph or hold numbers that are not finite."""
    if not isinstance(graph, Graph):
        raise TypeError(
            f"the second argument is {type(graph).__module__}.{type(graph).__name__}, not an unspool Graph; "
            "make one with Graph.from_edges(edge_index, nodes=...), from_pyg, from_scipy or from_networkx"
        )
    if not isinstance(x, Tensor):
        raise TypeError(f"x is {type(x).__name__}, not a tensor; use torch.as_tensor(x, dtype={graph.dtype})")
    if x.layout is not torch.strided:
        raise TypeError("x is a sparse tensor: signals are dense here; call x.to_dense()")
    check_signal(graph.operator, x)
    if x.ndim < 2:
        raise ValueError(
            f"x has shape {tuple(x.shape)}: expected (nodes, features); use x[:, None] for a single signal"
        )
    if x.device.type == "cpu" and not torch.compiler.is_compiling():
        _check_finite(x)


def _check_finite(x: Tensor) -> None:
    try:
        fine = bool(torch.isfinite(x.detach().sum())) or bool(torch.isfinite(x).all())
    except RuntimeError:  # stacked trials cannot be looked into
        return
    if not fine:
        flat = x.reshape(-1, x.shape[-1])
        node, channel = torch.nonzero(~torch.isfinite(flat))[0].tolist()
        raise ValueError(
            f"x is {float(flat[node, channel])} at node {node % x.shape[-2]}, feature {channel}: signals must be finite; fill or drop it"
        )
