"""The section on the upper level: ours and its rival in one space, each evaluated once, beside published numbers."""

from __future__ import annotations

from collections.abc import Sequence

from unspool.report import Block, Cell, Paragraph, Rows, Table, text_columns
from unspool.reproduce.experiment_files import read_experiment
from unspool.reproduce.lead.finals import WHOLE, Final
from unspool.reproduce.lead.plan import Plan
from unspool.reproduce.lead.table import current, pairs, parts
from unspool.reproduce.sections.names import dataset_title
from unspool.reproduce.sections.not_run import not_run


def lead_blocks(finals: Sequence[Final], space: str = "lead") -> list[Block]:
    """Ours and the other entry of a space on every set, with splits, p-values and published numbers; then ours without its parts.

    Example:
        >>> lead_blocks([])[0].markdown()
        'Not run yet: unspool reproduce lead'
        >>> one = Final("2026-11-19", "c0ffee", "5e1f", "cora", "public 1a2b", "StableGNN", WHOLE, 0, 2, 0.8, (0.85, 0.86), ({},))
        >>> print(lead_blocks([one])[1].markdown().splitlines()[-1])
        | Cora | 85.50 ± 0.71 | – | – | – | 85.8 | GRAND+, from memory; GCNII 85.5, GRAND 85.4; the public split of Planetoid | public 1a2b | 1 | 2 | 5e1f | c0ffee |
    """
    plan = Plan.read(space)
    mine = [one for one in current(finals) if one.dataset in plan.datasets]
    if not mine:
        return not_run("lead" if space == "lead" else f"lead --space {space}")
    ours, other = plan.entries[:2]
    words = (
        f"{ours} and {other}, searched in one space with the same number of settings and trials, on nodes with known labels under seeds that no evaluation "
        "has; then evaluated once, at the named commit and under the named space. Gaps are paired by seed, p-values are those of paired t-tests after "
        "Holm's correction. A split has the hash of all splits of its seeds; published numbers stand under the protocol that is named with "
        "them, and where splits are drawn at random theirs are not ours."
    )
    return [Paragraph([words]), _against(mine, ours, other), *_ablation(mine)]


def _against(rows: Sequence[Final], ours: str, other: str) -> Table:
    published, made = read_experiment("published"), Rows()
    found = {pair.dataset: pair for pair in pairs(rows, (ours, WHOLE), (other, WHOLE))}
    for one in rows:
        if (one.entry, one.variant) != (ours, WHOLE):
            continue
        pair, known = found.get(one.dataset), published.get(one.dataset)
        beside = [_score(pair.second), Cell.signed(pair.gap), Cell.number(pair.p, 3)] if pair else ["–", "–", "–"]
        best = [Cell.number(known["best"], 1), f"{known['who']}; {known['protocol']}"] if known else ["–", "–"]
        facts = [one.split, Cell.count(len(one.trials)), Cell.count(one.seeds), one.space, one.commit]
        made.append([dataset_title(one.dataset), _score(one), *beside, *best, *facts])
    columns = [*text_columns("dataset"), ours, other, "gap", "p", "highest published"]
    columns += [
        *text_columns("by whom, and its protocol", "split"),
        "networks averaged",
        "seeds",
        *text_columns("space", "commit"),
    ]
    return Table(f"{ours} against {other} and published numbers (test accuracy, %)", columns, made)


def _ablation(rows: Sequence[Final]) -> list[Block]:
    made: Rows = [
        [dataset_title(pair.dataset), pair.first.entry, pair.first.variant, _score(pair.first), pair.second.variant, Cell.signed(pair.gap), Cell.number(pair.p, 3)]
        for pair in parts(rows)
    ]  # fmt: skip
    columns = [*text_columns("dataset", "entry", "variant"), "accuracy", *text_columns("against"), "gap", "p"]
    return [Table("One network and several, and without their parts (test accuracy, %)", columns, made)] if made else []


def _score(one: Final) -> Cell:
    return Cell(f"{one.mean:.2f} ± {one.std:.2f}", one.mean)
