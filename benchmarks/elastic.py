"""Ten layers of ElasticGNN's propagation, forward and backward, against the same layer in PyG's message passing, in one run.

    python benchmarks/elastic.py --data DIR            # DIR holds ogbn_arxiv_nofeat/ogbn_arxiv_nofeat.npz
    python benchmarks/elastic.py --device cuda

Both sides take the same graph, the same input of 64 channels in float32 and the same steps, and are compared before they are timed.
PyG's side is written as its users write layers: ``MessagePassing`` for A H, gathers and ``scatter`` for the differences across edges
and back. Ours is ``unroll(objective, PrimalDual(step), depth)``, steps stored, and the same with every third state kept.

Memory is the most that one pass has in use beyond graph and input. Everyone runs once before anyone is timed, then all in
turns; each round is printed. Beside seconds on the clock stand those that the processor worked (all threads), which are what counts where others use the machine.

The limit: a layer gathers one row per stored entry of A, two per edge for B H and two per edge for Bᵀ Z, and the way back does the
same; the table prints those bytes over the time, next to the machine's own copy bandwidth in the same run.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import threading
import time
import warnings
from pathlib import Path

import torch
from propagate import load
from torch import Tensor

import unspool as us

warnings.filterwarnings("ignore")
L1, L2 = 0.3, 0.7
PEER = "PyG, message passing"


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


def both_ways(run, x: Tensor) -> tuple[Tensor, Tensor]:
    """What the layers give, and the gradient of its sum."""
    x = x.detach().requires_grad_()
    h = run(x)
    h.sum().backward()
    assert x.grad is not None
    if x.is_cuda:
        torch.cuda.synchronize()
    return h.detach(), x.grad


def seconds(run, x: Tensor) -> tuple[float, float]:
    """Seconds on the clock, and those that the processor worked for us, which busy neighbours change less."""
    begin, worked = time.perf_counter(), time.process_time()
    both_ways(run, x)
    return time.perf_counter() - begin, time.process_time() - worked


class Memory:
    """The most memory that was in use inside a ``with`` block, beyond what was before it, in ``peak``."""

    def __init__(self, device: str) -> None:
        self.cuda, self.peak, self._done = device != "cpu", 0, threading.Event()

    def __enter__(self) -> Memory:
        self._before = self._now()
        if self.cuda:
            torch.cuda.reset_peak_memory_stats()
        else:
            self._watch = threading.Thread(target=self._look, daemon=True)
            self._watch.start()
        return self

    def _now(self) -> int:
        if self.cuda:
            return torch.cuda.memory_allocated()
        return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()

    def _look(self) -> None:
        while not self._done.wait(0.01):
            self.peak = max(self.peak, self._now() - self._before)

    def __exit__(self, *_: object) -> None:
        self._done.set()
        if self.cuda:
            self.peak = torch.cuda.max_memory_allocated() - self._before


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    options.add_argument("--data")
    options.add_argument("--device", default="cpu")
    options.add_argument("--features", type=int, default=64)
    options.add_argument("--depth", type=int, default=10)
    options.add_argument("--rounds", type=int, default=2)
    said = options.parse_args()
    torch.manual_seed(0)
    graph, name = load(said.data, said.device)
    print(
        f"{name}: {graph.nodes:,} nodes, {graph.edges:,} edges, {said.features} channels, {said.depth} layers, "
        f"{said.device}, {torch.get_num_threads()} CPU threads, torch {torch.__version__}",
        flush=True,
    )
    x = torch.randn(graph.nodes, said.features, device=said.device)
    step = 1 / (1 + L2)
    contenders = {
        "unspool, stored": us.unroll(objective(), us.PrimalDual(step=step), said.depth, adjoint=us.Stored()),
        "unspool, checkpointed": us.unroll(
            objective(), us.PrimalDual(step=step), said.depth, adjoint=us.Checkpointed(3)
        ),
    }
    ours = {title: (lambda at, net=net: net(at, graph)) for title, net in contenders.items()}
    runs = {PEER: peer(graph, said.depth), **ours}
    memory = agreed(runs, x, said.device)
    source = torch.empty(2**27, device=said.device)
    copy = 2 * source.numel() * 4 / seconds_of(source.clone, said.device)
    del source
    times: dict[str, list[tuple[float, float]]] = {title: [] for title in runs}
    for k in range(said.rounds):  # in turns, so that a busy neighbour slows everyone alike
        for title, run in runs.items():
            times[title].append(seconds(run, x))
        told = ", ".join(f"{title} {found[-1][0]:.2f} s ({found[-1][1]:.2f} worked)" for title, found in times.items())
        print(f"round {k + 1}: {told}", flush=True)
    rows = graph.operator.forward.col.numel() + 4 * us.graph.edge_list(graph).shape[1]
    gathered = 2 * said.depth * rows * said.features * 4
    print(
        f"\n{'medians':24} {'seconds':>8} {'faster':>7} {'worked':>8} {'less':>7} {'memory, GB':>11} {'gathered, GB/s':>15}"
    )
    for title, found in times.items():
        taken, worked = (statistics.median(each) for each in zip(*found, strict=True))
        faster, less = (
            statistics.median(theirs[k] / own[k] for theirs, own in zip(times[PEER], found, strict=True))
            for k in (0, 1)
        )
        print(
            f"{title:24} {taken:8.2f} {faster:6.1f}x {worked:8.2f} {less:6.1f}x "
            f"{memory[title] / 1e9:11.1f} {gathered / taken / 1e9:15.1f}"
        )
    print(f"copy bandwidth {copy / 1e9:.1f} GB/s")


def agreed(runs: dict, x: Tensor, device: str) -> dict[str, int]:
    """Run everyone once, refuse those that compute something else, and give the memory that each took."""
    memory, first = {}, None
    for title, run in runs.items():
        begin, worked = time.perf_counter(), time.process_time()
        with Memory(device) as used:
            found = both_ways(run, x)
        memory[title], first = used.peak, found if first is None else first
        off = max(float((a - b).norm() / b.norm()) for a, b in zip(found, first, strict=True))
        assert off < 1e-4, f"the contenders disagree by {off:.1e}"
        took = (
            f"{time.perf_counter() - begin:.2f} s ({time.process_time() - worked:.2f} worked), {used.peak / 1e9:.1f} GB"
        )
        print(f"{title}: first pass {took}, off by {off:.0e}", flush=True)
    return memory


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
