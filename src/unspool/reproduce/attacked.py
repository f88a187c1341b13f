"""Graphs that were attacked by others: what is left of each model when edges are changed on purpose, not at random.

The paper argues that AirGNN bears *abnormal node features*; about edges it says nothing. These graphs are here because a reader who
hears "robust" will ask, and because added edges at random are no adversary.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from unspool.reproduce.bench import Bench, Item
from unspool.reproduce.cells import choose
from unspool.reproduce.claims import Answer, compare_cells, corrected
from unspool.reproduce.recorded import settled
from unspool.reproduce.results import Record
from unspool.reproduce.robust import BY, lost, lost_by
from unspool.reproduce.settings import ATTACKED, read_settings


def run_attacked(bench: Bench) -> list[Record]:
    """Train on every strength of each attack, and keep the results in ``attacked.csv``."""
    how = bench.scope.asked("attacked")
    known = read_settings("attacked")["datasets"]
    strange = next((name for name in how["datasets"] if name not in known), None)
    if strange is not None:
        raise ValueError(
            f"{strange.removesuffix(ATTACKED)} is not a set with attacked graphs; there are {', '.join(known)}"
        )
    kept: list[Record] = []
    with bench.timed("attacked"):
        for name in how["datasets"]:
            for strength in how["strengths"]:
                rows = _one(bench, name, strength, how["seeds"])
                if bench.missing.keys() & set(_names(name, how["strengths"])):
                    break  # all strengths lie in one file: it is named once
                bench.keep("attacked", rows)
                kept += rows
    return kept


def _names(name: str, strengths: Sequence[int]) -> list[str]:
    return [f"{name}_{strength / 100:g}" if strength else name for strength in strengths]


def _one(bench: Bench, name: str, strength: int, seeds: int) -> list[Record]:
    data = bench.data(_names(name, [strength])[0])
    if data is None:
        return []
    data = replace(data, name=name)
    kinds, before = bench.scope.kinds("attacked"), name.removesuffix(ATTACKED)
    trials = settled(bench, "attacked", data, kinds, seeds, known_as=before).chosen.values()
    items = [Item(replace(trial, seed=seed), "paper") for trial in trials for seed in range(seeds)]
    return [done.record for done in bench.train("attacked", data, items, attack(strength))]


def attack(strength: int) -> str:
    """A strength in words; nothing for the graph before the attack.

    Example:
        >>> attack(5), attack(0)
        ('attacked 5 %', '')
    """
    return f"attacked {strength} %" if strength else ""


def attacked_answers(rows: Sequence[Record]) -> list[Answer]:
    """Whether the robust model of each pair loses less than its twin to the attack; p-values corrected over strengths (Holm).

    Example:
        >>> from unspool.reproduce.results import example_record
        >>> kept = {("AirGNN", ""): 0.8, ("APPNP", ""): 0.8, ("AirGNN", attack(25)): 0.7, ("APPNP", attack(25)): 0.5}
        >>> rows = [
        ...     example_record(s, experiment="attacked", dataset="cora_metattack", model=m, variant=v, depth=10,
        ...                    test_score=x - 0.001 * (s * len(m) % 4))
        ...     for (m, v), x in kept.items() for s in range(5)
        ... ]
        >>> [(answer.dataset, answer.verdict.value) for answer in attacked_answers(rows)]
        [('cora_metattack (attacked 25 %)', 'holds')]
    """
    found = {(c.first.dataset, c.first.variant, c.first.model, c.first.depth): c for c in choose(rows, BY)}
    answers: list[Answer] = []
    for robust, twin in read_settings("attacked")["pairs"]:
        each: list[Answer] = []
        for cell in [c for (_, variant, model, _), c in found.items() if variant and model == robust]:
            a, b = lost(cell, found, robust), lost_by(cell, found, twin)
            if a is not None and b is not None:
                each += compare_cells(f"{robust} loses less than {twin} to an attack on edges", a, b)
        answers += corrected(each)
    return answers
