"""What many trials say: tables, the best, comparisons, importance, pictures, files."""

from unspool.study.results.best import Best, Measure, Sample
from unspool.study.results.compare import Comparison, Test, compare, compare_all
from unspool.study.results.export import export
from unspool.study.results.importance import Importance, Method, importance
from unspool.study.results.plot import plot_choices, plot_compare, plot_grid, plot_importance, plot_leaders
from unspool.study.results.table import Table

__all__ = [
    "Best", "Comparison", "Importance", "Measure", "Method", "Sample", "Table", "Test", "compare", "compare_all", "export", "importance",
    "plot_choices", "plot_compare", "plot_grid", "plot_importance", "plot_leaders",
]  # fmt: skip
