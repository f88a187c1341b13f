"""A thousand trials at once: search spaces, the engine that batches trials, the store, and what the results say.

>>> import unspool as us
>>> from unspool import datasets
>>> data = datasets.contextual_sbm(nodes=60, classes=2, seed=0)
>>> grid = us.study.grid(us.models.GCN, seed=range(3), hidden=8, dropout=[0.2, 0.5], epochs=20)
>>> found = us.study.run(grid, data)  # 6 trials trained at once
>>> found.best(over="seed").n
3
"""

from unspool.settings import choice, integers, log_uniform, uniform
from unspool.study.batch import TrialBatch
from unspool.study.engine import train_trials
from unspool.study.engine.packing import Group, Packing, packing
from unspool.study.engine.progress import Progress
from unspool.study.evaluation import Outcome, evaluate
from unspool.study.machines import Ray
from unspool.study.optuna_search import optimise, suggest
from unspool.study.predicting import predictions
from unspool.study.report import write_report
from unspool.study.results.best import Best, Measure, Sample
from unspool.study.results.comparison import Comparison, Test, compare, compare_all
from unspool.study.results.exporting import export
from unspool.study.results.importances import Importance, Method, importance
from unspool.study.results.plot import plot_choices, plot_compare, plot_grid, plot_importance, plot_leaders
from unspool.study.results.trial_table import TrialTable
from unspool.study.search.space import Space, declared_search, grid, random
from unspool.study.store import Access, Row, Status, Store, StoreProblem
from unspool.study.study import Study, run, train_again
from unspool.train import Result, Trial

__all__ = [
    "Access", "Best", "Comparison", "Group", "Importance", "Measure", "Method", "Outcome", "Packing", "Progress", "Ray", "Result", "Row", "Sample", "Space", "Status", "Store",
    "StoreProblem", "Study", "Test", "Trial", "TrialBatch", "TrialTable", "choice", "compare", "compare_all", "declared_search", "evaluate", "export",
    "grid", "importance", "integers", "log_uniform", "optimise", "packing", "plot_choices", "plot_compare", "plot_grid", "plot_importance",
    "plot_leaders", "predictions", "random", "run", "suggest", "train_again", "train_trials", "uniform", "write_report",
]  # fmt: skip
