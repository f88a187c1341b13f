"""Time of one epoch of one trial when many train at once, against the plain PyG loop in the same run.

    python benchmarks/trials.py --data DIR [--datasets cora ...] [--models UGDGNN derived:Own ...] [--device cuda] [--trials 400]
                                [--epochs 50] [--kernels] [--json FILE]

DIR is a folder with the field's sets (``Planetoid/``, ``Coauthor/``, ``Amazon/``), as ``unspool.datasets.load`` finds them. Hidden width
64, dropout 0.5, ten hops (GCN and SGC two, GCNII twenty layers), Adam; validation loss, validation accuracy and test accuracy after
every epoch on both sides. The models ``derived:...`` are those of derived.py, which nobody named: written as a user of the package
writes a model.

*PyG loop*: what its users write. Dense row-normalised features, ``F.dropout``, layers with ``cached=True`` or weights normalised
beforehand, torch's Adam, one model at a time. Before it is timed its outputs are compared with those of our model; where they differ by more
than a thousandth the row says so.

*Ours*, GPU: the batch that the engine opens for ``--trials`` trials with different seeds, as ``unspool.study.run`` trains them; the time
of a call of ``run_epochs`` that includes fetching all numbers, after one that compiled and captured. CPU: one process per core, each
with a stack of ``--trials`` trials and one thread; all of them at work at once.

*Limit* (GPU): the bytes that must move through memory in an epoch of a trial, each input read once and each output written once (first layer,
layers after it, hops, Adam), over the bandwidth of a large copy in the same run; where features go through the matrix units, the first
layer takes at least its operations over the rate of a large product in half precision in the same run. *Left* is the rest of our time. What hops gather
mostly comes from the cache and is not counted. *Form* is how features are multiplied, entry by entry or tile by tile.

``--kernels`` adds the time of each kernel of an epoch that was not captured.
"""

from __future__ import annotations

import argparse
import functools
import json
import multiprocessing
import os
import statistics
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import derived
import torch
from torch.nn import functional

from models import _machine
from unspool import models, train
from unspool.study.batch.stacked_batch import StackedBatch
from unspool.study.engine.batching import open_batch

NAMES = ("UGDGNN", "APPNP", "GPRGNN", "JKNet", "DAGNN", "GCN", "SGC", "GCNII", "AirGNN", "PPNP")
DERIVED = ("derived:GPRGNN", "derived:Own")
SETS = ("cora", "citeseer", "pubmed", "photo", "cs", "physics")
DEPTH = {"GCN": 2, "SGC": 2, "GCNII": 20}
#: Trials at once on a GPU, by set.
TRIALS = {"cora": 400}
OTHERWISE, ON_A_CORE = 100, 8
#: How far the outputs of the two sides may be apart, relative to their size: PPNP's peer iterates to a tolerance.
APART = 1e-3


def model_of(name: str) -> Any:
    """The class of a model."""
    return getattr(derived if name in DERIVED else models, name.removeprefix("derived:"))


def trials_of(name: str, count: int) -> list[train.Trial]:
    settings: dict[str, object] = {} if name == "PPNP" else {"depth": DEPTH.get(name, 10)}
    if name != "SGC":
        settings.update(hidden=64, dropout=0.5)
    config = train.TrainConfig(lr=0.01, weight_decay=5e-4, epochs=1000)
    return [train.Trial(model_of(name), settings, config, seed, normalise_rows=True) for seed in range(count)]


def theirs(name: str, member: train.PreparedTrial, dense: torch.Tensor, index: torch.Tensor, epochs: int) -> float:
    """Seconds an epoch of the loop of a PyG user."""
    from pyg_peers import PEERS

    task, device = member.task, member.task.target.device
    ours = member.model.to(device)
    net = PEERS[name](ours).to(device)
    csr = task.graph.operator.forward
    inputs = (dense, index, torch.stack([csr.col.long(), task.graph.operator.rows()]), csr.val)
    with torch.no_grad():
        wanted = ours.eval()(task.x, task.graph)
        apart = float((net.eval()(*inputs) - wanted).norm() / wanted.norm())
    if not apart < APART:
        print(f"outputs of {name} and of its loop in PyG differ by {apart:.1e}", file=sys.stderr)
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


def ours_gpu(members: list[train.PreparedTrial], epochs: int, rounds: int) -> tuple[float, StackedBatch]:
    """Seconds an epoch of one trial in the batch that the engine opens, whose epochs are captured."""
    batch = open_batch(members)
    batch.run_epochs(6)
    if not (isinstance(batch, StackedBatch) and batch._replay is not None):
        sys.exit(f"{type(members[0].model).__name__} trains in a {type(batch).__name__} whose epochs were not captured")
    found = []
    for _ in range(rounds):
        began = time.perf_counter()
        batch.run_epochs(epochs)
        found.append((time.perf_counter() - began) / epochs / len(members))
    return statistics.median(found), batch


