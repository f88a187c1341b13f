"""Damage after training: networks that have learnt from clean data meet corrupted ones.

Where the corruption is there in training, weights can learn to live with it. Here they cannot, so what a network loses is what its
propagation lets through: the case that the argument from the objective is about.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import nn

from unspool import study, train
from unspool.datasets import Dataset
from unspool.report.text import counted
from unspool.reproduce.bench import Bench, record
from unspool.reproduce.corrupt import Kind, corrupt
from unspool.reproduce.results import Record, read_rows
from unspool.study import Row, Status, Trial
from unspool.study.trial import Result

#: Seconds between two lines about how training is getting on.
EVERY = 15.0
#: Ends the first part of the variants: ``features after training 30 %``.
AFTER = "after training"


@dataclass(frozen=True, eq=False)
class _Trained:
    """A network with the weights of its selected epoch, and how it got them."""

    trial: Trial
    model: nn.Module
    result: Result


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
            settings.setdefault(_record(trial, data, "", None).setting, []).append(trial)
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
    where = bench.place.device or ("cuda" if torch.cuda.is_available() else "cpu")
    base = data.row_normalised() if trials[0].normalise_rows else data
    nets: list[_Trained] = []
    began = said_at = time.monotonic()
    for count, trial in enumerate(trials):
        if count and time.monotonic() - said_at > EVERY:
            said_at = time.monotonic()
            left = (said_at - began) / count * (len(trials) - count)
            bench.say(f"  {count} of {counted(len(trials), 'network')}, about {left:.0f} s left")
        try:
            nets.append(_train(trial, base, where))
        except Exception as problem:  # as in a study, what fails by itself leaves the others alone
            said = f"{trial.name} on {data.name}: {type(problem).__name__}: {problem}"
            bench.failed = list(dict.fromkeys([*bench.failed, said]))
        else:
            bench.trained += 1
    rows: list[Record] = []
    for kind, share, variant in _variants(how) if len(nets) == len(trials) else []:  # all seeds or none
        for draw in range(min(how["draws"], how["seeds"])):
            provide = study.Provider(corrupt(base, kind, share / 100, draw), where)
            mine = [net for net in nets if net.trial.seed % how["draws"] == draw]
            rows += [_record(net.trial, data, variant, _score(net, provide)) for net in mine]
    return rows


def _train(trial: Trial, base: Dataset, where: str) -> _Trained:
    member = study.Provider(base, where)(replace(trial, normalise_rows=False))
    model = member.model.to(member.task.target.device)
    run = train.fit(model, member.task, trial.plan)
    if run.reason == "interrupted":  # a part of a training is no result
        raise KeyboardInterrupt
    best = run.best
    result = Result(
        best.epoch, len(run.history), best.train_loss, best.valid_loss, best.valid_score, best.test_score, run.reason, run.seconds
    )  # fmt: skip
    return _Trained(trial, model.eval(), result)


@torch.no_grad()
def _score(net: _Trained, provide: study.Provider) -> Result:
    """The result with the test score on other data; everything else is what it was in training."""
    task = provide(replace(net.trial, normalise_rows=False)).task
    output = net.model(task.x, task.graph)[task.test]
    return replace(net.result, test_score=float((output.argmax(-1) == task.target[task.test]).double().mean()))


def _record(trial: Trial, data: Dataset, variant: str, result: Result | None) -> Record:
    nothing = Result(0, 0, 0.0, 0.0, 0.0, 0.0, "", 0.0)
    row = Row("", 0, data.name, trial.describe(), Status.DONE, nothing if result is None else result, None, None, "")
    return record("robust", data.name, "paper", variant, row)
