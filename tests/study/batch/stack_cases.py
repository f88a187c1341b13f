"""Small trials of every model of the paper, and how they go alone."""

from __future__ import annotations

import numpy as np
import torch

from unspool import datasets, models, train
from unspool.ops.features import SparseFeatures
from unspool.train import PreparedTrial, Trial

#: A mask of its own for every hop.
EACH = {"masks": (models.Masks.EACH_HOP,) * 3, "propagation_dropout": (0.6, 0.3, 0.8)}
CASES = {
    "UGDGNN": {"depth": (4, 4, 4)}, "GPRGNN": {"depth": (3, 3, 3), "teleport": (0.1, 0.5, 0.9)},
    "APPNP": {"depth": (3, 3, 3), "teleport": (0.1, 0.2, 0.3)}, "DAGNN": {"depth": (3, 3, 3)}, "GCN": {}, "SGC": {}, "MLP": {},
    "UGDGNN-each": {"depth": (4, 4, 4), **EACH}, "GPRGNN-each": {"depth": (3, 3, 3), **EACH}, "APPNP-each": {"depth": (3, 3, 3), **EACH},
    "JKNet": {"depth": (3, 3, 3)}, "AirGNN": {"depth": (4, 4, 4), "residual": (0.5, 0.1, 0.3)},
    "PPNP": {"teleport": (0.3, 0.305, 0.31), "tolerance": (1e-14, 1e-14, 1e-14)},
    "GCNII": {"depth": (4, 4, 4)},
}  # fmt: skip


def task_of(seed: int = 0, device: str = "cpu") -> train.Task:
    """A graph of 90 nodes with sparse features, in torch's default dtype."""
    data = datasets.contextual_sbm(nodes=90, classes=3, seed=0)
    dtype = torch.get_default_dtype()
    x = data.features if isinstance(data.features, torch.Tensor) else data.features.to_dense()
    x = (x * (x > 0.3)).to(dtype)
    split = datasets.splits.per_class(data.labels, train=6, valid=8, seed=seed)
    graph = data.graph.to(dtype)
    return train.Task(
        SparseFeatures.from_tensor(x), graph, data.labels, split.train, split.valid, split.test
    ).to(device)  # fmt: skip


def kind_of(name: str) -> type[models.Model]:
    """The model of a case."""
    return getattr(models, name.partition("-")[0])


def members_of(name: str, task: train.Task, rates: tuple[float, ...] = (0.01, 0.02, 0.05)) -> list[PreparedTrial]:
    """Three trials that differ in everything that may differ within a batch."""
    kind, found = kind_of(name), []
    for i in range(3):
        settings = {word: values[i] for word, values in CASES[name].items()}
        if torch.get_default_dtype() is not torch.float64:
            settings.pop("tolerance", None)  # single precision cannot be so exact
        if name != "SGC":
            settings.update(hidden=16, dropout=(0.5, 0.2, 0.4)[i])
        config = train.TrainConfig(lr=rates[i], weight_decay=(5e-4, 0.0, 1e-2)[i], epochs=20)
        trial = Trial(kind, settings, config, seed=i)
        found.append(PreparedTrial(trial, trial.build(task.x.shape[1], 3), task))
    return found


def alone(member: PreparedTrial, epochs: int) -> np.ndarray:
    """The numbers of the first epochs when a trial is trained by itself."""
    trial, task = member.trial, member.task
    config, outputs = trial.config.replace(epochs=epochs), int(task.target.max()) + 1
    with train.seeded(trial.seed, task.target.device):
        run = train.fit(trial.make(task.x.shape[1], outputs).to(task.target.device), task, config)
    return np.array([epoch.to_list()[1:] for epoch in run.history])
