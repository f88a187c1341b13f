"""Robustness: the ℓ2,1 fidelity against its ℓ2 twin on corrupted data.

The paper argues from the objective that AirGNN, whose fidelity is a sum of row lengths and not of their squares, forgives rows
that are far off. The sentence is about long rows where the problem sees them: ``signals.py`` solves the problems themselves, and
``damage.py`` damages rows behind the encoder. Here, and in ``after.py``, features are damaged in front of it, and edges are added: in
training and testing alike, and after networks have been trained on clean data.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from unspool.datasets import Dataset
from unspool.reproduce.after import AFTER, drawn, run_after
from unspool.reproduce.bench import Bench, Item
from unspool.reproduce.cells import Cell, choose
from unspool.reproduce.claims import Answer, compare_cells, corrected
from unspool.reproduce.corrupt import Kind, corrupt
from unspool.reproduce.damage import run_damage
from unspool.reproduce.recorded import settled
from unspool.reproduce.results import Record
from unspool.reproduce.settings import read_settings
from unspool.reproduce.signals import run_signals
from unspool.reproduce.table2 import check_sets
from unspool.study import Trial


def run_robust(bench: Bench) -> list[Record]:
    """Run the parts that are asked for; rows of networks whose features were damaged go to ``robust.csv``, and are returned."""
    how = bench.scope.asked("robust")
    check_sets(how["datasets"])
    kept: list[Record] = []
    with bench.timed("robust"):
        if "signals" in how["parts"]:
            run_signals(bench)
        if "damage" in how["parts"]:
            run_damage(bench)
        for name in how["datasets"] if {"always", "after"} & set(how["parts"]) else []:
            data = bench.data(name)
            if data is not None:
                kept += _in_front(bench, data, how)
    return kept


def _in_front(bench: Bench, data: Dataset, how: dict[str, Any]) -> list[Record]:
    """Features damaged in front of the encoder, and edges added, on one data set."""
    found = settled(bench, "robust", data, bench.scope.kinds("robust"), how["seeds"])
    trials = [*found.chosen.values(), *_converged(found.chosen, how)]
    rows: list[Record] = []
    for kind, share in variants(how) if "always" in how["parts"] else []:
        rows += _trained(bench, data, trials, kind, share, how)
    bench.keep("robust", rows, found.searches)
    return [*rows, *(run_after(bench, data, trials, how) if "after" in how["parts"] else [])]


def variants(how: dict[str, Any]) -> list[tuple[Kind, int]]:
    """What is done to the data: every kind with every share; clean data once.

    Example:
        >>> [variant(*one) for one in variants({"kinds": ["features", "edges"], "shares": [0, 10]})]
        ['', 'features 10 %', 'edges 10 %']
    """
    kinds = [Kind(word) for word in how["kinds"]]
    worse = [(kind, share) for kind in kinds for share in how["shares"] if share]
    return [(kinds[0], 0), *worse] if 0 in how["shares"] else worse


def variant(kind: Kind, share: int) -> str:
    """A corruption in words; nothing for clean data."""
    return f"{kind.value} {share} %" if share else ""


def damage(variant: str) -> tuple[str, float] | None:
    """What a variant says: which kind of damage, and how many per cent; None if it says neither.

    Example:
        >>> damage("features 30 %"), damage(""), damage("shuffled")
        (('features', 30.0), ('', 0.0), None)
    """
    if not variant:
        return "", 0.0
    found = re.fullmatch(r"(.+?)\s+(\d+(?:\.\d+)?)\s*%", variant)
    return None if found is None else (found.group(1), float(found.group(2)))


def _converged(chosen: dict[str, Trial], how: dict[str, Any]) -> list[Trial]:
    """Robust models near their minimiser, as twins of PPNP."""
    wanted = {(name, depth) for name, depth, _ in how["pairs"] if depth}
    return [
        replace(chosen[name], settings={**chosen[name].settings, "depth": depth})
        for name, depth in sorted(wanted)
        if name in chosen and chosen[name].settings.get("depth") != depth
    ]


def _trained(
    bench: Bench, data: Dataset, trials: Sequence[Trial], kind: Kind, share: int, how: dict[str, Any]
) -> list[Record]:
    rows: list[Record] = []
    draws = how["draws"] if share else 1  # clean data are the same in every draw
    for normalise in sorted({trial.normalise_rows for trial in trials}):
        # Trap: noise has negative entries, and rows that are scaled to sum 1 after it would be another corruption.
        base = data.row_normalised() if normalise else data
        mine = [replace(trial, normalise_rows=False) for trial in trials if trial.normalise_rows is normalise]
        for draw in range(min(draws, how["seeds"])):
            seeds = range(draw, how["seeds"], draws)
            items = [Item(replace(trial, seed=seed), "paper") for trial in mine for seed in seeds]
            done = bench.train("robust", corrupt(base, kind, share / 100, draw), items, variant(kind, share))
            # Rows were scaled before the damage, which the trial does not know.
            scaled = {"rows": "normalised"} if normalise else {}
            told = [replace(one.record, settings={**one.record.settings, **scaled}) for one in done]
            rows += [drawn(row, how["draws"]) for row in told]
    seeds = Counter((row.model, row.depth) for row in rows)  # a draw may be missing in a run that was cut off
    return [row for row in rows if seeds[row.model, row.depth] == how["seeds"]]


def robust_answers(rows: Sequence[Record]) -> list[Answer]:
    """Whether the robust model of each pair loses less than its twin from clean to corrupted data.

    What is compared is each seed's loss of accuracy, so a model that is better on clean data has no advantage. P-values are corrected
    over all corruptions of a pair (Holm), those after training by themselves.

    Example:
        >>> from unspool.reproduce.results import example_record
        >>> lost = {("AirGNN", ""): 0.0, ("APPNP", ""): 0.0, ("AirGNN", "edges 50 %"): 0.02, ("APPNP", "edges 50 %"): 0.2}
        >>> rows = [
        ...     example_record(s, experiment="robust", model=m, variant=v, depth=10, test_score=0.8 - x - 0.001 * (s * len(m) % 4))
        ...     for (m, v), x in lost.items() for s in range(5)
        ... ]
        >>> [(answer.dataset, answer.verdict.value) for answer in robust_answers(rows)]
        [('cora (edges 50 %)', 'holds')]
    """
    found = {(c.first.dataset, c.first.variant, c.first.model, c.first.depth): c for c in choose(rows, BY)}
    answers: list[Answer] = []
    for robust, depth, twin in read_settings("robust")["pairs"]:
        sentence = f"{robust}{f' of depth {depth}' if depth else ''} loses less than {twin}"
        some = [c for (_, v, m, _), c in found.items() if v and m == robust and _is_depth(c, depth)]
        for after in (False, True):
            each: list[Answer] = []
            words = f"{sentence} where damage comes {AFTER}" if after else sentence
            for cell in some:
                if (AFTER in cell.first.variant) is not after or cell.first.variant == _clean(cell.first.variant):
                    continue
                a, b = lost(cell, found, robust), lost_by(cell, found, twin)
                each += compare_cells(words, a, b) if a is not None and b is not None else []
            answers += corrected(each)
    return answers


def _clean(variant: str) -> str:
    """What a variant is compared with: clean data, and the same networks on them where damage comes after training.

    Example:
        >>> _clean("edges 30 %"), _clean("edges after training 30 %")
        ('', 'edges after training 0 %')
    """
    return f"{variant.partition(AFTER)[0]}{AFTER} 0 %" if AFTER in variant else ""


#: What tells the cells of damaged data apart.
BY = ("dataset", "variant", "model", "depth")


def _is_depth(cell: Cell, depth: int) -> bool:
    converged = read_settings("robust")["converged"]
    return cell.first.depth == depth if depth else cell.first.depth != converged


def lost_by(cell: Cell, found: dict[Any, Cell], twin: str) -> Cell | None:
    """The same of another model on the same data."""
    there = (cell.first.dataset, cell.first.variant, twin)
    other = next((c for key, c in found.items() if key[:3] == there), None)
    return None if other is None else lost(other, found, twin)


def lost(cell: Cell, found: dict[Any, Cell], model: str) -> Cell | None:
    """The cell with differences to clean data in the place of test scores, seed by seed."""
    clean = found.get((cell.first.dataset, _clean(cell.first.variant), model, cell.first.depth))
    if clean is None:
        return None
    before = {row.seed: row.test_score for row in clean.rows}
    rows = [replace(row, test_score=row.test_score - before[row.seed]) for row in cell.rows if row.seed in before]
    return Cell(tuple(rows)) if rows else None
