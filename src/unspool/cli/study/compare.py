"""``unspool study compare``: whether two sides differ by more than their seeds do."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from unspool import study
from unspool.cli.study.best import group_record
from unspool.cli.study.open_study import check_names, console_for, named, on_one_set, table_of
from unspool.cli.study.screen import echo
from unspool.study import Comparison, Test

_TESTS = {"t": Test.PAIRED_T, "wilcoxon": Test.WILCOXON}


def show_comparison(
    file: Path,
    sides: Sequence[str],
    every: bool,
    test: str,
    confidence: float,
    over: Sequence[str],
    dataset: str | None,
    where: Sequence[str],
    as_json: bool,
) -> None:
    """Two sides in one sentence, or all pairs of models."""
    if every == (len(sides) > 0) or (not every and len(sides) != 2):
        raise ValueError("compare takes two sides, such as GCN UGDGNN or dropout=0.2 dropout=0.5; or --all alone")
    table = table_of(file, dataset, where)
    check_names(table, "--over", over)
    if "data" not in over:
        on_one_set(table, file)
    options: dict[str, Any] = {"over": tuple(over), "test": _TESTS[test], "confidence": confidence}
    if every:
        if len({best.model for best in table.groups()}) < 2:
            raise ValueError(f"{file} has one model; compare two settings of it, such as dropout=0.2 dropout=0.5")
        found = study.compare_all(table, **options)
    else:
        a, b = (named(table, "side", side) for side in sides)
        found = (study.compare(table, a, b, **options),)
    for one in found:
        if as_json:
            echo(_comparison_record(one))
        else:
            console_for().print(str(one), markup=False)


def _comparison_record(one: Comparison) -> dict[str, Any]:
    return {
        "a": group_record(one.a), "b": group_record(one.b), "pairs": one.n, "difference": one.difference, "low": one.low,
        "high": one.high, "confidence": one.confidence, "test": one.test.value, "p": one.p_value, "p_corrected": one.corrected,
        "effect": one.effect, "note": one.note, "sentence": str(one),
    }  # fmt: skip
