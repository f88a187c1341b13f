"""Numbers of trained networks: accuracies on some nodes, and whatever else an experiment measures, seed by seed."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import Tensor

from unspool.datasets import Dataset
from unspool.report import counted
from unspool.reproduce.conditions import Condition, Nodes
from unspool.reproduce.records import Group, Measurement, Quantity, plain_settings
from unspool.reproduce.results import keep_measurements, read_measurements
from unspool.reproduce.runner import ExperimentRunner, TrainedNetwork
from unspool.train import Task, Trial


@torch.no_grad()
def accuracy(output: Tensor, task: Task, nodes: Tensor) -> float:
    """The share of some nodes whose largest output is their class; NaN where there are no nodes.

    Example:
        >>> from unspool import datasets
        >>> task = Task.of(datasets.contextual_sbm(nodes=60, classes=2, seed=0))
        >>> accuracy(torch.nn.functional.one_hot(task.target.long(), 2), task, task.test)
        1.0
    """
    return float((output[nodes].argmax(-1) == task.target[nodes]).double().mean())


def measure_networks(
    runner: ExperimentRunner,
    experiment: str,
    data: Dataset,
    trial: Trial,
    condition: Condition,
    seeds: int,
    numbers: Callable[[TrainedNetwork], Mapping[Quantity, float]],
) -> list[Measurement]:
    """Train a trial under several seeds and keep some numbers of each network: all seeds, or none where one failed.

    What is kept already is not trained again.
    """
    settings, group = plain_settings(runner.shortened(trial)), Group(data.name, trial.name, condition)
    folder = runner.workspace.results
    there = [one for one in read_measurements(folder, experiment) if one.group == group and one.settings == settings]
    if {one.seed for one in there} >= set(range(seeds)) or runner.workspace.stored:
        return [one for one in there if one.seed < seeds]
    runner.say(f"{experiment} on {data.name}: {trial.name}, {condition}, {counted(seeds, 'seed')}")
    networks = runner.train_networks(runner.loader(data), [trial.with_seed(seed) for seed in range(seeds)])
    if len(networks) < seeds:
        return []
    made = [
        Measurement(experiment, *group, network.trial.seed, quantity, Nodes.ALL, value, settings)
        for network in networks
        for quantity, value in numbers(network).items()
    ]
    keep_measurements(folder, experiment, made)
    return made
