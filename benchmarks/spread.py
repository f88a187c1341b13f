"""One graph on 1, 2 and 4 processes: what differs, what is sent beside what the formulas say, and how long an epoch takes.

    python benchmarks/spread.py                       # a random graph with hubs, 20,000 nodes
    python benchmarks/spread.py --nodes 169000 --edges 1166000 --width 64 --depth 10

Starts its processes itself, on this machine, with gloo; ``--device cuda`` runs one process with NCCL, as there is one GPU. Losses are those of
GPRGNN with dropout. Time says little where processes share cores: the cores that each may use are printed.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import socket
import sys
import time
from datetime import timedelta
from typing import Any

import torch
from torch import distributed, multiprocessing

import unspool as us
from unspool import datasets, train
from unspool.ops import propagate


def power_law(nodes: int, edges: int) -> us.Graph:
    chance = torch.Generator().manual_seed(0)
    hubs = (nodes * torch.rand(edges, generator=chance) ** 2).long()
    others = torch.randint(0, nodes, (edges,), generator=chance)
    order = torch.randperm(nodes, generator=chance)
    index = torch.stack([order[hubs], order[others]])[:, hubs != others]
    return us.Graph.from_edges(index.unique(dim=1), nodes, directed=False)


def layouts() -> dict[str, Any]:
    found: dict[str, Any] = {"columns": us.graph.Columns(), "rows": us.graph.Rows()}
    if importlib.util.find_spec("pymetis") is not None:
        found["metis"] = us.graph.Rows(us.graph.metis)
    return found


def formula(graph: us.Graph, name: str, spread: Any, asked: argparse.Namespace) -> int:
    """Bytes of one propagation, forward and backward, of all processes together."""
    size, width = spread.ranks.size, asked.width
    if name == "columns":  # rows to columns and back, X and its gradient
        cut = sum((n * (width - w)) for n, w in zip(spread.owners, _shares(width, size), strict=True))
        back = sum((graph.nodes - n) * w for n, w in zip(spread.owners, _shares(width, size), strict=True))
        return 4 * 2 * (cut + back)
    halo = torch.tensor(sum(spread.operator.halo.taken), dtype=torch.float64, device=spread.ranks.device)
    return int(spread.ranks.add(halo)) * width * asked.depth * 2 * 4


def _shares(count: int, parts: int) -> list[int]:
    return [(count + parts - 1 - i) // parts for i in range(parts)]


def propagated(graph: Any, x: torch.Tensor, asked: argparse.Namespace) -> tuple[torch.Tensor, torch.Tensor, float]:
    own = x.clone().requires_grad_()
    hops = torch.full((asked.depth + 1,), 1 / (asked.depth + 1), device=x.device)
    began = time.perf_counter()
    y = propagate(graph, own, hops)
    y.backward(torch.ones_like(y))
    if x.is_cuda:
        torch.cuda.synchronize()
    assert own.grad is not None
    return y.detach(), own.grad, time.perf_counter() - began


def data_of(graph: us.Graph, asked: argparse.Namespace) -> datasets.Dataset:
    chance = torch.Generator().manual_seed(1)
    labels = torch.randint(0, 8, (graph.nodes,), generator=chance)
    x = torch.randn(graph.nodes, 32, generator=chance) + torch.nn.functional.one_hot(labels, 32)
    row, col = graph.operator.rows(), graph.operator.forward.col.long()
    index = torch.stack([col, row])[:, row != col]
    split = datasets.splits.random(labels, seed=0)
    return datasets.from_tensors(index, x, labels=labels).with_split(split)


def work(rank: int, size: int, port: int, asked: argparse.Namespace, told: Any) -> None:
    torch.set_num_threads(1)
    cuda = asked.device == "cuda"
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), RANK=str(rank), WORLD_SIZE=str(size))
    distributed.init_process_group("nccl" if cuda else "gloo", timeout=timedelta(seconds=600))
    graph = power_law(asked.nodes, asked.edges)
    x = torch.randn(graph.nodes, asked.width, generator=torch.Generator().manual_seed(2))
    task = train.Task.of(data_of(graph, asked))
    graph, x, task = graph.to(asked.device), x.to(asked.device), task.to(asked.device)
    propagated(graph, x, asked)
    y, dx, alone = propagated(graph, x, asked)
    for name, layout in layouts().items():
        spread = us.graph.spread(graph, layout)
        own = spread.take(x)
        propagated(spread, own, asked)
        before = spread.ranks.sent
        mine_y, mine_dx, seconds = propagated(spread, own, asked)
        sent = torch.tensor(float(spread.ranks.sent - before), dtype=torch.float64, device=spread.ranks.device)
        sent = int(spread.ranks.add(sent))
        gaps = [float((spread.gather(a) - b).abs().max() / b.abs().max()) for a, b in ((mine_y, y), (mine_dx, dx))]
        torch.manual_seed(0)
        model = us.models.GPRGNN(task.x.shape[1], 8, depth=asked.depth, hidden=asked.width).to(asked.device)
        began = time.perf_counter()
        run = train.fit(model, task, train.TrainConfig(epochs=asked.epochs, lr=0.01), spread=layout)
        each = (time.perf_counter() - began) / asked.epochs
        losses = [(epoch.train_loss, epoch.valid_loss) for epoch in run.history]
        expected = formula(graph, name, spread, asked)
        if rank == 0:
            told.put((size, name, gaps, sent, expected, alone, seconds, each, losses))
    distributed.destroy_process_group()


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def alone_losses(asked: argparse.Namespace) -> tuple[list[tuple[float, float]], float]:
    task = train.Task.of(data_of(power_law(asked.nodes, asked.edges), asked)).to(asked.device)
    torch.manual_seed(0)
    model = us.models.GPRGNN(task.x.shape[1], 8, depth=asked.depth, hidden=asked.width).to(asked.device)
    began = time.perf_counter()
    run = train.fit(model, task, train.TrainConfig(epochs=asked.epochs, lr=0.01))
    each = (time.perf_counter() - began) / asked.epochs
    return [(epoch.train_loss, epoch.valid_loss) for epoch in run.history], each


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--nodes", type=int, default=20_000)
    parser.add_argument("--edges", type=int, default=150_000)
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--depth", type=int, default=10)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--ranks", type=int, nargs="+", default=None)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    graph = power_law(asked.nodes, asked.edges)
    place = (
        torch.cuda.get_device_name()
        if asked.device == "cuda"
        else f"{len(os.sched_getaffinity(0))} cores, one thread a process"
    )
    print(f"{sys.platform}, torch {torch.__version__}, {place}; {graph}, {asked.width} channels, K = {asked.depth}")
    known, each = alone_losses(asked)
    print(f"one process, not spread: {each:.3f} s an epoch of GPRGNN")
    print(
        "ranks  cut      forward    dX         losses     MB sent (propagation)  formula  propagation s (alone)  epoch s"
    )
    sizes = asked.ranks or ([1] if asked.device == "cuda" else [1, 2, 4])
    for size in sizes:
        told = multiprocessing.get_context("spawn").SimpleQueue()
        multiprocessing.spawn(work, (size, free_port(), asked, told), nprocs=size)
        while not told.empty():
            ranks, name, gaps, sent, expected, alone, seconds, epoch, losses = told.get()
            gap = max(
                abs(a - b) for one, other in zip(losses, known, strict=True) for a, b in zip(one, other, strict=True)
            )
            print(
                f"{ranks:5d}  {name:8s} {gaps[0]:.1e}    {gaps[1]:.1e}    {gap:.1e}    {sent / 1e6:21.2f}  {expected / 1e6:7.2f}  "
                f"{seconds:13.3f} ({alone:.3f})  {epoch:7.3f}"
            )  # fmt: skip


if __name__ == "__main__":
    main()
