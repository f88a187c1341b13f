"""Gated sums and powers for the laws of ops, in the interpreter and on a GPU."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from ops.op_laws import seeded
from unspool import Graph
from unspool.ops.gated_sum import gated_sum
from unspool.ops.powers import powers

SHAPES = [(3, 5, 3), (2, 1, 7), (1, 70, 1)]


def sums() -> Iterator[tuple[str, Callable[..., Tensor], list[Tensor], bool]]:
    """Name, op, inputs of one trial, and whether second derivatives are looked at."""
    for shape in SHAPES:
        inputs = [seeded(*shape), seeded(shape[2], seed=1), seeded(1, seed=2)]
        yield f"gated sum {shape}", gated_sum, inputs, shape == SHAPES[0]


def directed(x: Tensor) -> Graph:
    """Six nodes, one of them isolated, one with edges to all others but that one; on the device and in the dtype of x."""
    edges = torch.tensor([[0, 0, 0, 0, 1, 2, 3], [1, 2, 3, 4, 2, 0, 4]])
    return Graph.from_edges(edges, nodes=6, directed=True).to(x.dtype).to(x.device)


def hops() -> Iterator[tuple[str, Callable[..., Tensor], list[Tensor], bool]]:
    """The same for powers of a graph that is not symmetric."""
    for channels, depth in ((3, 2), (1, 3), (16, 1), (7, 0)):
        yield f"powers {channels} {depth}", lambda x, k=depth: powers(directed(x), x, k), [seeded(6, channels)], True


def model_like(x: Tensor, gate: Tensor, shift: Tensor) -> Tensor:
    """What DAGNN computes."""
    return gated_sum(powers(directed(x), x, 2), gate, shift)
