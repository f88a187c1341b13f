"""``unspool study plot``: a study as pictures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from unspool import study
from unspool.cli.paths import check_folder
from unspool.cli.study.open_study import console_for, table_of
from unspool.errors import IncompatibleError
from unspool.spectral.figure import figure_class_of_matplotlib

#: What no picture is drawn over.
_ASIDE = ("seed", "data", "preset")


def draw(file: Path, out: Path, kind: str, top: int, dataset: str | None, where: Sequence[str]) -> None:
    """Write the pictures of a study into a folder."""
    table = table_of(file, dataset, where)
    figure_class_of_matplotlib()
    check_folder(out)
    console = console_for()
    for name, picture in _pictures(table, top).items():
        path = out / f"{name}.{kind}"
        try:
            picture(path)
            console.print(str(path), markup=False)
        except IncompatibleError as problem:
            # An old picture of this name would pass for one of this study.
            path.unlink(missing_ok=True)
            console.print(f"no {path.name}: {problem}", markup=False)


def _pictures(table: study.TrialTable, top: int) -> dict[str, Callable[[Path], Any]]:
    """What can be drawn, by the names of the files; one of each kind for every set."""
    found: dict[str, Callable[[Path], Any]] = {"leaders": lambda path: study.plot_leaders(table, top, path=path)}
    sets = list(dict.fromkeys(best.data for best in table.groups()))
    for data in sets:
        part = table.filter(data=data)
        after = f"-{_as_name(data)}" if len(sets) > 1 else ""
        found[f"choices{after}"] = lambda path, part=part: study.plot_choices(part, path=path)
        found[f"importance{after}"] = lambda path, part=part: study.plot_importance(study.importance(part), path=path)
        varied = [name for name in part.varied if name not in _ASIDE]
        if len(varied) == 2:
            x, y = sorted(varied, key=lambda name: name == "model")
            found[f"grid{after}"] = lambda path, part=part, x=x, y=y: study.plot_grid(part, x, y, path=path)
    return found


def _as_name(text: str) -> str:
    """Words as a part of the name of a file."""
    return "".join(c if c.isalnum() else "-" for c in text.lower()).strip("-")
