"""``unspool study best``, ``compare`` and ``importance``: what finished trials say."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from unspool import study
from unspool.cli.study.file import columns, console_for, named, on_one_set, table_of
from unspool.cli.study.screen import echo
from unspool.study import Best, Comparison, Measure, Sample, Test
from unspool.train.loss import SHARES

_BY = {"score": Measure.VALID_SCORE, "loss": Measure.VALID_LOSS}
_TESTS = {"t": Test.PAIRED_T, "wilcoxon": Test.WILCOXON}


def show_best(
    file: Path,
    over: Sequence[str],
    by: str,
    each: Sequence[str],
    dataset: str | None,
    where: Sequence[str],
    top: int,
    as_json: bool,
) -> None:
    """The leaders of each set, or the best for each value of some settings."""
    table = table_of(file, dataset, where)
    _check_names(table, "--each", each)
    _check_names(table, "--over", over)
    measure = _BY[by]
    names = tuple(over)
    groups = table.best_each(*each, over=names, by=measure) if each else table.leaders(top, names, measure)
    if as_json:
        for best in groups:
            echo(group_record(best))
        return
    console = console_for()
    print_leaders(groups, console, measure)
    firsts = {best.data: best for best in reversed(table.leaders(1, tuple(over), measure))}
    console.print()
    for best in firsts.values():
        console.print(f"best by {measure.value}: {best}", markup=False)
    waiting = sum(row.result is None for row in table.rows)
    if waiting:
        console.print(
            f"{waiting} trials have no result yet; settings that miss some are left out while others are complete"
        )


def print_leaders(groups: Sequence[Best], console: Console, by: Measure = Measure.VALID_SCORE) -> None:
    """One line for each group of trials: what tells it from the others, and its numbers."""
    names = [name for name in groups[0].varied if any(name in best.settings for best in groups)]
    over = groups[0].over[0] + "s" if len(groups[0].over) == 1 else "trials"
    names = names if names else ["model"]
    noted = any(best.note for best in groups)
    extra = ["validation loss"] if by is Measure.VALID_LOSS else []
    printed = columns(*names, "validation", *extra, "test", over, *(["note"] if noted else []))
    for best in groups:
        settings = [_word(best.settings.get(name)) for name in names]
        loss = [f"{best.loss.mean:.4f}"] if extra else []
        numbers = [_spread(best.valid, best.score), *loss, _spread(best.test, best.score), str(best.n)]
        printed.add_row(*settings, *numbers, *([best.note] if noted else []))
    console.print(printed, soft_wrap=False)


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
    _check_names(table, "--over", over)
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


def show_importance(
    file: Path, by: str, over: Sequence[str], dataset: str | None, where: Sequence[str], as_json: bool
) -> None:
    """How much each setting explains."""
    table = on_one_set(table_of(file, dataset, where), file)
    _check_names(table, "--over", over)
    found = study.importance(table, _BY[by], tuple(over))
    if as_json:
        pairs = [{"settings": list(pair), "share": share} for pair, share in found.interactions.items()]
        echo({
            "method": found.method.value, "target": found.target.value, "settings": found.count, "shares": dict(found.shares),
            "interactions": pairs, "rest": found.rest, "note": found.note,
        })  # fmt: skip
        return
    console_for().print(str(found), markup=False)


def group_record(best: Best) -> dict[str, Any]:
    """A group of trials in plain values.

    Example:
        >>> from unspool import datasets, models
        >>> grid = study.grid(models.MLP, seed=range(2), hidden=8, epochs=5)
        >>> record = group_record(study.run(grid, datasets.contextual_sbm(nodes=60, classes=2, seed=0)).best())
        >>> record["model"], record["settings"]["hidden"], record["members"]
        ('MLP', 8, [[0], [1]])
    """
    return {
        "data": best.data, "model": best.model, "settings": dict(best.settings), "over": list(best.over),
        "members": [list(member) for member in best.members], "trials": best.n, "score": best.score,
        "valid_mean": best.valid.mean, "valid_std": best.valid.std, "valid_loss": best.loss.mean,
        "test_mean": best.test.mean, "test_std": best.test.std, "diverged": best.diverged, "note": best.note,
    }  # fmt: skip


def _comparison_record(one: Comparison) -> dict[str, Any]:
    return {
        "a": group_record(one.a), "b": group_record(one.b), "pairs": one.n, "difference": one.difference, "low": one.low,
        "high": one.high, "confidence": one.confidence, "test": one.test.value, "p": one.p_value, "p_corrected": one.corrected,
        "effect": one.effect, "note": one.note, "sentence": str(one),
    }  # fmt: skip


def _check_names(table: study.Table, option: str, names: Sequence[str]) -> None:
    for name in names:
        if name not in table.columns:
            raise ValueError(f"{option} {name}: no setting is called so; there are {', '.join(table.columns)}")


def _word(value: Any) -> str:
    if isinstance(value, tuple):
        return " ".join(_word(one) for one in list[Any](value))
    return "–" if value is None else f"{value:.4g}" if isinstance(value, float) else str(value)


def _spread(sample: Sample, score: str) -> str:
    if math.isnan(sample.mean):
        return "–"
    share = score in SHARES
    numbers = [f"{100 * v:.2f}" if share else f"{v:.4f}" for v in (sample.mean, sample.std) if not math.isnan(v)]
    return " ± ".join(numbers) + " %" * share
