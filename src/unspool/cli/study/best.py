"""``unspool study best``: the settings that validation prefers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from unspool.cli.study.open_study import check_names, columns, console_for, table_of
from unspool.cli.study.screen import echo
from unspool.study import Best, Measure
from unspool.study.results.exporting import shown, spread

BY = {"score": Measure.VALID_SCORE, "loss": Measure.VALID_LOSS}


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
    check_names(table, "--each", each)
    check_names(table, "--over", over)
    measure = BY[by]
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
        settings = [shown(best.settings.get(name)) for name in names]
        loss = [f"{best.loss.mean:.4f}"] if extra else []
        numbers = [
            spread(best.valid.mean, best.valid.std, best.score),
            *loss,
            spread(best.test.mean, best.test.std, best.score),
            str(best.n),
        ]
        printed.add_row(*settings, *numbers, *([best.note] if noted else []))
    console.print(printed, soft_wrap=False)


def group_record(best: Best) -> dict[str, Any]:
    """A group of trials in plain values.

    Example:
        >>> from unspool import datasets, models, study
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
