"""Bilevel training of one or many seeds: the upper loss, which epoch counts, when to stop, and how to come back.

>>> import torch, unspool as us
>>> from unspool import datasets, train
>>> data = datasets.contextual_sbm(nodes=60, classes=2, seed=0)
>>> torch.manual_seed(0)
<torch._C.Generator object at ...>
>>> model = us.models.GCN(data.features.shape[1], 2, hidden=8)
>>> run = train.fit(model, train.Task.of(data), train.Plan(rate=0.01, epochs=20))
>>> len(run.history), run.best.epoch <= 20
(20, True)
"""

from unspool.train.fit import Run, fit
from unspool.train.loss import Binary, CrossEntropy, Loss, Regression
from unspool.train.plan import Plan, Select, Stop
from unspool.train.record import Epoch
from unspool.train.task import Task

__all__ = [
    "Binary", "CrossEntropy", "Epoch", "Loss", "Plan", "Regression", "Run", "Select", "Stop", "Task", "fit",
]  # fmt: skip
