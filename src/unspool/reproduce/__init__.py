"""The paper's tables and figures again, ours beside theirs: experiments as data, run through the study engine.

>>> import pathlib, tempfile
>>> from unspool import reproduce
>>> place = reproduce.Place(pathlib.Path(tempfile.mkdtemp()))
>>> scope = reproduce.Scope(models=("SGC",), datasets=("citeseer",), seeds=2, epochs=5)
>>> with reproduce.Bench(place, scope) as bench:
...     rows = reproduce.run_table2(bench, ("paper",))
>>> cell = reproduce.choose(rows)[0]
>>> cell.first.model, cell.printed, len(cell.rows)
('SGC', (71.5, 0.25), 2)
>>> reproduce.read(place.results).experiments
('table2',)
"""

from unspool.reproduce.bench import Bench
from unspool.reproduce.cells import Cell, choose
from unspool.reproduce.depth import run_depth
from unspool.reproduce.results import Record, Results, Search, read, write
from unspool.reproduce.robust import run_robust
from unspool.reproduce.settings import Pace, Place, Scope
from unspool.reproduce.table2 import run_table2
from unspool.reproduce.wide import run_grid, run_heterophily

__all__ = [
    "Bench", "Cell", "Pace", "Place", "Record", "Results", "Scope", "Search", "choose", "read", "run_depth", "run_grid", "run_heterophily",
    "run_robust", "run_table2", "write",
]  # fmt: skip
