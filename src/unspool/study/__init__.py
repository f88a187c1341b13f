"""A thousand trials at once: search spaces, the engine that packs trials, the store, and what the results say.

>>> import unspool as us
>>> from unspool import datasets
>>> data = datasets.contextual_sbm(nodes=60, classes=2, seed=0)
>>> grid = us.study.grid(us.models.GCN, seed=range(3), hidden=8, dropout=[0.2, 0.5], epochs=20)
>>> found = us.study.run(grid, data)  # 6 trials trained at once
>>> found.best(over="seed").n
3
"""

from unspool.study.best import Best, Measure, Sample
from unspool.study.compare import Comparison, Test, compare, compare_all
from unspool.study.engine import train_trials
from unspool.study.export import export
from unspool.study.importance import Importance, Method, importance
from unspool.study.pack import Member, Pack
from unspool.study.plot import plot_choices, plot_compare, plot_grid, plot_importance, plot_leaders
from unspool.study.progress import Progress
from unspool.study.provide import Provider
from unspool.study.ranges import choice, integers, log_uniform, uniform
from unspool.study.run import Study, run
from unspool.study.space import Space, grid, paper_grid, random
from unspool.study.store import Access, Row, Status, Store, StoreProblem
from unspool.study.table import Table
from unspool.study.trial import Result, Trial

__all__ = [
    "Access", "Best", "Comparison", "Importance", "Measure", "Member", "Method", "Pack", "Progress", "Provider", "Result", "Row", "Sample",
    "Space", "Status", "Store", "StoreProblem", "Study", "Table", "Test", "Trial", "choice", "compare", "compare_all", "export", "grid",
    "importance", "integers", "log_uniform", "paper_grid", "plot_choices", "plot_compare", "plot_grid", "plot_importance",
    "plot_leaders", "random", "run", "train_trials", "uniform",
]  # fmt: skip
