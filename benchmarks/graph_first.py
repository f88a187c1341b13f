"""What it costs in accuracy to propagate first: GPRGNN against GraphFirstGPRGNN, paired by seed and split.

    python benchmarks/graph_first.py --data DIR [--sets cora citeseer ...] [--seeds 10] [--device cuda] [--json FILE]

Both with the same settings (hidden 64, K = 10, dropout 0.5) and the same training, on each set's own splits (of a set with ten of them, one for
every seed). The difference is test accuracy of the graph-first network less that of the other, with its mean and 95 % interval over
the seeds (Student's t).
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from pathlib import Path

import torch

import unspool as us
from unspool import datasets, train

SETS = ("cora", "citeseer", "pubmed", "photo", "chameleon_filtered", "texas")
#: Student's t for 95 % and ten seeds.
T = {2: 12.71, 3: 4.303, 5: 2.776, 10: 2.262}


def scores(kind: type[us.models.Model], data: datasets.Dataset, seeds: int, device: str) -> list[float]:
    """Test accuracies in %, one for each seed; on a GPU all at once."""
    config = train.TrainConfig(epochs=500, patience=50)
    trials = [
        train.Trial(kind, {"hidden": 64, "depth": 10, "dropout": 0.5}, config, seed=seed) for seed in range(seeds)
    ]
    rows = us.study.run(trials, data, device=device).rows
    return [100 * row.result.test_score for row in sorted(rows, key=lambda row: row.trial["seed"])]


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--data", type=Path, help="folder with raw data; the variable UNSPOOL_DATA when omitted")
    asked.add_argument("--sets", nargs="+", default=list(SETS))
    asked.add_argument("--seeds", type=int, default=10, choices=list(T))
    asked.add_argument("--device", default="cpu")
    asked.add_argument("--json", type=Path, help="also write all scores here")
    given = asked.parse_args()
    torch.set_num_threads(1)
    print("| set | GPRGNN | graph first | difference, 95 % | s |\n|---|---|---|---|---|", flush=True)
    kept = {}
    for name in given.sets:
        began, data = time.perf_counter(), datasets.load(name, root=given.data) if given.data else datasets.load(name)
        usual, first = (
            scores(kind, data, given.seeds, given.device) for kind in (us.models.GPRGNN, us.models.GraphFirstGPRGNN)
        )
        apart = [b - a for a, b in zip(usual, first, strict=True)]
        width = T[given.seeds] * statistics.stdev(apart) / given.seeds**0.5
        means = [f"{statistics.mean(one):.2f} ± {statistics.stdev(one):.2f}" for one in (usual, first)]
        print(
            f"| {name} | {means[0]} | {means[1]} | {statistics.mean(apart):+.2f} ± {width:.2f} | {time.perf_counter() - began:.0f} |",
            flush=True,
        )
        kept[name] = {"GPRGNN": usual, "GraphFirstGPRGNN": first}
        if given.json:
            given.json.write_text(json.dumps(kept, indent=1))


if __name__ == "__main__":
    main()
