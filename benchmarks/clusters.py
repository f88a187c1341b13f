"""What batches of clusters cost in accuracy: GCN trained on the whole graph, on clusters by METIS, and on clusters that know nothing of it.

    python benchmarks/clusters.py --data DIR [--set pubmed] [--seeds 5] [--epochs 100]

20 clusters, four of them a step, hidden 64, on the set's own split. `cut` is the share of edges that leave their cluster; test accuracy in %, mean and deviation over the
seeds; seconds of the processor for all of them.
"""

from __future__ import annotations

import argparse
import statistics
import time
from pathlib import Path

import torch

import unspool as us
from unspool import datasets, train


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--data", type=Path, help="folder with raw data; the variable UNSPOOL_DATA when omitted")
    asked.add_argument("--set", default="pubmed")
    asked.add_argument("--seeds", type=int, default=5)
    asked.add_argument("--epochs", type=int, default=100)
    given = asked.parse_args()
    torch.set_num_threads(1)
    data = datasets.load(given.set, root=given.data) if given.data else datasets.load(given.set)
    task = train.Task.of(data)
    random = torch.randint(0, 20, (data.nodes,), generator=torch.Generator().manual_seed(0))
    source, target = data.edge_index
    print("| | cut, % | test accuracy, % | CPU s |\n|---|---|---|---|", flush=True)
    for name, parts in (("whole graph", None), ("METIS", us.graph.metis(data.graph, 20)), ("at random", random)):
        began, found = time.process_time(), []
        for seed in range(given.seeds):
            torch.manual_seed(seed)
            model = us.models.GCN(data.features.shape[1], len(data.classes), hidden=64)
            batches = None if parts is None else train.ClusterBatches(task, parts, at_once=4, seed=seed)
            run = train.fit(model, task, train.TrainConfig(epochs=given.epochs), batches=batches)
            found.append(100 * run.best.test_score)
        cut = 0.0 if parts is None else 100 * float((parts[source] != parts[target]).float().mean())
        spread = f"{statistics.mean(found):.2f} ± {statistics.stdev(found):.2f}"
        print(f"| {name} | {cut:.0f} | {spread} | {time.process_time() - began:.0f} |", flush=True)


if __name__ == "__main__":
    main()
