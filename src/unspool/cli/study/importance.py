"""``unspool study importance``: how much each setting explains."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from unspool import study
from unspool.cli.study.best import BY
from unspool.cli.study.open_study import check_names, console_for, on_one_set, table_of
from unspool.cli.study.screen import echo


def show_importance(
    file: Path, by: str, over: Sequence[str], dataset: str | None, where: Sequence[str], as_json: bool
) -> None:
    """How much each setting explains."""
    table = on_one_set(table_of(file, dataset, where), file)
    check_names(table, "--over", over)
    found = study.importance(table, BY[by], tuple(over))
    if as_json:
        pairs = [{"settings": list(pair), "share": share} for pair, share in found.interactions.items()]
        echo({
            "method": found.method.value, "target": found.target.value, "settings": found.count, "shares": dict(found.shares),
            "floors": dict(found.floors), "interactions": pairs, "rest": found.rest, "note": found.note,
        })  # fmt: skip
        return
    console_for().print(str(found), markup=False)
