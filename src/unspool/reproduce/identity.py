"""The identity outside W: does it make small matrices, and does a network with small matrices generalise better?

UGDGNN's hops are γ(ζI + ξW), JKNet's are W: the same functions on the same channels, in two parametrisations. The paper leaves the
identity outside *to promote the optimal weight matrices with small norms*, which *guarantees better generalization ability*. Both are
trained with the same settings, and norms, accuracies and their gaps are compared seed by seed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from unspool.datasets import Dataset
from unspool.models import UGDGNN, Channels, JKNet
from unspool.report.text import counted
from unspool.reproduce.alone import Trained, accuracy, settings_of, train_each
from unspool.reproduce.bench import Bench
from unspool.reproduce.claims import Answer, compare_values, corrected
from unspool.reproduce.measured import Measured, chosen, keep, read_measured
from unspool.reproduce.table2 import as_printed, check_sets
from unspool.study import Trial

#: The two parametrisations.
OUTSIDE, INSIDE = UGDGNN.__name__, JKNet.__name__


def run_identity(bench: Bench) -> list[Measured]:
    """Train both with UGDGNN's settings, and keep norms, accuracies and gaps in ``identity.csv``."""
    how = bench.scope.asked("identity")
    check_sets(how["datasets"])
    found: list[Measured] = []
    with bench.timed("identity"):
        for name in how["datasets"]:
            data = bench.data(name)
            printed = as_printed(UGDGNN, name, "paper")
            if data is None or printed is None:
                continue
            settings = {**printed.settings, "channels": Channels.CLASSES}
            for kind in (UGDGNN, JKNet):
                found += _one(bench, data, replace(printed, model=kind, settings=settings), how["seeds"])
    return found


def _one(bench: Bench, data: Dataset, trial: Trial, many: int) -> list[Measured]:
    trial = bench.shortened(trial)
    told, depth, seeds = settings_of(trial, data), float(trial.settings["depth"]), range(many)
    there = read_measured(bench.place.results, "identity")
    there = [o for o in there if o.cell == (data.name, trial.name, "depth", depth) and o.settings == told]
    if {one.seed for one in there} >= set(seeds) or bench.place.stored:
        return [one for one in there if one.seed in seeds]
    bench.say(f"identity on {data.name}: {trial.name}, {counted(len(seeds), 'seed')}")
    base = data.row_normalised() if trial.normalise_rows else data
    nets = train_each(bench, base, [replace(trial, seed=seed) for seed in seeds])
    if len(nets) < len(seeds):
        return []
    made = [
        Measured("identity", data.name, trial.name, "depth", depth, net.trial.seed, quantity, value, told)
        for net in nets
        for quantity, value in _numbers(net).items()
    ]
    keep(bench.place.results, "identity", made)
    return made


@torch.no_grad()
def _numbers(net: Trained) -> dict[str, float]:
    task, model = net.task, net.model
    output = model(task.x, task.graph)
    train, test = accuracy(output, task, task.train), accuracy(output, task, task.test)
    return {
        "norm": size_of(matrices(model)),
        "norm of hops": size_of(model.propagation.hops()),
        "train accuracy": train,
        "accuracy": test,
        "gap": train - test,
    }


def matrices(model: Any) -> Tensor:
    """The W of a network, as they are trained: without γ, ζ and ξ.

    Example:
        >>> matrices(UGDGNN(5, 3, depth=4)).shape, matrices(JKNet(5, 3, depth=4, channels=Channels.CLASSES)).shape
        (torch.Size([5, 3, 3]), torch.Size([5, 3, 3]))
    """
    net = model.propagation
    return net.weight if hasattr(net, "weight") else net.hops()


def size_of(stack: Tensor) -> float:
    """The root mean square over hops of the Frobenius norm.

    Example:
        >>> round(size_of(torch.stack([torch.eye(4), torch.zeros(4, 4)])), 4)
        1.4142
    """
    return float(stack.double().square().sum((-2, -1)).mean().sqrt())


#: What the paper says, the quantity that tells, whether less is better, and what the numbers are multiplied by.
SENTENCES = (
    ("the identity outside W makes W small", "norm", True, 1.0),
    ("the identity outside W makes the hops small", "norm of hops", True, 1.0),
    ("the identity outside W narrows the gap between training and test accuracy", "gap", True, 100.0),
    ("the identity outside W generalises better", "accuracy", False, 100.0),
)


def identity_answers(found: Sequence[Measured]) -> list[Answer]:
    """The four readings of the two sentences, data set by data set; p-values are corrected over sets (Holm).

    Example:
        >>> from unspool.reproduce.measured import example_measured
        >>> rows = [
        ...     example_measured(s, experiment="identity", dataset="cora", model=m, kind="depth", amount=5.0,
        ...                      quantity="norm", value=v + 0.01 * (s * len(m) % 5))
        ...     for s in range(6) for m, v in ((OUTSIDE, 1.0), (INSIDE, 2.0))
        ... ]
        >>> [(answer.sentence, answer.verdict.value) for answer in identity_answers(rows)]
        [('the identity outside W makes W small', 'holds')]
    """
    answers: list[Answer] = []
    for sentence, quantity, lower, times in SENTENCES:
        mine = chosen(found, quantity, lambda one: one.experiment == "identity")
        each: list[Answer] = []
        for name, model, kind, depth in mine:
            if model == OUTSIDE:
                other = mine.get((name, INSIDE, kind, depth), {})
                here = (OUTSIDE, mine[name, model, kind, depth])
                each += compare_values(sentence, name, here, (INSIDE, other), lower=lower, times=times)
        answers += corrected(each)
    return answers
