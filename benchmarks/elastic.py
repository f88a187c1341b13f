"""Ten layers of ElasticGNN's propagation, forward and backward, against the same layer in PyG's message passing, in one run.

    python benchmarks/elastic.py --data DIR            # DIR holds ogbn_arxiv_nofeat/ogbn_arxiv_nofeat.npz
    python benchmarks/elastic.py --device cuda

Both sides take the same graph, the same input of 64 channels in float32 and the same steps, and are compared before they are timed.
PyG's side is written as its users write layers: ``MessagePassing`` for A H, gathers and ``scatter`` for the differences across edges
and back. Ours is ``unroll(objective, PrimalDual(step), depth)``, steps stored, and the same checkpointed.

The limit: a layer gathers one row per stored entry of A, two per edge for B H and two per edge for Bᵀ Z, and the way back does the
same; the table prints those bytes over the time, next to the machine's own copy bandwidth in the same run.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import time
import warnings

import torch
from propagate import load
from torch import Tensor

import unspool as us

warnings.filterwarnings("ignore")
L1, L2 = 0.3, 0.7


def objective() -> us.Objective:
    """½‖H−X‖² + (λ₂/2)‖BH‖² + λ₁‖BH‖₂,₁."""
    return us.Fidelity(0.5) + us.Smoothness(L2 / 2) + us.EdgeSparse(L1)


def peer(graph: us.Graph, depth: int):
    """The same layers in PyG's message passing."""
    from torch_geometric.nn import MessagePassing
    from torch_geometric.utils import scatter

    class Hop(MessagePassing):
        def forward(self, h: Tensor, edge_index: Tensor, weight: Tensor) -> Tensor:
            return self.propagate(edge_index, x=h, weight=weight)

        def message(self, x_j: Tensor, weight: Tensor) -> Tensor:
            return weight[:, None] * x_j

    entries = graph.operator
    edge_index, weight = torch.stack([entries.forward.col.long(), entries.rows()]), entries.forward.val
    i, j = us.graph.edge_list(graph)
    b = graph.incidence()
    order = torch.argsort(b.rows(), stable=True)
    columns, values = b.forward.col.long()[order].view(-1, 2), b.forward.val[order].view(-1, 2)
    first = columns[:, 0] == i
    left = torch.where(first, values[:, 0], values[:, 1])[:, None]
    right = torch.where(first, values[:, 1], values[:, 0])[:, None]
    gamma = 1 / (1 + L2)
    beta, hop = 1 / (2 * gamma), Hop(aggr="add")

    def back(z: Tensor) -> Tensor:
        return scatter(left * z, i, dim=0, dim_size=graph.nodes) + scatter(right * z, j, dim=0, dim_size=graph.nodes)

    def run(x: Tensor) -> Tensor:
        h, z = x, x.new_zeros(i.numel(), x.shape[1])
        for _ in range(depth):
            y = gamma * x + (1 - gamma) * hop(h, edge_index, weight)
            ahead = y - gamma * back(z)
            z = z + beta * (left * ahead[i] + right * ahead[j])
            z = z * (L1 / z.norm(dim=1, keepdim=True).clamp(min=1e-12)).clamp(max=1)
            h = y - gamma * back(z)
        return h

    return run


def both_ways(run, x: Tensor) -> Tensor:
    x = x.detach().requires_grad_()
    run(x).sum().backward()
    assert x.grad is not None
    if x.is_cuda:
        torch.cuda.synchronize()
    return x.grad


def seconds(run, x: Tensor, rounds: int) -> float:
    times = []
    for _ in range(rounds):
        begin = time.perf_counter()
        both_ways(run, x)
        times.append(time.perf_counter() - begin)
    return statistics.median(times)


def kept_bytes(run, x: Tensor) -> int:
    """Bytes that autograd keeps for the way back, each storage once."""
    kept: dict[int, int] = {}

    def pack(t: Tensor) -> Tensor:
        kept[t.untyped_storage().data_ptr()] = t.untyped_storage().nbytes()
        return t

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
        run(x.detach().requires_grad_())
    return sum(kept.values())


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    options.add_argument("--data")
    options.add_argument("--device", default="cpu")
    options.add_argument("--features", type=int, default=64)
    options.add_argument("--depth", type=int, default=10)
    options.add_argument("--rounds", type=int, default=3)
    said = options.parse_args()
    torch.manual_seed(0)
    graph, name = load(said.data, said.device)
    x = torch.randn(graph.nodes, said.features, device=said.device)
    step = 1 / (1 + L2)
    contenders = {
        "unspool, stored": us.unroll(objective(), us.PrimalDual(step=step), said.depth, adjoint=us.Stored()),
        "unspool, checkpointed": us.unroll(
            objective(), us.PrimalDual(step=step), said.depth, adjoint=us.Checkpointed(1)
        ),
    }
    ours = {title: (lambda at, net=net: net(at, graph)) for title, net in contenders.items()}
    runs = {**ours, "PyG, message passing": peer(graph, said.depth)}
    outputs, slopes = zip(*((run(x).detach(), both_ways(run, x)) for run in runs.values()), strict=True)
    for other, slope in zip(outputs[1:], slopes[1:], strict=True):
        off = max(float((a - b).norm() / b.norm()) for a, b in ((other, outputs[0]), (slope, slopes[0])))
        assert off < 1e-4, f"the contenders disagree by {off:.1e}"
    print(
        f"{name}: {graph.nodes:,} nodes, {graph.edges:,} edges, {said.features} channels, {said.depth} layers, {said.device}"
    )
    source = torch.empty(2**27, device=said.device)
    copy = 2 * source.numel() * 4 / seconds_of(source.clone, said.device)
    rows = graph.operator.forward.col.numel() + 4 * us.graph.edge_list(graph).shape[1]
    gathered = 2 * said.depth * rows * said.features * 4
    times = {title: seconds(run, x, said.rounds) for title, run in runs.items()}
    base = times["PyG, message passing"]
    for title, run in runs.items():
        kept = kept_bytes(run, x) / 1e9
        print(
            f"{title:24} {times[title]:8.2f} s  {base / times[title]:5.1f} times  kept {kept:5.1f} GB  gathered {gathered / times[title] / 1e9:5.1f} GB/s"
        )
    print(
        f"copy bandwidth {copy / 1e9:.1f} GB/s; largest memory of the process {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6:.1f} GB"
    )


def seconds_of(work, device: str) -> float:
    times = []
    for _ in range(5):
        begin = time.perf_counter()
        work()
        if device != "cpu":
            torch.cuda.synchronize()
        times.append(time.perf_counter() - begin)
    return min(times)


if __name__ == "__main__":
    main()
