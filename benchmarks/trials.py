"""Time of one epoch of one trial when many train at once, against the plain PyG loop in the same run.

    python benchmarks/trials.py --data DIR [--datasets cora ...] [--models UGDGNN ...] [--device cuda] [--trials 400]
                                [--epochs 100] [--kernels] [--json FILE]

DIR is a folder with the field's sets (``Planetoid/``, ``Coauthor/``, ``Amazon/``), as ``unspool.datasets.load`` finds them. Hidden width
64, dropout 0.5, ten hops (GCN and SGC two, GCNII twenty layers), Adam; validation loss, validation accuracy and test accuracy after
every epoch on both sides.

*PyG loop*: what its users write. Dense row-normalised features, ``F.dropout``, layers with ``cached=True`` or weights normalised
beforehand, torch's Adam, one model at a time.

*Ours*, GPU: a `KernelBatch` of ``--trials`` trials with different seeds, as ``unspool.study.run`` trains them; the time of a call of
``run_epochs`` that includes fetching all numbers, after one that compiled and captured. CPU: one process per core, each with a stack of
``--trials`` trials and one thread; all of them at work at once.

``--kernels`` adds, for each kernel, its time, the bytes that must move through memory (each input read once, each output written
once) as a share of the copy bandwidth measured in the same run, and the rate at which it gathers rows, which mostly come from
the cache. The limit aimed at is the time of those bytes.
"""

from __future__ import annotations

import argparse
import functools
import json
import multiprocessing
import os
import statistics
import time
from pathlib import Path

import torch
from torch.nn import functional

from models import _machine
from unspool import models, train
from unspool.study.batch.kernel import KernelBatch

NAMES = ("UGDGNN", "APPNP", "GPRGNN", "JKNet", "DAGNN", "GCN", "SGC", "GCNII", "AirGNN", "PPNP")
SETS = ("cora", "citeseer", "pubmed", "photo", "cs", "physics")
DEPTH = {"GCN": 2, "SGC": 2, "GCNII": 20}


def trials_of(name: str, count: int) -> list[train.Trial]:
    settings: dict[str, object] = {} if name == "PPNP" else {"depth": DEPTH.get(name, 10)}
    if name != "SGC":
        settings.update(hidden=64, dropout=0.5)
    config = train.TrainConfig(lr=0.01, weight_decay=5e-4, epochs=1000)
    return [train.Trial(getattr(models, name), settings, config, seed, normalise_rows=True) for seed in range(count)]


def theirs(name: str, member: train.PreparedTrial, dense: torch.Tensor, index: torch.Tensor, epochs: int) -> float:
    """Seconds an epoch of the loop of a PyG user."""
    from pyg_peers import PEERS

    task, device = member.task, member.task.target.device
    net = PEERS[name](member.model.to(device)).to(device)
    csr = task.graph.operator.forward
    inputs = (dense, index, torch.stack([csr.col.long(), task.graph.operator.rows()]), csr.val)
    adam = torch.optim.Adam(net.parameters(), lr=0.01, weight_decay=5e-4)
    y = task.target

    def epoch() -> None:
        net.train()
        adam.zero_grad()
        functional.cross_entropy(net(*inputs)[task.train], y[task.train]).backward()
        adam.step()
        net.eval()
        with torch.no_grad():
            output = net(*inputs)
            float(functional.cross_entropy(output[task.valid], y[task.valid]))
            right = output.argmax(-1) == y
            float(right[task.valid].float().mean()), float(right[task.test].float().mean())

    for _ in range(3):
        epoch()
    began = time.perf_counter()
    for _ in range(epochs):
        epoch()
    return (time.perf_counter() - began) / epochs


def ours_gpu(members: list[train.PreparedTrial], epochs: int, rounds: int) -> tuple[float, KernelBatch]:
    """Seconds an epoch of one trial in a fast batch."""
    batch = KernelBatch(members)
    batch.run_epochs(4)
    found = []
    for _ in range(rounds):
        began = time.perf_counter()
        batch.run_epochs(epochs)
        found.append((time.perf_counter() - began) / epochs / len(members))
    return statistics.median(found), batch


