"""The paper's tables and figures again, ours next to theirs: experiments as data, run through the study engine.

>>> import pathlib, tempfile
>>> from unspool import reproduce
>>> workspace = reproduce.Workspace(pathlib.Path(tempfile.mkdtemp()))
>>> options = reproduce.RunOptions(models=("SGC",), datasets=("citeseer",), seeds=2, epochs=5)
>>> with reproduce.ExperimentRunner(workspace, options) as runner:
...     records = reproduce.run_table2(runner, ("paper",))
>>> entry = reproduce.choose(records)[0]
>>> entry.first.model, entry.printed, len(entry.records)
('SGC', (71.5, 0.25), 2)
>>> reproduce.read(workspace.results).experiments
('table2',)
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # at run time a name is imported when it is first used: presets cost nothing of the rest
    from unspool.reproduce.entries import choose as choose
    from unspool.reproduce.options import Budget as Budget
    from unspool.reproduce.options import RunOptions as RunOptions
    from unspool.reproduce.options import Workspace as Workspace
    from unspool.reproduce.presets import OFFICIAL as OFFICIAL
    from unspool.reproduce.presets import PAPER as PAPER
    from unspool.reproduce.recipes import GRAND as GRAND
    from unspool.reproduce.recipes import STABLE as STABLE
    from unspool.reproduce.report_page import write_report as write_report
    from unspool.reproduce.results import read as read
    from unspool.reproduce.runner import ExperimentRunner as ExperimentRunner
    from unspool.reproduce.search_grid import paper_grid as paper_grid
    from unspool.reproduce.table2 import run_table2 as run_table2

_WHERE = {
    "Budget": "options",
    "ExperimentRunner": "runner",
    "GRAND": "recipes",
    "OFFICIAL": "presets",
    "PAPER": "presets",
    "RunOptions": "options",
    "STABLE": "recipes",
    "Workspace": "options",
    "choose": "entries",
    "paper_grid": "search_grid",
    "read": "results",
    "run_table2": "table2",
    "write_report": "report_page",
}


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(importlib.import_module(f"{__name__}.{_WHERE[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted(_WHERE)


__all__ = [  # pyright: ignore[reportUnsupportedDunderAll] - all of them come through __getattr__
    "GRAND", "OFFICIAL", "PAPER", "STABLE", "Budget", "ExperimentRunner", "RunOptions", "Workspace", "choose", "paper_grid", "read", "run_table2", "write_report",
]  # fmt: skip
