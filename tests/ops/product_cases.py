"""Products with small matrices, with and without a hop, for the laws of ops, in the interpreter and on a GPU."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from torch import Tensor

import unspool as us
from ops.op_laws import seeded
from unspool.ops.dropout import Mask, key
from unspool.ops.mapped_hop import mapped_hop
from unspool.ops.some_rows import propagate_rows
from unspool.ops.stacked_product import stacked_product

Case = tuple[str, Callable[..., Tensor], list[Tensor], bool]


def drop(like: Tensor) -> Mask:
    return Mask.of(0.4, key(0, 1, 2, like.device), 3)


def products(large: bool = False) -> Iterator[Case]:
    """Name, op, inputs of one trial, and whether second derivatives are looked at."""
    shapes = [(5, 3, 7), (1, 1, 1), (70, 16, 5)] + ([(3000, 64, 64), (900, 100, 128)] if large else [])
    for nodes, inside, outside in shapes:
        inputs = [seeded(nodes, inside), seeded(inside, outside, seed=5) / inside**0.5]
        small = nodes < 100
        yield f"product {nodes, inside, outside}", stacked_product, inputs, small
        yield f"relu {nodes, inside, outside}", lambda x, w: stacked_product(x, w, True), inputs, small
        thin = lambda x, w: stacked_product(x, w, True, drop(x))  # noqa: E731
        yield f"relu, dropout {nodes, inside, outside}", thin, inputs, small
    yield "dropout", lambda x, w: stacked_product(x, w, False, drop(x)), [seeded(5, 3), seeded(3, 4, seed=5)], True


def directed(nodes: int, device: str = "cpu") -> us.Graph:
    """A directed graph with a long row and a node that nothing reaches."""
    generator = torch.Generator().manual_seed(0)
    index = torch.randint(0, nodes - 1, (2, 3 * nodes), generator=generator)
    star = torch.stack([torch.arange(nodes - 1), torch.zeros(nodes - 1, dtype=torch.int64)])
    return us.Graph.from_edges(torch.unique(torch.cat([index, star], 1), dim=1), nodes=nodes, directed=True).to(device)


def layers(graph: us.Graph, count: int, thin: bool, own: bool) -> Callable[..., Tensor]:
    exact = graph.to(torch.float64)

    def run(h: Tensor, base: Tensor, weight: Tensor) -> Tensor:
        a = graph if h.dtype == torch.float32 else exact
        hop, give = 0.7, 0.3
        if own:  # numbers that differ from trial to trial
            give = 0.3 + 0.1 * torch.tanh(weight.detach().sum())
            hop = 1 - give
        for _ in range(count):
            h, base = mapped_hop(a, h, base, weight, hop, give, True, drop(h) if thin else None)
        return h

    return run


def hops(large: bool = False, device: str = "cpu") -> Iterator[Case]:
    for nodes, inside, outside in [(10, 3, 7), (80, 16, 16)] + ([(3000, 64, 64)] if large else []):
        graph = directed(nodes, device)
        inputs = [seeded(nodes, inside), seeded(nodes, inside, seed=3), seeded(inside, outside, seed=5) / inside**0.5]
        for thin, own in ((False, False), (True, False), (True, True)):
            count = 2 if inside == outside else 1
            once = nodes < 20 and not own
            yield f"layers {nodes, inside, outside}, {thin}, {own}", layers(graph, count, thin, own), inputs, once
    graph = directed(6, device)

    def plain(h: Tensor, base: Tensor, weight: Tensor) -> Tensor:
        return mapped_hop(graph if h.dtype == torch.float32 else graph.to(torch.float64), h, base, weight, 1.0, 0.5)[0]

    yield "no relu", plain, [seeded(6, 3), seeded(6, 3, seed=3), seeded(3, 4, seed=5)], True


def rows(large: bool = False, device: str = "cpu") -> Iterator[Case]:
    """Polynomials at some nodes."""
    for nodes, inside, outside, hops in [(10, 3, 7, 3), (6, 16, 5, 1)] + ([(3000, 64, 64, 6)] if large else []):
        graph = directed(nodes, device)
        where = torch.randperm(nodes, generator=torch.Generator().manual_seed(1))[: nodes // 2].to(device)

        def op(x: Tensor, c: Tensor, graph: us.Graph = graph, where: Tensor = where) -> Tensor:
            return propagate_rows(graph if x.dtype == torch.float32 else graph.to(torch.float64), x, c, where)

        inputs = [seeded(nodes, inside), seeded(hops, inside, outside, seed=5) / inside**0.5]
        yield f"rows {nodes, inside, outside, hops}", op, inputs, nodes < 20
