"""Predictions for new nodes: their neighbourhood alone beside the whole enlarged graph.

    python benchmarks/new_nodes.py [--nodes 300000] [--degree 6] [--new 10] [--depth 2 3]

A random graph on a circle, most of whose edges are short (so neighbourhoods grow slowly) and some of which join any two nodes; ten new nodes with three edges each. For every
depth of SGC and of GCN, in double precision: how many nodes are read, the largest difference between the two answers, and CPU seconds of each.
"""

from __future__ import annotations

import argparse
import time

import torch

import unspool as us
from unspool import deploy


def edges_of(nodes: int, degree: int, chance: torch.Generator) -> torch.Tensor:
    """Half as many edges a node as its degree, one in ten of them to anywhere."""
    source = torch.arange(nodes).repeat(degree // 2)
    near = (source + torch.randint(1, 50, source.shape, generator=chance)) % nodes
    far = torch.randint(0, nodes, source.shape, generator=chance)
    return torch.stack([source, torch.where(torch.rand(source.shape, generator=chance) < 0.1, far, near)]).unique(dim=1)


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--nodes", type=int, default=300_000)
    asked.add_argument("--degree", type=int, default=6)
    asked.add_argument("--new", type=int, default=10)
    asked.add_argument("--depth", type=int, nargs="+", default=[2, 3])
    given = asked.parse_args()
    torch.set_num_threads(1)
    chance, n, k = torch.Generator().manual_seed(0), given.nodes, given.new
    graph = us.Graph.from_edges(edges_of(n, given.degree, chance), n, directed=False).to(torch.float64)
    x = torch.randn(n + k, 32, generator=chance, dtype=torch.float64)
    edges = torch.stack([torch.arange(n, n + k).repeat(3), torch.randint(0, n, (3 * k,), generator=chance)])
    print("| | nodes read | of | difference | CPU s | whole, CPU s |\n|---|---|---|---|---|---|")
    for kind in (us.models.SGC, us.models.GCN):
        for depth in given.depth:
            model = kind(32, 8, depth=depth).double().eval()
            began = time.process_time()
            found = deploy.predict_new_nodes(model, x[:n], graph, x[n:], edges)
            middle = time.process_time()
            with torch.no_grad():
                whole = model(x, us.graph.enlarged(graph, k, edges))[n:]
            ended = time.process_time()
            apart = float((found.output - whole).abs().max())
            print(
                f"| {kind.__name__}, {depth} layers | {found.nodes_read} | {n + k} | {apart:.0e} | {middle - began:.3f} | {ended - middle:.2f} |"
            )


if __name__ == "__main__":
    main()
