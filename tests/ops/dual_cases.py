"""Dual steps for the laws of ops, on the CPU, in the interpreter and on a GPU."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from torch import Tensor

import unspool as us
from ops.op_laws import seeded
from unspool.ops import dual_step
from unspool.ops.dual_step import Cut


def graph_of(nodes: int, seed: int = 0) -> us.Graph:
    """A graph with weights, a hub and a node without edges."""
    generator = torch.Generator().manual_seed(seed)
    ends = torch.randint(0, nodes - 1, (2, 3 * nodes), generator=generator)
    ends = torch.cat([ends, torch.stack([torch.zeros(nodes - 1, dtype=torch.int64), torch.arange(nodes - 1)])], 1)
    ends = ends[:, ends[0] != ends[1]]
    key = torch.unique(ends.amin(0) * nodes + ends.amax(0))
    ends = torch.stack([key // nodes, key % nodes])
    weights = 0.5 + torch.rand(ends.shape[1], generator=generator, dtype=torch.float64)
    return us.Graph.from_edges(ends, nodes, weights, directed=False).to(torch.float64)


def op_of(graph: us.Graph, cut: Cut, plain: bool = False) -> Callable[..., Tensor]:
    """Both results side by side, so that gradients come from both."""
    made = {dtype: graph.to(dtype).incidence() for dtype in (torch.float32, torch.float64)}
    run = dual_step.formula if plain else dual_step.dual_step

    def op(z: Tensor, ahead: Tensor, size: Tensor, radius: Tensor) -> Tensor:
        incidence = made[z.dtype].to(z.device)
        return torch.cat(run(incidence, z, ahead, size, radius, cut), -2)

    return op


def cases() -> Iterator[tuple[str, us.Graph, Cut, list[Tensor]]]:
    """Name, graph, cut, and the inputs of one trial."""
    numbers = [torch.tensor(n, dtype=torch.float64) for n in (0.7, 0.9)]
    for nodes, channels in ((6, 3), (5, 1), (9, 40)):
        graph = graph_of(nodes)
        z, ahead = seeded(graph.edges, channels), seeded(nodes, channels, seed=6)
        for cut in Cut:
            yield f"{cut.name.lower()} {nodes} {channels}", graph, cut, [z, ahead, *numbers]
