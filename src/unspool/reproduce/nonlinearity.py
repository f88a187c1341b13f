"""Does nonlinearity hurt depth? One network with and without H ≥ 0, and what becomes of its Dirichlet energy along depth.

The paper builds UGDGNN without nonlinear steps because *some recent works have empirically demonstrated that the nonlinearities are the
main factor for performance degradations in deep GNNs*. Here the two networks are the same but for the constraint.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from unspool.graph import Graph
from unspool.reproduce.ablations import WithNonNegative, WithoutNonNegative
from unspool.reproduce.claims import Claim, ClaimTest, Topic, compare_values, corrected
from unspool.reproduce.conditions import Condition, Factor
from unspool.reproduce.measuring import accuracy, measure_networks
from unspool.reproduce.records import Group, Measurement, Quantity, by_group
from unspool.reproduce.runner import ExperimentRunner, TrainedNetwork
from unspool.train import TrainConfig, Trial

#: With and without the constraint.
WITH, WITHOUT = WithNonNegative.__name__, WithoutNonNegative.__name__


def run_nonlinearity(runner: ExperimentRunner) -> list[Measurement]:
    """Train both networks at every depth, and keep accuracies and energies in ``nonlinearity.csv``."""
    how = runner.options.experiment("nonlinearity")
    found: list[Measurement] = []
    with runner.timed("nonlinearity"):
        for data in runner.datasets(how["datasets"]):
            for teleport in how["teleports"]:
                factor = Factor.GCNII_DEPTH if teleport else Factor.GCN_DEPTH
                for depth in how["depths"]:
                    condition = Condition(factor, float(depth))
                    for kind in (WithNonNegative, WithoutNonNegative):
                        trial = _trial(kind, teleport, depth, how)
                        found += measure_networks(
                            runner, "nonlinearity", data, trial, condition, how["seeds"], _numbers
                        )
    return found


def _trial(kind: type[WithoutNonNegative], teleport: float, depth: int, how: dict[str, Any]) -> Trial:
    plain = {name: how[name] for name in ("lr", "weight_decay", "epochs", "stop")}
    config = TrainConfig(**TrainConfig.schema.from_plain(plain))
    settings = {"depth": depth, "teleport": teleport, "dropout": how["dropout"]}
    return Trial(kind, settings, config, normalise_rows=True)


@torch.no_grad()
def _numbers(network: TrainedNetwork) -> dict[Quantity, float]:
    """Accuracies of the selected epoch, and how much of the energy of X is left after the layers."""
    task, model = network.task, network.model
    x = model.p_pre(task.x)
    output = model(task.x, task.graph)
    h = model.propagation(x, task.graph.with_general_laplacian())
    return {
        Quantity.ACCURACY: accuracy(output, task, task.test),
        Quantity.TRAIN_ACCURACY: accuracy(output, task, task.train),
        Quantity.ENERGY: roughness(h, task.graph),
        Quantity.INPUT_ENERGY: roughness(x, task.graph),
    }


def roughness(h: Tensor, graph: Graph) -> float:
    """The Dirichlet energy over the size, tr HᵀLH / ‖H‖²: 0 for what is as smooth as the graph allows, at most 2; 0 for H = 0.

    Example:
        >>> import unspool as us
        >>> roughness(torch.ones(6, 2), us.graph.ring(6)), roughness(torch.tensor([[1.0], [-1]] * 3), us.graph.ring(6))
        (0.0, 1.3333...)
    """
    size = float(h.double().square().sum())
    if size == 0:
        return 0.0
    return max(0.0, float((h * (h - graph @ h)).double().sum()) / size)


def nonlinearity_tests(measurements: Sequence[Measurement]) -> list[ClaimTest]:
    """Whether the network without H ≥ 0 is better at each depth, and whether it loses less from the fewest layers to more of them.

    P-values are corrected over depths, problems and sets (Holm).

    Example:
        >>> from unspool.reproduce.records import example_measurement
        >>> found = [
        ...     example_measurement(s, experiment="nonlinearity", dataset="cora", model=m, condition=Condition(Factor.GCN_DEPTH, 32.0),
        ...                         quantity=Quantity.ACCURACY, value=v + 0.001 * (s * len(m) % 5))
        ...     for s in range(6) for m, v in ((WITH, 0.5), (WITHOUT, 0.7))
        ... ]
        >>> [(str(test.condition), test.verdict.value) for test in nonlinearity_tests(found)]
        [("GCN's problem, 32 layers", 'holds')]
    """
    hurts = Claim(Topic.NONLINEARITY_HURTS, "nonlinearity hurts")
    costs = Claim(Topic.DEPTH_COSTS_MORE, "depth costs more with nonlinearity", lower=True)
    found = by_group(measurements, Quantity.ACCURACY)
    tests: dict[Claim, list[ClaimTest]] = {hurts: [], costs: []}
    for name, factor in dict.fromkeys((group.dataset, group.condition.factor) for group in found):
        depths = sorted({g.condition.amount for g in found if (g.dataset, g.condition.factor) == (name, factor)})
        scores = {
            (model, depth): found.get(Group(name, model, Condition(factor, depth)), {})
            for model in (WITHOUT, WITH)
            for depth in depths
        }
        for depth in depths:
            condition = Condition(factor, depth)
            sides = [(model, scores[model, depth]) for model in (WITHOUT, WITH)]
            tests[hurts] += compare_values(hurts, name, condition, *sides)
            if depth > depths[0]:
                first = {model: scores[model, depths[0]] for model in (WITHOUT, WITH)}
                lost = [(m, {s: first[m][s] - v for s, v in now.items() if s in first[m]}) for m, now in sides]
                tests[costs] += compare_values(costs, name, condition, *lost)
    return [test for each in tests.values() for test in corrected(each)]
