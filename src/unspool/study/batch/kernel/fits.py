"""Which trials the fast kernels can train."""

from __future__ import annotations

from collections.abc import Hashable

import torch

from unspool.graph import Graph, Normalisation
from unspool.ops import Basis
from unspool.study.batch.kernel.blueprints import blueprint
from unspool.train import CrossEntropy, PreparedTrial, Task


def fast_signature(member: PreparedTrial) -> Hashable | None:
    """What must be equal for two trials to share a fast batch; None where the kernels do not fit.

    They know named models with usual settings, classes as targets without weights, Adam, single precision, and an NVIDIA GPU. Depth may differ
    where zero coefficients can stand for missing hops.

    Example:
        >>> import unspool as us
        >>> from unspool import datasets, train
        >>> loader = train.TrialLoader(datasets.contextual_sbm(nodes=60, classes=2, seed=0))
        >>> fast_signature(loader.prepare(train.Trial(us.models.GCN))) is None  # on a CPU stacks are faster
        True
    """
    config, task = member.trial.config, member.task
    if not kernels_run(task) or type(task.loss) is not CrossEntropy or task.weight is not None:
        return None
    if not config.stackable:
        return None
    found = blueprint(member.model)
    if found is None or (found.basis is Basis.CHEBYSHEV and not _is_minimised(task.graph)):
        return None
    sizes = (task.train.numel(), task.valid.numel(), task.test.numel())
    return ("fast", found.shape, sizes, id(task.x), id(task.graph), id(task.target))


def _is_minimised(graph: Graph) -> bool:
    """Whether the frequencies of a graph lie where Chebyshev polynomials are bounded; other graphs are told what is wrong with them."""
    return graph.undirected and graph.normalisation is Normalisation.SYMMETRIC


def kernels_run(task: Task) -> bool:
    """Whether there are kernels for the device and the numbers of a task."""
    return task.target.device.type == "cuda" and task.x.dtype == torch.float32
