"""Robustness: the ℓ2,1 fidelity against an ℓ2 one on corrupted data.

The paper argues from the objective that AirGNN, whose fidelity is a sum of row lengths and not of their squares, forgives rows
that are far off. The sentence is about long rows where the problem sees them: ``signals.py`` solves the problems themselves, and
``damage.py`` damages rows behind the encoder. Here, and in ``corrupt_after_training.py``, features are damaged in front of it, and edges are
added: in training and testing alike, and after networks have been trained on clean data.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from unspool.datasets import Dataset
from unspool.reproduce.claims import Claim, ClaimTest, Topic, compare_entries, corrected
from unspool.reproduce.conditions import CLEAN, Condition, Phase
from unspool.reproduce.corrupt import corrupt, corruptions
from unspool.reproduce.corrupt_after_training import run_after_training, with_draws
from unspool.reproduce.damage import run_damage
from unspool.reproduce.entries import Entry, choose
from unspool.reproduce.experiment_files import read_experiment
from unspool.reproduce.recorded_settings import table2_settings
from unspool.reproduce.records import Record
from unspool.reproduce.runner import ExperimentRunner
from unspool.reproduce.signals import run_signals
from unspool.reproduce.table2 import check_datasets
from unspool.train import Trial

#: What tells the entries of corrupted data apart.
BY = ("dataset", "condition", "model", "depth")
Entries = Mapping[tuple[str, Condition, str, int | None], Entry]


def run_robust(runner: ExperimentRunner) -> list[Record]:
    """Run the parts that are asked for; records of networks whose features were corrupted go to ``robust.csv``, and are returned."""
    how = runner.options.experiment("robust")
    check_datasets(how["datasets"])
    kept: list[Record] = []
    with runner.timed("robust"):
        if "signals" in how["parts"]:
            run_signals(runner)
        if "damage" in how["parts"]:
            run_damage(runner)
        if {"always", "after"} & set(how["parts"]):
            for data in runner.datasets(how["datasets"]):
                kept += _in_front(runner, data, how)
    return kept


def _in_front(runner: ExperimentRunner, data: Dataset, how: dict[str, Any]) -> list[Record]:
    """Features corrupted in front of the encoder, and edges added, on one dataset."""
    found = table2_settings(runner, "robust", data, runner.options.model_classes("robust"), how["seeds"])
    trials = [*found.chosen.values(), *_converged(found.chosen, how)]
    records: list[Record] = []
    for condition in corruptions(how, Phase.ALWAYS) if "always" in how["parts"] else []:
        records += _trained(runner, data, trials, condition, how)
    runner.keep("robust", records, found.searches)
    return [*records, *(run_after_training(runner, data, trials, how) if "after" in how["parts"] else [])]


def _converged(chosen: Mapping[str, Trial], how: dict[str, Any]) -> list[Trial]:
    """Robust models near their minimiser, as counterparts of PPNP."""
    wanted = {(name, depth) for name, depth, _ in how["pairs"] if depth}
    return [
        replace(chosen[name], settings={**chosen[name].settings, "depth": depth})
        for name, depth in sorted(wanted)
        if name in chosen and chosen[name].settings.get("depth") != depth
    ]


def _trained(
    runner: ExperimentRunner, data: Dataset, trials: Sequence[Trial], condition: Condition, how: dict[str, Any]
) -> list[Record]:
    records: list[Record] = []
    draws = how["draws"] if condition.amount else 1  # clean data are the same in every draw
    for normalise in sorted({trial.normalise_rows for trial in trials}):
        # Trap: noise has negative entries, and rows that are scaled to sum 1 after it would be another corruption.
        base = data.row_normalised() if normalise else data
        mine = [replace(trial, normalise_rows=False) for trial in trials if trial.normalise_rows is normalise]
        for draw in range(min(draws, how["seeds"])):
            seeded = [trial.with_seed(seed) for trial in mine for seed in range(draw, how["seeds"], draws)]
            worse = base if condition == CLEAN else corrupt(base, condition.factor, condition.amount / 100, draw)
            for record in runner.train("robust", worse, seeded, condition).values():
                # Rows were scaled before the corruption, which the trial does not know.
                settings = {**record.settings, "normalise_rows": normalise}
                records.append(with_draws(replace(record, settings=settings), how["draws"]))
    seeds = Counter((one.model, one.depth) for one in records)  # a draw may be missing in a run that was cut off
    return [one for one in records if seeds[one.model, one.depth] == how["seeds"]]


def robust_tests(records: Sequence[Record]) -> list[ClaimTest]:
    """Whether the robust model of each pair loses less than its counterpart from clean to corrupted data.

    What is compared is each seed's loss of accuracy, so a model that is better on clean data has no advantage. P-values are corrected
    over all corruptions of a pair (Holm), those after training by themselves.

    Example:
        >>> from unspool.reproduce.records import example_record
        >>> from unspool.reproduce.conditions import Factor
        >>> edges = Condition(Factor.EDGES, 50.0)
        >>> lost = {("AirGNN", CLEAN): 0.0, ("APPNP", CLEAN): 0.0, ("AirGNN", edges): 0.02, ("APPNP", edges): 0.2}
        >>> records = [
        ...     example_record(s, experiment="robust", model=m, condition=c, depth=10, test_score=0.8 - x - 0.001 * (s * len(m) % 4))
        ...     for (m, c), x in lost.items() for s in range(5)
        ... ]
        >>> [(test.dataset, str(test.condition), test.verdict.value) for test in robust_tests(records)]
        [('cora', 'edges 50 %', 'holds')]
    """
    entries = by_condition(records)
    tests: list[ClaimTest] = []
    for robust, depth, other in read_experiment("robust")["pairs"]:
        sentence = f"{robust}{f' of depth {depth}' if depth else ''} loses less than {other}"
        some = [entry for (_, _, model, _), entry in entries.items() if model == robust and _is_depth(entry, depth)]
        for phase, more in ((Phase.ALWAYS, ""), (Phase.AFTER_TRAINING, " where damage comes after training")):
            claim = Claim(Topic.LOSES_LESS, f"{sentence}{more}")
            mine = [one for one in some if one.first.condition.amount and one.first.condition.phase is phase]
            tests += corrected(list(losses(claim, mine, entries, other)))
    return tests


def by_condition(records: Sequence[Record]) -> Entries:
    """The entries of corrupted and clean data, by dataset, condition, model and depth."""
    return {(e.first.dataset, e.first.condition, e.first.model, e.first.depth): e for e in choose(records, BY)}


def losses(claim: Claim, mine: Sequence[Entry], entries: Entries, other: str) -> Iterator[ClaimTest]:
    """Tests of what entries lose from clean data against what another model loses on the same data."""
    for entry in mine:
        first = entry.first
        there = next((e for key, e in entries.items() if key[:3] == (first.dataset, first.condition, other)), None)
        a, b = _change(entry, entries), None if there is None else _change(there, entries)
        if a is not None and b is not None:
            yield from compare_entries(claim, a, b)


def _is_depth(entry: Entry, depth: int) -> bool:
    converged = read_experiment("robust")["converged"]
    return entry.first.depth == depth if depth else entry.first.depth != converged


def _change(entry: Entry, entries: Entries) -> Entry | None:
    """The entry with differences to clean data in the place of test scores, seed by seed."""
    first = entry.first
    clean = entries.get((first.dataset, first.condition.reference, first.model, first.depth))
    if clean is None:
        return None
    before = {one.seed: one.result.test_score for one in clean.records}
    changed = [
        replace(one, result=replace(one.result, test_score=one.result.test_score - before[one.seed]))
        for one in entry.records
        if one.seed in before
    ]
    return Entry(tuple(changed)) if changed else None
