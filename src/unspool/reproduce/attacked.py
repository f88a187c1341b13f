"""Graphs that were attacked by others: what is left of each model when edges are changed on purpose, not at random.

The paper argues that AirGNN bears *abnormal node features*; about edges it says nothing. These graphs are here because a reader who
hears "robust" will ask, and because added edges at random are not an adversary.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from unspool.errors import InputError
from unspool.reproduce.claims import Claim, ClaimTest, Topic, corrected
from unspool.reproduce.conditions import CLEAN, Condition, Factor
from unspool.reproduce.experiment_files import read_experiment
from unspool.reproduce.options import ATTACKED
from unspool.reproduce.recorded_settings import table2_settings
from unspool.reproduce.records import Record
from unspool.reproduce.robust import by_condition, losses
from unspool.reproduce.runner import ExperimentRunner


def run_attacked(runner: ExperimentRunner) -> list[Record]:
    """Train on every strength of each attack, and keep the results in ``attacked.csv``."""
    how = runner.options.experiment("attacked")
    known = read_experiment("attacked")["datasets"]
    unknown = next((name for name in how["datasets"] if name not in known), None)
    if unknown is not None:
        raise InputError("datasets", unknown.removesuffix(ATTACKED), f"sets with attacked graphs: {', '.join(known)}")
    kept: list[Record] = []
    with runner.timed("attacked"):
        for name in how["datasets"]:
            for strength in how["strengths"]:
                records = _one(runner, name, strength, how["seeds"])
                if runner.missing.keys() & {_file_name(name, one) for one in how["strengths"]}:
                    break  # all strengths lie in one file: it is named once
                runner.keep("attacked", records)
                kept += records
    return kept


def _file_name(name: str, strength: int) -> str:
    return f"{name}_{strength / 100:g}" if strength else name


def _one(runner: ExperimentRunner, name: str, strength: int, seeds: int) -> list[Record]:
    data = runner.dataset(_file_name(name, strength))
    if data is None:
        return []
    data, before = replace(data, name=name), name.removesuffix(ATTACKED)
    kinds = runner.options.model_classes("attacked")
    trials = table2_settings(runner, "attacked", data, kinds, seeds, known_as=before).chosen.values()
    condition = Condition(Factor.ATTACK, float(strength)) if strength else CLEAN
    seeded = [trial.with_seed(seed) for trial in trials for seed in range(seeds)]
    return list(runner.train("attacked", data, seeded, condition).values())


def attacked_tests(records: Sequence[Record]) -> list[ClaimTest]:
    """Whether the robust model of each pair loses less than its counterpart to the attack; p-values corrected over strengths (Holm).

    Example:
        >>> from unspool.reproduce.records import example_record
        >>> attack = Condition(Factor.ATTACK, 25.0)
        >>> kept = {("AirGNN", CLEAN): 0.8, ("APPNP", CLEAN): 0.8, ("AirGNN", attack): 0.7, ("APPNP", attack): 0.5}
        >>> records = [
        ...     example_record(s, experiment="attacked", dataset="cora_metattack", model=m, condition=c, depth=10,
        ...                    test_score=x - 0.001 * (s * len(m) % 4))
        ...     for (m, c), x in kept.items() for s in range(5)
        ... ]
        >>> [(str(test.condition), test.verdict.value) for test in attacked_tests(records)]
        [('attacked 25 %', 'holds')]
    """
    entries = by_condition(records)
    tests: list[ClaimTest] = []
    for robust, other in read_experiment("attacked")["pairs"]:
        claim = Claim(Topic.LOSES_LESS, f"{robust} loses less than {other} to an attack on edges")
        mine = [entry for (_, condition, model, _), entry in entries.items() if condition.amount and model == robust]
        tests += corrected(list(losses(claim, mine, entries, other)))
    return tests
