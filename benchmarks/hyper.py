"""Hop coefficients learnt on validation nodes in one run, against a grid of ten teleports: accuracy and trials.

    python benchmarks/hyper.py --data DIR [--datasets cora,citeseer,cs] [--device cuda]

DIR holds raw data in PyTorch Geometric's layout. StableGNN with ten steps. The grid: personalised PageRank with ten teleports for each seed; of
these the one with the highest validation accuracy counts. Ours: one trial for each seed, whose α of every step begin at 1/(k+1) and learn on
half of the validation nodes by one-step hypergradients, while the other half choose the epoch. Both stop after a hundred epochs without a better
one. Pairs have the same seed, and with it the same split. The
rate of the hops was chosen among 0.003, 0.01 and 0.05 by validation nodes of Cora under the seeds 100 to 102.
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path

import numpy as np
import torch

from unspool import datasets, study, train
from unspool.models import StableGNN, Steps
from unspool.study.results.comparison import paired_t

TELEPORTS = (0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.7, 0.9)


def trial(epochs: int, steps: Steps, **settings: float) -> train.Trial:
    """One trial; weights learn alike in both."""
    config = train.TrainConfig(
        lr=0.01, weight_decay=5e-4, epochs=epochs, patience=100, monitor=train.Monitor.VALID_SCORE
    )
    wanted = {"depth": 10, "hidden": 64, "dropout": 0.5, "head_dropout": 0.5, "steps": steps, **settings}
    return train.Trial(StableGNN, wanted, config, normalise_rows=True)


def grid(loader: train.TrialLoader, seeds: int, epochs: int) -> tuple[np.ndarray, float]:
    """Test accuracy of the best of the grid for each seed, and the seconds of all trials."""
    began = time.perf_counter()
    wanted = [[trial(epochs, Steps.PPR, teleport=t).with_seed(seed) for t in TELEPORTS] for seed in range(seeds)]
    found = study.run([one for own in wanted for one in own], loader)
    results = {row.key: row.result for row in found.rows}
    chosen = []
    for own in wanted:
        ended = [results[one.key(loader.fingerprint)] for one in own]
        assert all(one is not None for one in ended), "a trial of the grid has failed"
        chosen.append(max(ended, key=lambda one: (one.valid_score, -one.valid_loss)).test_score)
    return np.array(chosen), time.perf_counter() - began


def learnt(loader: train.TrialLoader, seeds: int, epochs: int, lr: float) -> tuple[np.ndarray, float]:
    """Test accuracy of the one trial of each seed, and the seconds of all."""
    began = time.perf_counter()
    hyper = train.Hyper("hops", lr=lr)
    runs = [
        train.train_trial(trial(epochs, Steps.LEARNT).with_seed(seed), loader, hyper=hyper)[1] for seed in range(seeds)
    ]
    return np.array([run.best.test_score for run in runs]), time.perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=os.environ.get("UNSPOOL_DATA"), help="or set UNSPOOL_DATA")
    parser.add_argument("--datasets", default="cora,citeseer,cs")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--epochs", type=int, default=300)
    parser.add_argument("--lr", type=float, default=0.003, help="of the hop coefficients")
    given = parser.parse_args()
    machine = torch.cuda.get_device_name() if given.device.startswith("cuda") else "CPU"
    print(f"{machine}, torch {torch.__version__}, {given.seeds} seeds; trials a seed: {len(TELEPORTS)} and 1")
    print(f"{'':10} {'grid':>16} {'one trial':>16} {'gap':>7} {'p':>7}   seconds")
    for name in given.datasets.split(","):
        loader = train.TrialLoader(datasets.load(name, given.data), given.device)
        (a, first), (b, second) = (
            grid(loader, given.seeds, given.epochs),
            learnt(loader, given.seeds, given.epochs, given.lr),
        )
        gap, p = 100 * float((b - a).mean()), paired_t(b - a)
        told = " ".join(f"{100 * one.mean():8.2f} ± {100 * one.std(ddof=1):5.2f}" for one in (a, b))
        print(f"{name:10} {told} {gap:+7.2f} {p:7.3f}   {first:.0f}, {second:.0f}", flush=True)


if __name__ == "__main__":
    main()
