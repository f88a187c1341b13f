"""Seconds to train UGDGNN, GCN and APPNP on Cora, against the plain PyG loop in the same run.

    python benchmarks/train.py --data DIR [--device cuda] [--epochs 100] [--rounds 3] [--json FILE]

DIR holds ``Planetoid/``. Both sides start from the same weights, train with Adam for the same number of epochs (hidden width 64,
dropout 0.5, default depth, row-normalised features), and look at validation loss, validation accuracy and test accuracy after
every epoch, keeping the weights of the lowest validation loss. PyG's side is the loop its users write: dense features,
``F.dropout``, layers with ``cached=True``, torch's default Adam. Ours is ``unspool.train.fit`` as the command ``unspool train``
calls it; on a GPU it captures the epoch as a CUDA graph by itself, and the epochs before that count. Times are medians over
rounds taken in turns.

The limit aimed at, per epoch on two cores: the sparse first layer forward twice and backward once, three passes of Adam over its
weights, and the hops; on the GPU the same kernels without launches between them.
"""

from __future__ import annotations

import argparse
import copy
import json
import os
import statistics
import time
from pathlib import Path

import torch
from torch.nn import functional

import unspool as us
from models import _machine, build, cora
from unspool import train

NAMES = ("UGDGNN", "GCN", "APPNP")


def ours(model: us.models.Model, task: train.Task, epochs: int) -> tuple[float, train.Epoch]:
    """Train a copy of the model; seconds, and the epoch it chose."""
    made = copy.deepcopy(model)
    _wait(task.target.device)
    began = time.perf_counter()
    run = train.fit(made, task, train.TrainConfig(lr=0.01, weight_decay=5e-4, epochs=epochs))
    _wait(task.target.device)
    return time.perf_counter() - began, run.best


def theirs(name: str, model: us.models.Model, case: dict[str, object], task: train.Task, epochs: int) -> float:
    """The loop of a PyG user; seconds."""
    from pyg_peers import PEERS

    device = task.target.device
    net = PEERS[name](copy.deepcopy(model)).to(device)
    csr = task.graph.operator.forward
    edges = torch.stack([csr.col.long(), task.graph.operator.rows()])
    inputs = (case["x"].to(device), case["index"].to(device), edges, csr.val)
    adam = torch.optim.Adam(net.parameters(), lr=0.01, weight_decay=5e-4)
    y, best, kept = task.target, float("inf"), None
    _wait(device)
    began = time.perf_counter()
    for _ in range(epochs):
        net.train()
        adam.zero_grad()
        loss = functional.cross_entropy(net(*inputs)[task.train], y[task.train])
        loss.backward()
        adam.step()
        net.eval()
        with torch.no_grad():
            output = net(*inputs)
            valid = float(functional.cross_entropy(output[task.valid], y[task.valid]))
            right = output.argmax(-1) == y
            float(right[task.valid].float().mean()), float(right[task.test].float().mean())
        if valid < best:
            best, kept = valid, copy.deepcopy(net.state_dict())
    net.load_state_dict(kept)
    _wait(device)
    return time.perf_counter() - began


def compare(name: str, case: dict[str, object], device: str, epochs: int, rounds: int) -> dict[str, object]:
    features = us.nn.SparseFeatures.from_tensor(case["x"])
    graph = us.Graph.from_edges(case["index"], nodes=case["x"].shape[0])
    task = train.Task(features, graph, case["y"], case["train"], case["valid"], case["test"]).to(device)
    model = build(name, case["x"].shape[1], case["classes"]).to(device)
    ours(model, task, 5), theirs(name, model, case, task, 2)  # first calls load libraries and compile kernels
    mine, other = [], []
    for _ in range(rounds):
        mine.append(ours(model, task, epochs)[0])
        other.append(theirs(name, model, case, task, max(epochs // 5, 1)) * epochs / max(epochs // 5, 1))
    found = {"ours": statistics.median(mine), "theirs": statistics.median(other)}
    ratio = found["theirs"] / found["ours"]
    each = 1e3 / epochs
    print(f"{name:8} {found['ours']:9.3f} s {found['theirs']:9.3f} s {ratio:8.1f}x   ({found['ours'] * each:.3f} and {found['theirs'] * each:.3f} ms an epoch)", flush=True)  # fmt: skip
    return {"model": name, "device": _machine(device), "epochs": epochs, "ratio": ratio, **found}


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--data", type=Path, default=Path(os.environ.get("UNSPOOL_DATA", ".")), help="or set UNSPOOL_DATA"
    )
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--models", nargs="+", default=list(NAMES), choices=NAMES)
    parser.add_argument("--epochs", type=int, help="100 on a CPU, 500 on a GPU when omitted")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path, help="also write the numbers here")
    arguments = parser.parse_args()
    epochs = arguments.epochs if arguments.epochs else 500 if arguments.device == "cuda" else 100
    case = cora(arguments.data)
    print(f"Cora, {epochs} epochs with evaluation after each; {_machine(arguments.device)}\n")
    print(f"{'':8} {'ours':>11} {'PyG loop':>11} {'faster by':>9}")
    rows = [compare(name, case, arguments.device, epochs, arguments.rounds) for name in arguments.models]
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
