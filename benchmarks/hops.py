"""Training from hops on the disk beside training on the graph in memory: peaks of memory, and what an epoch costs.

    python benchmarks/hops.py                  # 0.1 M nodes
    python benchmarks/hops.py --nodes 1000000  # the figures of the documentation: 8 GB of disk, and a quarter of an hour on a busy machine

A random graph with 24 listed edges a node (that of build.py), 128 features, 16 classes, K = 4; 5 % of the nodes are for training, 2.5 % for
validation and 2.5 % for the test. In memory: GPRGNN and SGC with full batch. From the disk: GraphFirstGPRGNN and SGC in batches of 4096, from
hops of all nodes that were written before within --memory. Every step has a process of its own with one thread; its peak is all
that the process holds, Python and torch with it. An epoch includes its evaluation, and CPU seconds count.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from build import edges, here, peak

FEATURES, CLASSES, DEPTH = 128, 16, 4


def make(place: Path, nodes: int, memory: int) -> dict[str, Any]:
    """The graph in a folder, features and labels in files."""
    from unspool.graph.building import build_graph

    index = edges(24 * nodes, "cpu").numpy()
    np.save(place / "edges.npy", index)
    parts = [index[:, at : at + (1 << 22)] for at in range(0, index.shape[1], 1 << 22)]
    build_graph(
        lambda: ((s, t, None) for s, t in parts), place / "graph", memory=4 << 30, asked={}, nodes=nodes, directed=False
    )
    x = np.lib.format.open_memmap(place / "x.npy", "w+", np.float32, (nodes, FEATURES))
    random = np.random.default_rng(0)
    label = random.integers(0, CLASSES, nodes)
    centre = random.standard_normal((CLASSES, FEATURES), dtype=np.float32) / 4
    for at in range(0, nodes, 1 << 16):
        rows = slice(at, min(at + (1 << 16), nodes))
        x[rows] = centre[label[rows]] + random.standard_normal((rows.stop - at, FEATURES), dtype=np.float32)
    x.flush()
    drawn = random.permutation(nodes)
    train, valid = nodes // 20, nodes // 40
    np.savez(
        place / "facts.npz",
        label=label,
        train=drawn[:train],
        valid=drawn[train : train + valid],
        test=drawn[train + valid : train + 2 * valid],
    )
    return {}


def facts_of(place: Path) -> dict[str, torch.Tensor]:
    with np.load(place / "facts.npz") as held:
        return {name: torch.from_numpy(held[name]) for name in held}


def epochs(model: Any, data: Any, config: Any, more: int) -> dict[str, Any]:
    """An epoch: some more less one, so that what is done once does not count."""
    from unspool import train

    spent = []
    for many in (1, 1 + more):
        began = time.process_time()
        run = train.train_trial(
            train.Trial(model, {"depth": DEPTH}, train.TrainConfig(epochs=many, **config), seed=0), data
        )[1]
        spent.append(time.process_time() - began)
    return {"epoch": (spent[1] - spent[0]) / more, "said": str(run)}


def memory(place: Path, name: str) -> dict[str, Any]:
    import unspool as us

    known = facts_of(place)
    split = us.datasets.Split(known["train"], known["valid"], known["test"], nodes=known["label"].numel())
    index = torch.from_numpy(np.load(place / "edges.npy"))
    data = us.datasets.from_tensors(
        index, torch.from_numpy(np.load(place / "x.npy")), known["label"], split=split, directed=False
    )
    del index
    return epochs(getattr(us.models, name), data, {}, 2)


def write(place: Path, budget: int) -> dict[str, Any]:
    import unspool as us

    known = facts_of(place)
    nodes = known["label"].numel()
    split = us.datasets.Split(known["train"], known["valid"], known["test"], nodes=nodes)
    facts = us.hops.NodeFacts.read(nodes, known["label"], split)
    began = time.process_time()
    us.hops.write(us.Graph.open(place / "graph"), place / "x.npy", DEPTH, place / "hops", memory=budget, facts=facts)
    return {"seconds": time.process_time() - began}


def disk(place: Path, name: str) -> dict[str, Any]:
    import unspool as us

    return epochs(getattr(us.models, name), us.hops.dataset(place / "hops", check=False), {"batch_size": 4096}, 10)


def one(step: str, place: Path, given: argparse.Namespace) -> None:
    """One step in this process; prints its figures."""
    torch.set_num_threads(1)
    import unspool as us

    us.models  # noqa: B018 - its import is no part of a step
    before = here()
    kind, _, name = step.partition(":")
    budget = int(given.memory * 2**30)
    found = {"make": lambda: make(place, given.nodes, budget), "write": lambda: write(place, budget),
             "memory": lambda: memory(place, name), "disk": lambda: disk(place, name)}[kind]()  # fmt: skip
    print(json.dumps(found | {"peak": peak(), "before": before}))


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--nodes", type=int, default=100_000)
    asked.add_argument("--memory", type=float, default=0.5, help="GB that writing the hops may take")
    asked.add_argument("--step", help=argparse.SUPPRESS)
    asked.add_argument("--place", type=Path, help=argparse.SUPPRESS)
    given = asked.parse_args()
    if given.step:
        one(given.step, given.place, given)
        return
    print(
        f"torch {torch.__version__}, one thread, {given.nodes:,} nodes, {FEATURES} features, K = {DEPTH}\n", flush=True
    )
    print("| | CPU s an epoch | peak, GB |\n|---|---|---|", flush=True)
    with tempfile.TemporaryDirectory() as place:
        found = {}
        for step in ("make", "memory:GPRGNN", "memory:SGC", "write", "disk:GraphFirstGPRGNN", "disk:SGC"):
            command = [
                sys.executable,
                __file__,
                "--step",
                step,
                "--place",
                place,
                "--nodes",
                str(given.nodes),
                "--memory",
                str(given.memory),
            ]
            ran = subprocess.run(command, check=True, capture_output=True, text=True)
            row = found[step] = json.loads(ran.stdout.splitlines()[-1])
            if step == "write":
                print(
                    f"| hops written ({given.memory:g} GB allowed) | {row['seconds']:.1f} once | {row['peak']:.2f} |",
                    flush=True,
                )
            elif step != "make":
                print(f"| {step.replace(':', ', ')} | {row['epoch']:.3f} | {row['peak']:.2f} |", flush=True)
    for usual, first in (("memory:GPRGNN", "disk:GraphFirstGPRGNN"), ("memory:SGC", "disk:SGC")):
        a, b = found[usual], found[first]
        print(
            f"{first}: {a['epoch'] / b['epoch']:.1f} times cheaper an epoch, {b['peak'] / a['peak']:.2f} of the memory"
        )


if __name__ == "__main__":
    main()
