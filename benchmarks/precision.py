"""What bfloat16 activations gain on a large graph: milliseconds an epoch and peak memory of ``unspool.train.fit``, on a GPU.

    python benchmarks/precision.py --data DIR [--epochs 60]

DIR holds ``ogbn_arxiv_nofeat/``. Features are 128 random numbers per node, because the official ones are not part of the data;
hidden width 256; the first epochs, which run before the epoch is captured, count. The limit aimed at is a factor of two: half the
bytes of every gather.
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path

import torch

import unspool as us
from models import arxiv
from unspool import train

CASES = {
    "UGDGNN, class channels": (us.models.UGDGNN, {"hidden": 256}),
    "UGDGNN, hidden channels": (us.models.UGDGNN, {"hidden": 256, "channels": us.models.Channels.HIDDEN}),
    "GCN": (us.models.GCN, {"hidden": 256}),
    "GCNII, 16 layers": (us.models.GCNII, {"hidden": 256, "depth": 16}),
}


def measure(name: str, task: train.Task, precision: train.Precision, epochs: int) -> tuple[float, float, float]:
    """Milliseconds an epoch, peak megabytes, and the last training loss."""
    kind, settings = CASES[name]
    for count in (10, epochs):  # the first run compiles kernels
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        began = time.perf_counter()
        config = train.TrainConfig(epochs=count, precision=precision)
        with train.seeded(0, "cuda"):
            run = train.fit(kind(128, 40, **settings).to("cuda"), task, config)
        torch.cuda.synchronize()
    each = (time.perf_counter() - began) / epochs * 1e3
    return each, torch.cuda.max_memory_allocated() / 1e6, run.history[-1].train_loss


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--data", type=Path, default=Path(os.environ.get("UNSPOOL_DATA", ".")), help="or set UNSPOOL_DATA"
    )
    parser.add_argument("--epochs", type=int, default=60)
    arguments = parser.parse_args()
    case = arxiv(arguments.data)
    nodes = case["x"].shape[0]
    order = torch.randperm(nodes, generator=torch.Generator().manual_seed(0))
    graph = us.Graph.from_edges(case["index"], nodes=nodes)
    task = train.Task(case["x"], graph, case["y"], case["train"], order[:20_000], order[20_000:40_000]).to("cuda")
    print(f"{graph}\n{torch.cuda.get_device_name()}, torch {torch.__version__}\n")
    print(f"{'':25} {'float32':>22} {'bfloat16':>22} {'faster by':>10}")
    for name in CASES:
        full, half = (measure(name, task, precision, arguments.epochs) for precision in train.Precision)
        cells = "".join(f" {ms:9.2f} ms {mb:7.0f} MB" for ms, mb, _ in (full, half))
        print(f"{name:25}{cells} {full[0] / half[0]:9.1f}x   (loss {full[2]:.4f} and {half[2]:.4f})", flush=True)


if __name__ == "__main__":
    main()
