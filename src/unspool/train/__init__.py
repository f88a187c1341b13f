"""Bilevel training: one trial or many seeds, the upper loss, which epoch counts, when to stop, and how to come back.

>>> import unspool as us
>>> from unspool import datasets, train
>>> data = datasets.contextual_sbm(nodes=60, classes=2, seed=0)
>>> trial = train.Trial(us.models.GCN, {"hidden": 8}, train.TrainConfig(lr=0.01, epochs=20), seed=0)
>>> model, run = train.train_trial(trial, data)
>>> len(run.history), run.best.epoch <= 20
(20, True)
"""

from unspool.train.batches import Batch, Batches, RowBatches
from unspool.train.bilevel import BilevelProblem, problem_of
from unspool.train.callbacks import Callback, Moment, TensorBoard, Verdict
from unspool.train.class_weight import Balance
from unspool.train.cluster_batches import ClusterBatches
from unspool.train.config import LowerLevel, Monitor, Precision, Rates, Stop, TrainConfig
from unspool.train.counts import Counts
from unspool.train.fitting import Diverged, Run, fit
from unspool.train.hyper import Hyper, Order
from unspool.train.link_baselines import LinkBaseline
from unspool.train.link_evaluation import LinkEvaluation, LinkProtocol, evaluate_links
from unspool.train.link_metrics import LinkMetrics
from unspool.train.links import link_task
from unspool.train.loader import DataRecord, PreparedTrial, TrialLoader
from unspool.train.loss import Binary, CrossEntropy, Link, Loss, Own, Ranking, Regression
from unspool.train.multilabel import MultiLabel
from unspool.train.ordinal import Ordinal
from unspool.train.preset import DEFAULT, Preset
from unspool.train.pyg_batches import PygBatches
from unspool.train.record import Ending, Epoch, Result
from unspool.train.seeding import seeded
from unspool.train.task import Task
from unspool.train.task_kind import TaskKind
from unspool.train.training import Runs, repeat, train_trial
from unspool.train.trial import Trial

__all__ = [
    "DEFAULT",
    "Balance",
    "Batch",
    "Batches",
    "BilevelProblem",
    "Binary",
    "Callback",
    "ClusterBatches",
    "Counts",
    "CrossEntropy",
    "DataRecord",
    "Diverged",
    "Ending",
    "Epoch",
    "Hyper",
    "Link",
    "LinkBaseline",
    "LinkEvaluation",
    "LinkMetrics",
    "LinkProtocol",
    "Loss",
    "LowerLevel",
    "Moment",
    "Monitor",
    "MultiLabel",
    "Order",
    "Ordinal",
    "Own",
    "Precision",
    "PreparedTrial",
    "Preset",
    "PygBatches",
    "Ranking",
    "Rates",
    "Regression",
    "Result",
    "RowBatches",
    "Run",
    "Runs",
    "Stop",
    "Task",
    "TaskKind",
    "TensorBoard",
    "TrainConfig",
    "Trial",
    "TrialLoader",
    "Verdict",
    "evaluate_links",
    "fit",
    "link_task",
    "problem_of",
    "repeat",
    "seeded",
    "train_trial",
]  # fmt: skip
