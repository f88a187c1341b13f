"""Where UGDGNN's ζ and γ should start: test accuracy of several starts, the epoch chosen by validation loss or accuracy.

    python benchmarks/ugdgnn_start.py [--data DIR] [--datasets citeseer cora] [--seeds 3] [--epochs 300] [--accuracy] [--device cuda]

CiteSeer is built in; other sets need ``--data`` (or UNSPOOL_DATA). Settings are those of the preset ``paper``.
"""

from __future__ import annotations

import argparse
import statistics

import torch

import unspool as us
from unspool import datasets, train
from unspool.models.hop_start import HopStart, hop_start
from unspool.reproduce.presets import PAPER

STARTS = {
    "ζ = 1/K": lambda hops: hops.zeta.fill_(1 / (hops.zeta.numel() - 1)),
    "ζ = 0.7": lambda hops: hops.zeta.fill_(0.7),
    "ζ = 0.8, as shipped": lambda hops: None,
    "ζ = 0.9": lambda hops: hops.zeta.fill_(0.9),
    "ζ = 1": lambda hops: hops.zeta.fill_(1.0),
    "γ as GPRGNN's": lambda hops: hops.gamma.copy_(hop_start(HopStart.PPR, hops.gamma.numel() - 1, 0.1)),
    "γ = 1": lambda hops: hops.gamma.fill_(1.0),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data")
    parser.add_argument("--datasets", nargs="+", default=["citeseer"])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=300)
    parser.add_argument("--accuracy", action="store_true", help="the epoch of the highest validation accuracy")
    parser.add_argument("--device", default="cpu")
    wanted = parser.parse_args()
    monitor = train.Monitor.VALID_SCORE if wanted.accuracy else train.Monitor.VALID_LOSS
    for name in wanted.datasets:
        data = datasets.load(name, root=wanted.data).row_normalised()
        trial = PAPER.trial(us.models.UGDGNN, name)
        config = trial.config.replace(epochs=wanted.epochs, monitor=monitor)
        for label, change in STARTS.items():
            scores = []
            for seed in range(wanted.seeds):
                model = trial.with_seed(seed).build(data.features.shape[1], len(data.classes))
                with torch.no_grad():
                    change(model.propagation)
                task = train.Task.of(data).to(wanted.device)
                run = train.fit(model.to(wanted.device), task, config)
                scores.append(100 * run.best.test_score)
            print(
                f"{data.name:10} {label:22} {statistics.mean(scores):.2f}  {[round(s, 1) for s in scores]}", flush=True
            )


if __name__ == "__main__":
    main()
