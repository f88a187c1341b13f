"""Hops with shares of two signals in Triton's interpreter; run by test_hop_blend.py."""

import torch

from ops.blend_cases import cases
from ops.op_laws import interpret, laws, seeded
from unspool import Graph
from unspool.ops.operator import HUB, Operator, hub_pieces


def star() -> float:
    """A node with so many neighbours that its row is cut into pieces; whatever lies in memory of what is not there is not read."""
    from unspool.ops.hop_blend import hop_blend

    leaves = torch.arange(1, HUB + 40)
    graph = Graph.from_edges(torch.stack([torch.zeros_like(leaves), leaves]), directed=False)
    csr = graph.operator.forward
    csr = csr._replace(hubs=hub_pieces(csr.crow))  # which are made on a GPU alone
    assert csr.hubs.shape[0] > 1
    h, x = seeded(2, graph.nodes, 3).float()
    found = hop_blend(Operator(csr, csr, graph.operator.shape), h, x, 0.3, torch.tensor(2.0), -1.0)
    want = 2 * (graph.to(torch.float64) @ h.double()) + 0.3 * h - x
    return float((found - want).abs().max() / want.abs().max())


def main() -> None:
    interpret()
    print("star", star(), flush=True)
    for name, op, inputs, twice in cases():
        for law, gap in laws(op, inputs, twice=twice):
            print(name, law, gap, flush=True)


if __name__ == "__main__":
    main()