def _at_work(data: str, name: str, count: int, epochs: int, rounds: int, barrier, queue) -> None:
    from unspool.study.engine.batching import open_batch

    torch.set_num_threads(1)
    loader = train.TrialLoader(data)
    batch = open_batch([loader.prepare(trial) for trial in trials_of(name, count)])
    batch.run_epochs(2)
    for _ in range(rounds):
        barrier.wait()
        began = time.perf_counter()
        batch.run_epochs(epochs)
        queue.put((time.perf_counter() - began) / epochs / count)


def ours_cpu(data: str, name: str, count: int, epochs: int, rounds: int) -> float:
    """Seconds an epoch of one trial, with a stack on every core."""
    cores = len(os.sched_getaffinity(0))
    context = multiprocessing.get_context("spawn")
    barrier, queue = context.Barrier(cores), context.Queue()
    crew = [
        context.Process(target=_at_work, args=(data, name, count, epochs, rounds, barrier, queue)) for _ in range(cores)
    ]
    for member in crew:
        member.start()
    times = [queue.get() for _ in range(rounds * cores)]
    for member in crew:
        member.join()
    return statistics.median(times) / cores


@functools.lru_cache(maxsize=1)
def loader_of(data: str, device: str) -> train.TrialLoader:
    """Reads a set once for all models."""
    return train.TrialLoader(data, device)


def compare(data: str, name: str, arguments: argparse.Namespace) -> dict[str, object]:
    device = arguments.device
    loader = loader_of(data, device)
    first = loader.prepare(trials_of(name, 1)[0])
    x = first.task.x
    dense = x.to_dense() if not isinstance(x, torch.Tensor) else x
    csr, row = first.task.graph.operator.forward, first.task.graph.operator.rows()
    edges = torch.stack([csr.col.long(), row])[:, csr.col != row]  # as PyG's users have them: both directions, no loops
    slow = theirs(name, first, dense, edges, arguments.pyg_epochs)
    del dense
    if device == "cuda":
        torch.cuda.empty_cache()
        count = _fitting(name, loader, arguments.trials)
        members = [loader.prepare(trial) for trial in trials_of(name, count)]
        fast, batch = ours_gpu(members, arguments.epochs, arguments.rounds)
        if arguments.kernels:
            from kernels import kernel_table

            kernel_table(batch)
    else:
        count = arguments.trials
        fast = ours_cpu(data, name, count, arguments.epochs, arguments.rounds)
    print(
        f"{data:9} {name:7} {count:5} trials {fast * 1e6:10.2f} µs {slow * 1e3:9.3f} ms {slow / fast:8.0f}x", flush=True
    )
    return {
        "data": data,
        "model": name,
        "trials": count,
        "ours": fast,
        "theirs": slow,
        "ratio": slow / fast,
        "device": _machine(device),
    }


def _fitting(name: str, loader: train.TrialLoader, wanted: int) -> int:
    """As many trials as the engine would train at once."""
    from unspool.study.engine.memory import slots_for

    return slots_for(loader.prepare(trials_of(name, 1)[0]), KernelBatch, wanted)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="or set UNSPOOL_DATA")
    parser.add_argument("--datasets", nargs="+", default=["cora"], choices=SETS)
    parser.add_argument("--models", nargs="+", default=list(NAMES), choices=NAMES)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu", choices=["cpu", "cuda"])
    parser.add_argument("--trials", type=int, help="400 on a GPU, 8 a core on a CPU when omitted")
    parser.add_argument("--epochs", type=int, help="of ours, a round: 50 on a GPU, 5 on a CPU when omitted")
    parser.add_argument("--pyg-epochs", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--kernels", action="store_true", help="time and bytes of each kernel")
    parser.add_argument("--json", type=Path, help="also write the numbers here")
    arguments = parser.parse_args()
    if arguments.data:
        os.environ["UNSPOOL_DATA"] = str(arguments.data)
    cuda = arguments.device == "cuda"
    arguments.trials = arguments.trials if arguments.trials else 400 if cuda else 8
    arguments.epochs = arguments.epochs if arguments.epochs else 50 if cuda else 5
    print(f"{_machine(arguments.device)}\n{'':17} {'':12} {'ours':>13} {'PyG loop':>12} {'faster by':>9}")
    rows = [compare(data, name, arguments) for data in arguments.datasets for name in arguments.models]
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
