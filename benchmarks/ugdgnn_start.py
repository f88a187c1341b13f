"""Where UGDGNN's ζ should start: test accuracy of several starts, the epoch chosen by validation loss.

    python benchmarks/ugdgnn_start.py [--data DIR] [--datasets citeseer cora] [--seeds 3] [--epochs 300]

CiteSeer is built in; other sets need ``--data`` (or UNSPOOL_DATA). Settings are those of the preset ``paper``.
"""

from __future__ import annotations

import argparse
import statistics

import torch

import unspool as us
from unspool import datasets, train

STARTS = {
    "ζ = 1/K": lambda hops: hops.zeta.fill_(1 / (hops.zeta.numel() - 1)),
    "ζ = 0.7": lambda hops: hops.zeta.fill_(0.7),
    "ζ = 0.8, as shipped": lambda hops: None,
    "ζ = 0.9": lambda hops: hops.zeta.fill_(0.9),
    "ζ = 1": lambda hops: hops.zeta.fill_(1.0),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data")
    parser.add_argument("--datasets", nargs="+", default=["citeseer"])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=300)
    wanted = parser.parse_args()
    for name in wanted.datasets:
        data = datasets.load(name, root=wanted.data).row_normalised()
        how = us.models.preset(us.models.UGDGNN, name)
        for label, change in STARTS.items():
            scores = []
            for seed in range(wanted.seeds):
                torch.manual_seed(seed)
                model = how.build(data.features.shape[1], len(data.classes))
                with torch.no_grad():
                    change(model.propagation)
                run = train.fit(model, train.Task.of(data), how.plan(epochs=wanted.epochs))
                scores.append(100 * run.best.test_score)
            print(
                f"{data.name:10} {label:22} {statistics.mean(scores):.2f}  {[round(s, 1) for s in scores]}", flush=True
            )


if __name__ == "__main__":
    main()
