"""Damage after training: networks that have learnt from clean data meet corrupted ones.

Where the corruption is there in training, weights can learn to live with it. Here they cannot, so what a network loses is what its
propagation lets through: the case that the argument from the objective is about.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch

from unspool import study
from unspool.datasets import Dataset
from unspool.report.text import counted
from unspool.reproduce.alone import Trained, accuracy, as_record, train_each, where_to_train
from unspool.reproduce.bench import Bench
from unspool.reproduce.corrupt import Kind, corrupt
from unspool.reproduce.results import Record, read_rows
from unspool.study import Trial
from unspool.study.trial import Result

#: Ends the first part of the variants: ``features after training 30 %``.
AFTER = "after training"


def run_after(bench: Bench, data: Dataset, trials: Sequence[Trial], how: dict[str, Any]) -> list[Record]:
    """Train each setting on clean data, alone, and test it on every corruption; ``robust.csv`` is written setting by setting.

    A setting that is there with all its seeds is not trained again; one that failed is tried again. Weights are not in the study, so
    nothing is new where only the study is read.
    """
    found: list[Record] = []
    names = {variant for _, _, variant in _variants(how)}
    there = [r for r in read_rows(bench.place.results, "robust") if r.dataset == data.name and r.variant in names]
    for name in dict.fromkeys(trial.name for trial in trials):
        own = [
            bench.shortened(replace(trial, seed=seed))
            for trial in trials if trial.name == name for seed in range(how["seeds"])
        ]  # fmt: skip
        whole = Counter(row.setting for row in there if row.seed < how["seeds"])
        done = {setting for setting, count in whole.items() if count == how["seeds"] * len(names)}
        settings: dict[Any, list[Trial]] = {}
        for trial in own:
            settings.setdefault(_record(trial, data, "", how, None).setting, []).append(trial)
        missing = [some for setting, some in settings.items() if setting not in done]
        rows = [row for row in there if row.setting in settings.keys() & done and row.seed < how["seeds"]]
        if missing and not bench.place.stored:
            many = counted(sum(map(len, missing)), "network")
            bench.say(f"robust on {data.name}: {name}, {many}, damaged {AFTER}")
            for some in missing:
                rows += _tested(bench, data, some, how)
                bench.keep("robust", rows)
        found += rows
    return found


def _variants(how: dict[str, Any]) -> list[tuple[Kind, int, str]]:
    """Every kind with every share, and in words; clean data in each kind, so that its curve begins with the same networks."""
    kinds = [Kind(word) for word in how["kinds"]]
    shares = sorted({0, *how["shares"]})
    return [(kind, share, f"{kind.value} {AFTER} {share} %") for kind in kinds for share in shares]


def _tested(bench: Bench, data: Dataset, trials: Sequence[Trial], how: dict[str, Any]) -> list[Record]:
    """The seeds of one setting, trained and then damaged."""
    base = data.row_normalised() if trials[0].normalise_rows else data
    nets = train_each(bench, base, trials)
    rows: list[Record] = []
    for kind, share, variant in _variants(how) if len(nets) == len(trials) else []:  # all seeds or none
        for draw in range(min(how["draws"], how["seeds"])):
            provide = study.Provider(corrupt(base, kind, share / 100, draw), where_to_train(bench))
            mine = [net for net in nets if net.trial.seed % how["draws"] == draw]
            rows += [_record(net.trial, data, variant, how, _score(net, provide)) for net in mine]
    return rows


@torch.no_grad()
def _score(net: Trained, provide: study.Provider) -> Result:
    """The result with the test score on other data; everything else is what it was in training."""
    task = provide(replace(net.trial, normalise_rows=False)).task
    return replace(net.result, test_score=accuracy(net.model(task.x, task.graph), task, task.test))


def _record(trial: Trial, data: Dataset, variant: str, how: dict[str, Any], result: Result | None) -> Record:
    return drawn(as_record("robust", trial, data, variant, result), how["draws"])


def drawn(row: Record, draws: int) -> Record:
    """A row that says how many different damages its seeds saw; those of older files saw two, and do not say so."""
    return replace(row, settings={**row.settings, "draws": draws})
