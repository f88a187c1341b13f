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

from unspool.train.fit import Diverged, Run, fit
from unspool.train.links import link_task
from unspool.train.loss import Binary, CrossEntropy, Link, Loss, Own, Ranking, Regression
from unspool.train.plan import Plan, Precision, Select, Stop
from unspool.train.record import Epoch
from unspool.train.repeat import Runs, repeat, run_seed
from unspool.train.task import Task

__all__ = [
    "Binary", "CrossEntropy", "Diverged", "Epoch", "Link", "Loss", "Own", "Plan", "Precision", "Ranking", "Regression", "Run", "Runs",
    "Select", "Stop", "Task", "fit", "link_task", "repeat", "run_seed",
]  # fmt: skip
