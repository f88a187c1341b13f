"""A thousand trials at once: search spaces, the engine that packs trials, the store, and what the results say.

>>> import unspool as us
>>> from unspool import datasets
>>> data = datasets.contextual_sbm(nodes=60, classes=2, seed=0)
>>> grid = us.study.grid(us.models.GCN, seed=range(3), hidden=8, dropout=[0.2, 0.5], epochs=20)
>>> found = us.study.run(grid, data)  # 6 trials trained at once
>>> found.best(over="seed").n
3
"""

from unspool.study.engine import train_trials
from unspool.study.engine.progress import Progress
from unspool.study.evaluate import Outcome, evaluate
from unspool.study.optimise import optimise
from unspool.study.pack import Member, Pack
from unspool.study.provide import Provider
from unspool.study.results.best import Best, Measure, Sample
from unspool.study.results.compare import Comparison, Test, compare, compare_all
from unspool.study.results.export import export
from unspool.study.results.importance import Importance, Method, importance
from unspool.study.results.plot import plot_choices, plot_compare, plot_grid, plot_importance, plot_leaders
from unspool.study.results.table import Table
from unspool.study.run import Study, run
from unspool.study.search.ranges import choice, integers, log_uniform, uniform
from unspool.study.search.space import Space, grid, paper_grid, random
from unspool.study.store import Access, Row, Status, Store, StoreProblem
from unspool.study.trial import Result, Trial

__all__ = [
    "Access", "Best", "Comparison", "Importance", "Measure", "Member", "Method", "Outcome", "Pack", "Progress", "Provider", "Result", "Row", "Sample",
    "Space", "Status", "Store", "StoreProblem", "Study", "Table", "Test", "Trial", "choice", "compare", "compare_all", "evaluate", "export", "grid",
    "importance", "integers", "log_uniform", "optimise", "paper_grid", "plot_choices", "plot_compare", "plot_grid", "plot_importance",
    "plot_leaders", "random", "run", "train_trials", "uniform",
]  # fmt: skip
