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
    if (place := _not_finite(x)) is not None:
        raise ValueError(f"x is {place}: signals must be finite; fill or drop it")


def check_output(h: Tensor, depth: int | None) -> Tensor:
    """Refuse a signal that grew beyond all numbers in so many layers, or as a minimiser; the signal itself where it did not."""
    if (place := _not_finite(h)) is not None:
        if depth is None:
            name = str(h.dtype).removeprefix("torch.")
            raise ValueError(
                f"the minimiser is {place}: {name} cannot hold it; scale X or the weights, or compute in float64"
            )
        raise ValueError(
            f"the signal is {place} after {depth} layer{'s'[: depth > 1]}: the layers make it grow without end; take a smaller "
            "step (gradient steps settle below 2/L), or check what was learnt"
        )
    return h


def _not_finite(x: Tensor) -> str | None:
    """Where a number is not finite, in words; looked for on the CPU, outside of compiled code and of stacked trials."""
    if x.device.type != "cpu" or torch.compiler.is_compiling():
        return None
    try:
        if bool(torch.isfinite(x.detach().sum())) or bool(torch.isfinite(x).all()):
            return None
    except RuntimeError:  # stacked trials cannot be looked into
        return None
    flat = x.detach().reshape(-1, x.shape[-1])
    node, channel = torch.nonzero(~torch.isfinite(flat))[0].tolist()
    return f"{float(flat[node, channel])} at node {node % x.shape[-2]}, feature {channel}"
