"""Corruption after training: networks that have learnt from clean data meet corrupted ones.

Where the corruption is there in training, weights can adapt to it. Here they cannot, so what a network loses is what its
propagation lets through: the case that the argument from the objective is about.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch

from unspool.datasets import Dataset
from unspool.report import counted
from unspool.reproduce.conditions import Condition, Phase
from unspool.reproduce.corrupt import corrupt, corruptions
from unspool.reproduce.measuring import accuracy
from unspool.reproduce.records import Record, plain_settings
from unspool.reproduce.results import read_records
from unspool.reproduce.runner import ExperimentRunner, TrainedNetwork
from unspool.train import Trial, TrialLoader


def run_after_training(
    runner: ExperimentRunner, data: Dataset, trials: Sequence[Trial], how: dict[str, Any]
) -> list[Record]:
    """Train each setting on clean data, for its weights, and test it on every corruption; ``robust.csv`` is written setting by setting.

    A setting that is there with all its seeds is not trained again; one that failed is tried again. Weights are not in the study, so
    nothing is new where only the study is read.
    """
    found: list[Record] = []
    conditions, seeds = corruptions(how, Phase.AFTER_TRAINING), how["seeds"]
    there = [
        record
        for record in read_records(runner.workspace.results, "robust")
        if record.dataset == data.name and record.condition in conditions and record.seed < seeds
    ]
    count = Counter(_key(record.model, record.plain_settings) for record in there)
    for name in dict.fromkeys(trial.name for trial in trials):
        own = [runner.shortened(trial) for trial in trials if trial.name == name]
        keys = {_key(name, {**plain_settings(trial), "draws": how["draws"]}): trial for trial in own}
        whole = {key for key in keys if count[key] == seeds * len(conditions)}
        missing = [trial for key, trial in keys.items() if key not in whole]
        records = [record for record in there if _key(name, record.plain_settings) in whole and record.model == name]
        if missing and not runner.workspace.stored:
            many = counted(seeds * len(missing), "network")
            runner.say(f"robust on {data.name}: {name}, {many}, corrupted after training")
            for trial in missing:
                records += _tested(runner, data, trial, how)
                runner.keep("robust", records)
        found += records
    return found


def _key(model: str, settings: dict[str, Any]) -> str:
    return json.dumps([model, settings], sort_keys=True)


def _tested(runner: ExperimentRunner, data: Dataset, trial: Trial, how: dict[str, Any]) -> list[Record]:
    """The seeds of one setting, trained and then tested on every corruption."""
    trials = [trial.with_seed(seed) for seed in range(how["seeds"])]
    networks = runner.train_networks(runner.loader(data), trials)
    if len(networks) < len(trials):  # all seeds or none
        return []
    base = data.row_normalised() if trial.normalise_rows else data
    records: list[Record] = []
    for condition in corruptions(how, Phase.AFTER_TRAINING):
        for draw in range(min(how["draws"], how["seeds"])):
            loader = runner.loader(corrupt(base, condition.factor, condition.amount / 100, draw))
            mine = [one for one in networks if one.trial.seed % how["draws"] == draw]
            records += [_record(one, data.name, condition, loader, how["draws"]) for one in mine]
    return records


@torch.no_grad()
def _record(network: TrainedNetwork, dataset: str, condition: Condition, loader: TrialLoader, draws: int) -> Record:
    """The record with the test score on other data; everything else is what it was in training."""
    task = loader.task(network.trial.seed)
    score = accuracy(network.model(task.x, task.graph), task, task.test)
    result = replace(network.result, test_score=score)
    return with_draws(Record.of("robust", dataset, network.trial, result, condition), draws)


def with_draws(record: Record, draws: int) -> Record:
    """A record that says how many different corruptions its seeds saw."""
    return replace(record, settings={**record.settings, "draws": draws})