def _at_work(data: str, name: str, count: int, epochs: int, rounds: int, barrier, queue) -> None:
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


@functools.lru_cache(maxsize=1)
def speed() -> tuple[float, float]:
    """Bytes and operations a second of this GPU."""
    from limits import copy_bandwidth, matrix_rate

    return copy_bandwidth(), matrix_rate()


def limit_of(batch: StackedBatch) -> dict[str, object]:
    """The limit of a batch and what it is made of."""
    from limits import work_of

    work = work_of(batch)
    if work is None:
        return {}
    parts = asdict(work) | {"form": work.form.value}
    return {"limit": work.seconds(*speed()), "work": parts}


def compare(data: str, name: str, arguments: argparse.Namespace) -> dict[str, Any]:
    """One row."""
    device = arguments.device
    loader = loader_of(data, device)
    first = loader.prepare(trials_of(name, 1)[0])
    x = first.task.x
    dense = x.to_dense() if not isinstance(x, torch.Tensor) else x
    csr, row = first.task.graph.operator.forward, first.task.graph.operator.rows()
    edges = torch.stack([csr.col.long(), row])[:, csr.col != row]  # as PyG's users have them: both directions, no loops
    slow = theirs(name, first, dense, edges, arguments.pyg_epochs)
    del dense, edges
    more: dict[str, Any] = {}
    if device == "cuda":
        torch.cuda.empty_cache()
        count = _fitting(name, loader, arguments.trials or TRIALS.get(data, OTHERWISE))
        members = [loader.prepare(trial) for trial in trials_of(name, count)]
        fast, batch = ours_gpu(members, arguments.epochs, arguments.rounds)
        more = limit_of(batch)
    else:
        count = arguments.trials or ON_A_CORE
        fast = ours_cpu(data, name, count, arguments.epochs, arguments.rounds)
    print(_line(data, name, count, fast, slow, more), flush=True)
    if arguments.kernels and device == "cuda":
        from kernels import kernel_table

        kernel_table(batch)
    found = {"data": data, "model": name, "trials": count, "ours": fast, "theirs": slow, "ratio": slow / fast}
    return found | {"device": _machine(device)} | more


HEAD = (
    f"{'':9} {'':14} {'trials':>6} {'ours':>10}    {'PyG loop':>8}    {'faster':>7} {'limit':>9}    {'left':>8}    form"
)


def _line(data: str, name: str, count: int, fast: float, slow: float, more: dict[str, Any]) -> str:
    row = f"{data:9} {name:14} {count:6} {fast * 1e6:10.2f} µs {slow * 1e3:8.3f} ms {slow / fast:7.0f}x"
    if not more:
        return row
    left, form = fast - more["limit"], more["work"]["form"]
    return f"{row} {more['limit'] * 1e6:8.2f} µs {left * 1e6:8.2f} µs {form}"


def _fitting(name: str, loader: train.TrialLoader, wanted: int) -> int:
    """As many trials as the engine would train at once."""
    from unspool.study.engine.memory import slots_for

    return slots_for(loader.prepare(trials_of(name, 1)[0]), open_batch, wanted)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="or set UNSPOOL_DATA")
    parser.add_argument("--datasets", nargs="+", default=["cora"], choices=SETS)
    parser.add_argument("--models", nargs="+", default=list(NAMES), choices=NAMES + DERIVED)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu", choices=["cpu", "cuda"])
    parser.add_argument(
        "--trials", type=int, help="when omitted, on a GPU 400 on Cora and 100 on others, on a CPU 8 a core"
    )
    parser.add_argument("--epochs", type=int, help="of ours, a round: 50 on a GPU, 5 on a CPU when omitted")
    parser.add_argument("--pyg-epochs", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--kernels", action="store_true", help="the time of each kernel")
    parser.add_argument("--json", type=Path, help="also write the numbers here")
    arguments = parser.parse_args()
    if arguments.data:
        os.environ["UNSPOOL_DATA"] = str(arguments.data)
    cuda = arguments.device == "cuda"
    arguments.epochs = arguments.epochs if arguments.epochs else 50 if cuda else 5
    print(_machine(arguments.device))
    if cuda:
        print("copy {:.2f} TB/s, matrices {:.0f} Tflop/s in half precision".format(*(s / 1e12 for s in speed())))
    print(HEAD)
    rows = [compare(data, name, arguments) for data in arguments.datasets for name in arguments.models]
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
