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

from unspool.models import UGDGNN, Channels, JKNet
from unspool.reproduce.claims import Claim, ClaimTest, Topic, compare_values, corrected
from unspool.reproduce.conditions import Condition, Factor
from unspool.reproduce.measuring import accuracy, measure_networks
from unspool.reproduce.presets import PAPER
from unspool.reproduce.records import Measurement, Quantity, by_group
from unspool.reproduce.runner import ExperimentRunner, TrainedNetwork
from unspool.reproduce.table2 import check_datasets

#: The two parametrisations.
OUTSIDE, INSIDE = UGDGNN.__name__, JKNet.__name__


def run_identity(runner: ExperimentRunner) -> list[Measurement]:
    """Train both with UGDGNN's settings, and keep norms, accuracies and gaps in ``identity.csv``."""
    how = runner.options.experiment("identity")
    check_datasets(how["datasets"])
    found: list[Measurement] = []
    with runner.timed("identity"):
        for data in runner.datasets(how["datasets"]):
            printed = PAPER.trial(UGDGNN, data.name)
            settings = {**printed.settings, "channels": Channels.CLASSES}
            condition = Condition(Factor.DEPTH, float(printed.settings["depth"]))
            for kind in (UGDGNN, JKNet):
                trial = replace(printed, model=kind, settings=settings)
                found += measure_networks(runner, "identity", data, trial, condition, how["seeds"], _numbers)
    return found


@torch.no_grad()
def _numbers(network: TrainedNetwork) -> dict[Quantity, float]:
    task, model = network.task, network.model
    output = model(task.x, task.graph)
    train, test = accuracy(output, task, task.train), accuracy(output, task, task.test)
    return {
        Quantity.WEIGHT_NORM: size_of(matrices(model)),
        Quantity.HOP_NORM: size_of(model.propagation.hops()),
        Quantity.TRAIN_ACCURACY: train,
        Quantity.ACCURACY: test,
        Quantity.GAP: train - test,
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


#: What the paper says, and the quantity that tells.
_CLAIMS = {
    Quantity.WEIGHT_NORM: Claim(Topic.SMALL_WEIGHTS, "the identity outside W makes W small", lower=True, scale=1.0),
    Quantity.HOP_NORM: Claim(Topic.SMALL_HOPS, "the identity outside W makes the hops small", lower=True, scale=1.0),
    Quantity.GAP: Claim(
        Topic.SMALL_GAP, "the identity outside W narrows the gap between training and test accuracy", lower=True
    ),
    Quantity.ACCURACY: Claim(Topic.GENERALISES, "the identity outside W generalises better"),
}


def identity_tests(measurements: Sequence[Measurement]) -> list[ClaimTest]:
    """The four meanings of the two sentences, dataset by dataset; p-values are corrected over sets (Holm).

    Example:
        >>> from unspool.reproduce.records import example_measurement
        >>> found = [
        ...     example_measurement(s, experiment="identity", dataset="cora", model=m, condition=Condition(Factor.DEPTH, 5.0),
        ...                         quantity=Quantity.WEIGHT_NORM, value=v + 0.01 * (s * len(m) % 5))
        ...     for s in range(6) for m, v in ((OUTSIDE, 1.0), (INSIDE, 2.0))
        ... ]
        >>> [(test.claim.topic.name, test.verdict.value) for test in identity_tests(found)]
        [('SMALL_WEIGHTS', 'holds')]
    """
    tests: list[ClaimTest] = []
    for quantity, claim in _CLAIMS.items():
        found = by_group(measurements, quantity)
        each: list[ClaimTest] = []
        for group, values in found.items():
            if group.model == OUTSIDE:
                other = found.get(group._replace(model=INSIDE), {})
                each += compare_values(claim, group.dataset, None, (OUTSIDE, values), (INSIDE, other))
        tests += corrected(each)
    return tests
