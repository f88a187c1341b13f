"""The table: ours and GRAND beside the highest published numbers, with splits, protocols and paired tests."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from unspool.errors import DataError
from unspool.reproduce.experiment_files import read_experiment
from unspool.reproduce.lead.finals import ALONE, AVERAGED, WHOLE, Final
from unspool.reproduce.lead.plan import Plan
from unspool.study.results.comparison import holm, paired_t


@dataclass(frozen=True)
class Pair:
    """Two evaluations of the same seeds on one data set.

    Attributes:
        gap: the mean difference in points, the first less the second.
        p: of the paired t-test, corrected by Holm's method over the pairs of a table.
    """

    dataset: str
    first: Final
    second: Final
    gap: float
    p: float


def pairs(rows: Iterable[Final], first: tuple[str, str], second: tuple[str, str]) -> list[Pair]:
    """Two entries, each with its variant, on every data set that has both, under the last space that was searched there.

    Example:
        >>> pairs([], ("StableGNN", "as chosen"), ("GRAND", "as chosen"))
        []
    """
    held = {(one.dataset, one.entry, one.variant): one for one in current(rows)}
    found = [
        (name, held[name, *first], held[name, *second])
        for name in _datasets(held)
        if (name, *first) in held and (name, *second) in held
    ]
    for name, a, b in found:
        if (a.split, a.first_seed, a.seeds) != (b.split, b.first_seed, b.seeds):
            raise DataError(
                name,
                f"{a.entry} was evaluated on {a.split} from seed {a.first_seed} and {b.entry} on {b.split} from seed {b.first_seed}, "
                "which are no pairs",
                "run both",
            )
    gaps = [np.array(a.scores) - np.array(b.scores) for _, a, b in found]
    corrected = holm([paired_t(gap) for gap in gaps])
    return [
        Pair(name, a, b, 100 * float(gap.mean()), p)
        for (name, a, b), gap, p in zip(found, gaps, corrected, strict=True)
    ]


def current(rows: Iterable[Final]) -> list[Final]:
    """The evaluations of the space that was frozen last on each data set; those of earlier ones stay in the file alone."""
    rows = list(rows)
    last = {one.dataset: one.space for one in rows}
    return [one for one in rows if one.space == last[one.dataset]]


def _datasets(held: Iterable[tuple[str, str, str]]) -> list[str]:
    return list(dict.fromkeys(name for name, _, _ in held))


def lines(rows: Sequence[Final], plan: Plan) -> list[str]:
    """The table as text: one line for each data set, then the parts that were left out.

    Example:
        >>> lines([], Plan.read())
        ['nothing has been evaluated yet']
    """
    rows = [one for one in current(rows) if one.dataset in plan.datasets]
    if not rows:
        return ["nothing has been evaluated yet"]
    ours, other = plan.entries[:2]
    published = read_experiment("published")
    out = [f"{'set':20} {ours:16} {other:16} {'gap':>6}  {'p':>6}  published (protocol, from where)   split"]
    against = {pair.dataset: pair for pair in pairs(rows, (ours, WHOLE), (other, WHOLE))}
    for one in rows:
        if (one.entry, one.variant) != (ours, WHOLE):
            continue
        pair, known = against.get(one.dataset), published.get(one.dataset, {})
        beside = f"{_scores(pair.second):16} {pair.gap:+6.2f}  {pair.p:6.3f}" if pair else f"{'–':32}"
        best = f"{known['best']} ({known['who']})" if known else "–"
        out.append(f"{one.dataset:20} {_scores(one):16} {beside}  {best}   {one.split}")
    told = [
        f"  {p.dataset:18} {p.first.entry}, {p.first.variant:24} {_scores(p.first):16} {p.gap:+6.2f}  {p.p:6.3f}  to {p.second.variant}"
        for p in parts(rows)
    ]
    return [*out, *told]


def parts(rows: Sequence[Final]) -> list[Pair]:
    """What is left of each entry's choice without a part of it, against the choice; parts of a single network against that network.

    Example:
        >>> about = ("2026-11-20", "c0ffee", "5e1f", "cora", "public 1a2b", "StableGNN")
        >>> rows = [Final(*about, name, 0, 2, 0.8, scores, ({},)) for name, scores in ((WHOLE, (0.9, 0.8)), (ALONE, (0.8, 0.8)), ("without both", (0.7, 0.6)))]
        >>> [(pair.first.variant, pair.second.variant, round(pair.gap)) for pair in parts(rows)]
        [('the best alone', 'as chosen', -5), ('without both', 'the best alone', -15)]
    """
    rows = current(rows)
    kinds = list(dict.fromkeys((one.entry, one.variant) for one in rows if one.variant != WHOLE))
    found: list[Pair] = []
    for entry, variant in kinds:
        alone = variant not in (ALONE, AVERAGED) and any((one.entry, one.variant) == (entry, ALONE) for one in rows)
        found += pairs(rows, (entry, variant), (entry, ALONE if alone else WHOLE))
    return found


def _scores(one: Final) -> str:
    return f"{one.mean:.2f} ± {one.std:.2f}"
