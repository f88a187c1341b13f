"""How frequent the classes are among unlabelled nodes, from what a network says of them and how it errs on labelled ones."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from scipy.optimize import nnls

from unspool import study
from unspool.reproduce.lead.labelled import LabelledLoader
from unspool.train import Trial

#: The least share of a class, as a part of what it would have if all were alike: none is lost.
FLOOR = 0.1


def class_masses(loader: LabelledLoader, trial: Trial, seeds: Sequence[int]) -> tuple[float, ...]:
    """Shares of the classes among the nodes without a label; no label but those of the search is looked at.

    A network is trained under each seed. Of the labelled nodes that it did not learn from, it says how often class c is taken for class j, C; of the others, how
    often it names j, q. What would lead there are the masses π ≥ 0 with C π = q, in least squares (Lipton et al., 2018).

    Args:
        loader: the labelled nodes of a search.
        trial: what is trained; plain cross-entropy, so that training nodes are taken as they are.
        seeds: of the search.

    Example:
        >>> import unspool as us
        >>> from unspool import datasets
        >>> data = datasets.contextual_sbm(nodes=200, classes=2, signal=3.0, seed=0)
        >>> trial = Trial(us.models.APPNP, {"hidden": 8}, us.train.TrainConfig(epochs=30))
        >>> [round(share, 1) for share in class_masses(LabelledLoader(data), trial, range(2))]
        [0.5, 0.5]
    """
    classes = loader.outputs
    taken, named = np.zeros((classes, classes)), np.zeros(classes)
    truth = loader.first.target.cpu()
    for one, probabilities in study.predictions([trial.with_seed(seed) for seed in seeds], loader).items():
        said, split = probabilities.argmax(-1), loader.split(one.seed)
        held = torch.cat([split.valid, split.test])
        for j, c in zip(said[held].tolist(), truth[held].tolist(), strict=True):
            taken[j, c] += 1
        unlabelled = torch.ones(split.nodes, dtype=torch.bool)
        unlabelled[torch.cat([split.train, held])] = False
        named += said[unlabelled].bincount(minlength=classes).numpy()
    # To a hundredth: estimates are no better, and a search that goes on elsewhere shall have the same ones.
    return tuple(max(round(share, 2), 0.01) for share in solved(taken / taken.sum(0).clip(1), named / named.sum()))


def solved(taken: np.ndarray, named: np.ndarray) -> tuple[float, ...]:
    """The masses π ≥ 0 of sum 1 with C π = q in least squares, none below :data:`FLOOR`.

    Example:
        >>> [round(share, 3) for share in solved(np.array([[0.9, 0.2], [0.1, 0.8]]), np.array([0.76, 0.24]))]
        [0.8, 0.2]
    """
    found, _ = nnls(np.vstack([taken, np.ones(len(named))]), np.append(named, 1.0))
    mass = np.maximum(found, FLOOR / len(named))
    return tuple(float(share) for share in mass / mass.sum())
